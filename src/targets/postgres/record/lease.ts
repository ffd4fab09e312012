import { setTimeout as wait } from 'node:timers/promises'
import { StetError } from '../../../errors.ts'
import type { RunStart } from '../../../model/run.ts'
import type { Connection, Row } from '../connection.ts'

/** Which lease: one for each table and slice. */
interface LeaseName {
  readonly table: string
  readonly slice: string
}

/** A lease that this attempt holds. Who has another epoch of it may not write. */
export interface Lease extends LeaseName {
  readonly epoch: string
  readonly attemptId: string
}

export interface TakeLeaseOptions {
  readonly name: LeaseName
  readonly start: Pick<RunStart, 'attemptId' | 'runId' | 'holder'>
  /** How old a heartbeat may be. */
  readonly leaseTimeoutMs: number
  /** The process that serves the heartbeat, where it is known for certain; it ends when the holder's process does. */
  readonly heartbeatProcess: string | null
}

/** What came of one try: the lease, or who has it. */
export type LeaseOutcome =
  | { readonly lease: Lease; readonly tookOverFrom: string | null }
  | { readonly lease: null; readonly holder: string }

/**
 * Tries once to take the lease, in the caller's transaction. A lease is free, or stale: its heartbeat is too old by the
 * server's clock, or the server process that served the heartbeat is gone, which it is as soon as the holder's process
 * dies. The second is only believed where the process was known without a pooler in between.
 */
export async function tryLease(connection: Connection, options: TakeLeaseOptions): Promise<LeaseOutcome> {
  const { name, start, leaseTimeoutMs, heartbeatProcess } = options
  await connection.query(
    `insert into stet.lease (table_name, slice, epoch)
     values ($1, $2, 0)
     on conflict (table_name, slice) do nothing`,
    [name.table, name.slice],
  )
  const [current] = await connection.query(
    `select l.attempt_id, l.run_id, l.holder,
            to_char(l.taken_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since,
            -- by the holder's own measure, too, from which it takes how often to beat
            l.heartbeat_at < clock_timestamp()
              - make_interval(secs => greatest($3::double precision, l.timeout_ms::double precision) / 1000) as silent,
            l.backend_pid is not null and not exists (
              select from pg_stat_activity as a
               where a.pid = l.backend_pid
                 -- hidden from other users; then only the process's absence counts
                 and coalesce(a.backend_start = l.backend_start, true)) as gone
       from stet.lease as l
      where l.table_name = $1 and l.slice = $2
        for update of l`,
    [name.table, name.slice, String(leaseTimeoutMs)],
  )
  const previous = current?.attempt_id ?? null
  const free = previous === null || previous === start.attemptId
  const stale = current?.silent === 't' || current?.gone === 't'
  if (!free && !stale) return { lease: null, holder: describeHolder(current) }
  const [taken] = await connection.query(
    `update stet.lease
        set epoch = epoch + 1,
            attempt_id = $3, run_id = $4, holder = $5,
            taken_at = clock_timestamp(), heartbeat_at = clock_timestamp(), timeout_ms = $7,
            backend_pid = $6::integer,
            backend_start = (select backend_start from pg_stat_activity where pid = $6::integer)
      where table_name = $1 and slice = $2
  returning epoch`,
    [
      name.table,
      name.slice,
      start.attemptId,
      start.runId,
      start.holder,
      heartbeatProcess,
      String(Math.ceil(leaseTimeoutMs)),
    ],
  )
  const lease = { ...name, epoch: taken?.epoch ?? '0', attemptId: start.attemptId }
  if (free) return { lease, tookOverFrom: null }
  await connection.query(
    `update stet.run
        set status = 'interrupted', finished_at = clock_timestamp()
      where attempt_id = $1 and status = 'running'`,
    [previous],
  )
  return { lease, tookOverFrom: describeHolder(current) }
}

function describeHolder(row: Row | undefined): string {
  return `run ${row?.run_id} (${row?.holder}, since ${row?.since})`
}

/**
 * Tells the server that this attempt is alive.
 *
 * @returns false when another attempt has the lease by now.
 */
export async function beat(connection: Connection, lease: Lease): Promise<boolean> {
  const rows = await connection.query(
    `update stet.lease
        set heartbeat_at = clock_timestamp(),
            backend_pid = $5::integer,
            backend_start = (select backend_start from pg_stat_activity where pid = $5::integer)
      where table_name = $1 and slice = $2 and epoch = $3 and attempt_id = $4
  returning epoch`,
    [lease.table, lease.slice, lease.epoch, lease.attemptId, connection.directProcess],
  )
  return rows.length === 1
}

/**
 * Gives the lease back, in the caller's transaction; with the rows, this is what refuses an attempt that slept while
 * another took over.
 *
 * @returns false when another attempt has the lease by now; then nothing may be committed.
 */
export async function releaseLease(connection: Connection, lease: Lease): Promise<boolean> {
  const rows = await connection.query(
    `update stet.lease
        set attempt_id = null, run_id = null, holder = null,
            heartbeat_at = null, timeout_ms = null, backend_pid = null, backend_start = null
      where table_name = $1 and slice = $2 and epoch = $3 and attempt_id = $4
  returning epoch`,
    [lease.table, lease.slice, lease.epoch, lease.attemptId],
  )
  return rows.length === 1
}

export function leaseLost(lease: Lease): StetError {
  return new StetError(
    'STET_LEASE_LOST',
    `This attempt has lost the lease of ${lease.table} to another one and may not write any more (G7)`,
    {
      hint: 'Nothing of this attempt was written. See who took over: stet runs',
      details: { table: lease.table, slice: lease.slice, epoch: lease.epoch },
    },
  )
}

/** How often a waiting attempt looks again. The holder's commit is the condition; the server has no way to announce it through a pooler. */
const LOOK_AGAIN_MS = 100

/**
 * Asks again until the answer is there.
 *
 * @returns null when the time is over.
 */
export async function until<T>(
  ask: () => Promise<T | null>,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<T | null> {
  const started = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer !== null) return answer
    if (performance.now() - started >= options.timeoutMs) return null
    await wait(
      LOOK_AGAIN_MS,
      undefined,
      options.signal === undefined ? {} : { signal: options.signal },
    ).catch((error: unknown) => {
      options.signal?.throwIfAborted()
      throw error
    })
  }
}
