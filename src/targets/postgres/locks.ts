import { createHash } from 'node:crypto'
import { StetError } from '../../errors.ts'
import type { RunStart } from '../../model/run.ts'
import type { OpenTargetOptions } from '../../model/target.ts'
import type { TableIdentity } from './catalog.ts'
import type { Connection } from './connection.ts'
import { type Lease, leaseLost, tryLease, until } from './record/lease.ts'
import { insertRun } from './record/runs.ts'
import { inTransactionOf } from './transaction.ts'

/**
 * Waits for the lease of the table's slice, takes it and writes the run's first line, in one commit.
 *
 * @throws {StetError} `STET_LOCKED` with who has it, when it is not to be had in time.
 */
export async function takeLease(
  connection: Connection,
  settings: string,
  identity: TableIdentity,
  start: RunStart,
  { lockTimeoutMs, leaseTimeoutMs, signal, notice }: OpenTargetOptions,
  heartbeatProcess: string | null,
): Promise<Lease> {
  const name = { table: identity.qualified, slice: start.slice }
  let holder = ''
  const lease = await until(
    () =>
      inTransactionOf(connection, settings, async () => {
        const outcome = await tryLease(connection, { name, start, leaseTimeoutMs, heartbeatProcess })
        if (outcome.lease === null) {
          if (holder !== outcome.holder)
            notice(`Waiting for ${outcome.holder}, which is loading ${name.table}`)
          holder = outcome.holder
          return null
        }
        if (outcome.tookOverFrom !== null) {
          notice(`Took over the lease of ${name.table} from ${outcome.tookOverFrom}, which was interrupted`)
        }
        await insertRun(connection, name.table, start, outcome.lease.epoch)
        return outcome.lease
      }),
    { timeoutMs: lockTimeoutMs, signal },
  )
  if (lease !== null) return lease
  throw new StetError('STET_LOCKED', `${name.table} is being loaded by ${holder} (G7)`, {
    hint: 'Wait for it, or give a longer --lock-timeout; a run that died is taken over by itself',
    details: { table: name.table, slice: name.slice, holder },
  })
}

/** The lock of a table among all runs of Stet, for the rest of the transaction; its key is the table's name. */
export async function lockTable(
  connection: Connection,
  { qualified }: TableIdentity,
  notice: (message: string) => void,
): Promise<void> {
  const key = createHash('sha256').update(`stet:table:${qualified}`).digest().readBigInt64BE().toString()
  const [row] = await connection.query('select pg_try_advisory_xact_lock($1) as locked', [key])
  if (row?.locked === 't') return
  notice(`Waiting for another run that writes ${qualified}`)
  // A statement of its own: what follows must see the rows that were committed while this one waited.
  await connection.query('select pg_advisory_xact_lock($1)', [key])
}

/** Checks that the lease is still ours, in the transaction that writes. */
export async function requireLease(connection: Connection, lease: Lease): Promise<void> {
  const [row] = await connection.query(
    `select epoch = $3 and attempt_id = $4 as held
       from stet.lease
      where table_name = $1 and slice = $2`,
    [lease.table, lease.slice, lease.epoch, lease.attemptId],
  )
  if (row?.held !== 't') throw leaseLost(lease)
}
