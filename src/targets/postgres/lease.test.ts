import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import {
  contractFor,
  type Load,
  land,
  load,
  recordOf,
  startOf,
} from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import type { Target, TargetSession } from '../../model/target.ts'
import { postgres } from './index.ts'

const WRITE = { strategy: 'upsert', key: ['k'] } as const
const LOAD: Load = { table: 't', write: WRITE, columns: { k: 'text', v: 'text' }, rows: [['a', '1']] }

interface Opened extends AsyncDisposable {
  readonly session: TargetSession
  readonly attemptId: string
  /** From the contract to just before the commit. */
  work(v: string): Promise<void>
  commit(): Promise<void>
}

async function open(
  target: Target,
  attemptId: string,
  options: {
    leaseTimeoutMs?: number
    lockTimeoutMs?: number
    slice?: string
    notice?: (message: string) => void
  } = {},
): Promise<Opened> {
  const local = await openLocalEngine()
  const session = await target.open({
    table: 't',
    write: WRITE,
    local,
    mode: 'run',
    lockTimeoutMs: options.lockTimeoutMs ?? 5_000,
    leaseTimeoutMs: options.leaseTimeoutMs ?? 15_000,
    signal: new AbortController().signal,
    notice: options.notice ?? (() => undefined),
  })
  return {
    session,
    attemptId,
    work: async (v) => {
      const contract = contractFor(LOAD, await session.describe())
      await session.prepare(contract)
      await session.begin()
      const landed = await land(local, contract, session, [['a', v]])
      await local.run(
        `create table difference as select 'insert' as op, *, null::varchar as content_hash, null::varchar as row_id from ${landed}`,
      )
      await session.apply(contract, { table: 'difference', inserts: 1, updates: 0, deletes: 0, marks: 0 })
    },
    commit: () => session.commit(recordOf(attemptId, { inserted: 1 })),
    [Symbol.asyncDispose]: async () => {
      await session[Symbol.asyncDispose]()
      await local[Symbol.asyncDispose]()
    },
  }
}

async function statuses(target: Target): Promise<Record<string, string>> {
  await using log = await target.openRunLog({ signal: new AbortController().signal })
  return Object.fromEntries((await log.list({})).map(({ attemptId, status }) => [attemptId, status]))
}

for (const { name, url } of postgresServers()) {
  test(`case 067: two runs of one job at once are as good as one after the other, from an empty database (${name})`, async () => {
    for (let round = 0; round < 5; round++) {
      const database = await freshDatabase(url)
      const rows = Array.from({ length: 300 }, (_, n) => [String(n), 'v'])
      const runs = await Promise.all([1, 2].map(() => load(postgres({ url: database }), { ...LOAD, rows })))
      expect(runs.map(({ inserted }) => inserted).toSorted((a, b) => a - b)).toEqual([0, 300])
      await using db = await connect(database)
      expect((await db.client.query('select count(*) as n, count(distinct k) as k from t')).rows).toEqual([
        { n: '300', k: '300' },
      ])
      expect(new Set(Object.values(await statuses(postgres({ url: database }))))).toEqual(
        new Set(['succeeded']),
      )
    }
  })

  test(`a second attempt waits, and is refused by name when it may not wait longer (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    const notices: string[] = []
    const refused = load(target, {
      ...LOAD,
      attemptId: 'second',
      lockTimeoutMs: 200,
      notice: (message) => void notices.push(message),
    })
    await expect(refused).rejects.toMatchObject({
      code: 'STET_LOCKED',
      message: expect.stringMatching(/run-of-first .*test:\d+, since \d{4}-/),
    })
    expect(notices).toEqual([expect.stringContaining('Waiting for run run-of-first')])
    expect(await statuses(target)).toEqual({ first: 'running', second: 'failed' })
    await first.session.fail(recordOf('first', undefined, { code: 'X', message: 'x' }))
    expect(await load(target, { ...LOAD, attemptId: 'third' })).toMatchObject({ inserted: 1 })
  })

  test(`another slice of the table does not wait for the lease (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first', slice: 'monday' }))
    expect(await load(target, { ...LOAD, slice: 'tuesday', lockTimeoutMs: 200 })).toMatchObject({
      inserted: 1,
    })
  })

  test(`case 069 b: an attempt whose process died is taken over at once and marked as interrupted (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    const first = await open(target, 'first', { leaseTimeoutMs: 600_000 })
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    await first.work('old')
    expect(await statuses(target)).toEqual({ first: 'running' })
    // What a SIGKILL does: every socket of the process is closed and nothing else is said.
    await first[Symbol.asyncDispose]()
    const notices: string[] = []
    const started = performance.now()
    expect(
      await load(target, {
        ...LOAD,
        attemptId: 'second',
        leaseTimeoutMs: 600_000,
        notice: (message) => void notices.push(message),
      }),
    ).toMatchObject({ inserted: 1 })
    expect(performance.now() - started).toBeLessThan(30_000)
    expect(notices).toContainEqual(
      expect.stringMatching(/Took over the lease of public.t from run run-of-first/),
    )
    expect(await statuses(target)).toEqual({ first: 'interrupted', second: 'succeeded' })
  })

  test(`case 069 a: an attempt that sleeps past its lease is refused at its commit (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    await first.work('old')
    // A stopped process sends no heartbeat; its connections stay.
    await db.client.query(`update stet.lease set heartbeat_at = heartbeat_at - interval '1 hour'`)
    // The sleeper still has the table's lock, so the second waits there; it took the lease before.
    const second = load(target, { ...LOAD, rows: [['a', 'new']], attemptId: 'second' })
    await until(
      async () =>
        (await db.client.query(`select 1 from stet.lease where attempt_id = 'second'`)).rows.length > 0,
    )
    await expect(first.commit()).rejects.toMatchObject({ code: 'STET_LEASE_LOST' })
    await first.session.fail(recordOf('first', undefined, { code: 'STET_LEASE_LOST', message: 'x' }))
    expect(await second).toMatchObject({ inserted: 1 })
    expect((await db.client.query('select k, v from t')).rows).toEqual([{ k: 'a', v: 'new' }])
    expect(await statuses(target)).toEqual({ first: 'interrupted', second: 'succeeded' })
  })

  test(`the epoch alone refuses a commit, whatever the run's own line says (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    await first.work('old')
    await db.client.query('update stet.lease set epoch = epoch + 1')
    await expect(first.commit()).rejects.toMatchObject({ code: 'STET_LEASE_LOST' })
    await first.session.fail(recordOf('first', undefined, { code: 'STET_LEASE_LOST', message: 'x' }))
    expect((await db.client.query(`select to_regclass('t') as t`)).rows).toEqual([{ t: null }])
  })

  test(`an attempt that lost its lease before it began is refused there (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    await db.client.query(`update stet.lease set heartbeat_at = heartbeat_at - interval '1 hour'`)
    await load(target, { ...LOAD, attemptId: 'second' })
    await expect(first.work('old')).rejects.toMatchObject({ code: 'STET_LEASE_LOST' })
  })

  test(`a heartbeat keeps the lease of a long run, also after its connection was cut (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await using first = await open(target, 'first', { leaseTimeoutMs: 300 })
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    const beats = async () =>
      (await db.client.query('select heartbeat_at::text as at, backend_pid as pid from stet.lease')).rows[0]
    const before = await beats()
    await until(async () => (await beats()).at !== before.at)
    await db.client.query('select pg_terminate_backend($1)', [before.pid])
    await until(async () => (await beats()).pid !== before.pid)
    await first.work('1')
    await first.commit()
    expect(await statuses(target)).toEqual({ first: 'succeeded' })
  })

  test(`behind a pooler only the age of the heartbeat counts (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await using first = await open(target, 'first')
    await first.session.acquire(startOf({ write: WRITE, attemptId: 'first' }))
    await db.client.query('update stet.lease set backend_pid = null, backend_start = null')
    await expect(load(target, { ...LOAD, attemptId: 'second', lockTimeoutMs: 150 })).rejects.toMatchObject({
      code: 'STET_LOCKED',
    })
    await db.client.query(`update stet.lease set heartbeat_at = heartbeat_at - interval '1 hour'`)
    expect(await load(target, { ...LOAD, attemptId: 'third' })).toMatchObject({ inserted: 1 })
  })

  test(`a table that is altered between the checks and the transaction is left alone (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await using db = await connect(database)
    await db.client.query('create table t (k text primary key, v text)')
    const altered = load(target, {
      ...LOAD,
      beforeBegin: async () => void (await db.client.query('alter table t add column w text')),
    })
    await expect(altered).rejects.toMatchObject({ code: 'STET_SERIALIZATION' })
    const gone = load(target, {
      ...LOAD,
      columns: { k: 'text', v: 'text' },
      beforeBegin: async () => void (await db.client.query('drop table t')),
    })
    await expect(gone).rejects.toMatchObject({ code: 'STET_SERIALIZATION' })
  })

  test(`a lock that another session holds is waited for no longer than asked, and then retryable (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    await load(target, LOAD)
    await using db = await connect(database)
    await db.client.query('begin; lock table t in access exclusive mode')
    await expect(load(target, { ...LOAD, lockTimeoutMs: 200, attemptId: 'waits' })).rejects.toMatchObject({
      code: 'STET_LOCK_TIMEOUT',
    })
  })
}

/** Asks again until it is so. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
}
