import { expect, inject, test } from 'vitest'
import { openLocalEngine } from '../src/local/engine.ts'
import { startProxy, type WireProxy } from '../src/prove/wire/proxy.ts'
import { openConnection } from '../src/targets/postgres/connection.ts'
import { loadDriver } from '../src/targets/postgres/driver.ts'
import { postgres } from '../src/targets/postgres/index.ts'
import { pullRows } from '../src/targets/postgres/pull.ts'
import { pushRows } from '../src/targets/postgres/push.ts'
import { connect, freshDatabase, postgresServers } from './support/databases.ts'
import { type Load, load } from './support/postgres-target.ts'

const LOAD: Load = {
  table: 't',
  write: { strategy: 'replace-table', key: ['k'] },
  columns: { k: 'text', v: 'text' },
  rows: [
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
  ],
}
const BEFORE = [
  ['a', '1'],
  ['b', 'old'],
  ['d', '4'],
]

async function bench(server: string) {
  const url = new URL(await freshDatabase(server))
  const direct = await connect(url.href)
  const proxy = await startProxy({
    upstream: { host: url.hostname, port: Number(url.port) },
    database: url.pathname.slice(1),
  })
  const rows = async (sql: string) =>
    (await direct.client.query({ text: sql, rowMode: 'array' })).rows as unknown[][]
  return {
    url: url.href,
    direct: direct.client,
    proxy,
    rows,
    table: () => rows('select k, v from t order by 1'),
    /** The table as it was, and no other attempt's lease. */
    reset: () =>
      direct.client.query(`
        drop table if exists t; create table t (k text primary key, v text);
        insert into t values ('a', '1'), ('b', 'old'), ('d', '4')`),
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]()
      await direct[Symbol.asyncDispose]()
    },
  }
}

for (const { name, url } of postgresServers()) {
  test(`a commit whose answer is lost is looked up: it has arrived, or nothing was written (${name})`, async () => {
    await using b = await bench(url)
    await b.reset()
    await load(postgres({ url: b.url }), { ...LOAD, rows: BEFORE })
    b.proxy.arm({ cut: 'after', at: writingCommit(b.proxy) })
    expect(await load(postgres({ url: b.proxy.url }), LOAD)).toMatchObject({
      inserted: 1,
      updated: 1,
      deleted: 1,
    })
    expect(await b.table()).toEqual(LOAD.rows)
    await b.reset()
    b.proxy.arm({ cut: 'before', at: writingCommit(b.proxy) })
    await expect(load(postgres({ url: b.proxy.url }), LOAD)).rejects.toMatchObject({
      code: 'STET_CONNECTION',
      exitStatus: 75,
    })
    expect(await b.table()).toEqual(BEFORE)
  })

  test(`an outcome that nobody can be asked about is said to be unknown, and a rerun finds it done (${name})`, async () => {
    await using b = await bench(url)
    await b.reset()
    const proxy = b.proxy
    const fault = proxy.arm({ cut: 'after', at: writingCommit(proxy) })
    void fault.fired.then(() => proxy[Symbol.asyncDispose]())
    const attempt = load(postgres({ url: proxy.url }), { ...LOAD, attemptId: 'lost', lockTimeoutMs: 300 })
    await expect(attempt).rejects.toMatchObject({ code: 'STET_OUTCOME_UNKNOWN', exitStatus: 76 })
    expect(await b.table()).toEqual(LOAD.rows)
    expect(await load(postgres({ url: b.url }), { ...LOAD, attemptId: 'again' })).toMatchObject({
      inserted: 0,
      updated: 0,
      deleted: 0,
    })
  })

  test(`G7: nothing is sent that a transaction pooler would spread over sessions (${name})`, async () => {
    await using b = await bench(url)
    await load(postgres({ url: b.proxy.url }), LOAD)
    await load(postgres({ url: b.proxy.url }), { ...LOAD, rows: BEFORE })
    const sent = b.proxy.units()
    const statements = sent.flatMap(({ sql }) => sql.split(';')).map((sql) => sql.trim())
    expect(statements.filter((sql) => /^set (?!local )/i.test(sql))).toEqual([])
    expect(
      statements.filter((sql) => /pg_(try_)?advisory_lock|^(listen|prepare|declare)\b/i.test(sql)),
    ).toEqual([])
    // A table that outlives the transaction would be found by the next client of the same session.
    expect(
      statements.filter((sql) => /create temp table/i.test(sql) && !/on commit drop/i.test(sql)),
    ).toEqual([])
    // Every transaction starts with its settings, whatever the session had before.
    const first = sent.filter(({ n, transaction, sql }) => n === transaction && /^begin/i.test(sql))
    expect(first.length).toBeGreaterThan(4)
    expect(first.filter(({ sql }) => !sql.includes('set local datestyle'))).toEqual([])
  })

  test(`a failure leaves the table as it was and its code in the run log (${name})`, async () => {
    await using b = await bench(url)
    await b.reset()
    const failing = load(postgres({ url: b.url }), {
      ...LOAD,
      attemptId: 'bad',
      beforeCommit: () => Promise.reject(new Error('stop here')),
    })
    await expect(failing).rejects.toThrow('stop here')
    expect(await b.table()).toEqual(BEFORE)
    expect(
      await b.rows(
        `select status, error_code, error_message, rows_inserted, attempt_id is not null from stet.run`,
      ),
    ).toEqual([['failed', 'TEST', 'stop here', '0', true]])
    expect(await b.rows('select attempt_id from stet.lease')).toEqual([[null]])
  })

  test(`an abort ends with its own reason, frees the server and leaves the table as it was (${name})`, async () => {
    await using b = await bench(url)
    await b.reset()
    await load(postgres({ url: b.url }), { ...LOAD, rows: BEFORE })
    await b.direct.query('begin; lock table t in access exclusive mode')
    const controller = new AbortController()
    const reason = new Error('the user said stop')
    const aborted = load(postgres({ url: b.url }), {
      ...LOAD,
      attemptId: 'aborted',
      signal: controller.signal,
    })
    await using watch = await connect(b.url)
    const waiting = async () =>
      (
        await watch.client.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
      ).rows.length > 0
    while (!(await waiting())) await new Promise((resolve) => setImmediate(resolve))
    controller.abort(reason)
    await expect(aborted).rejects.toBe(reason)
    while (await waiting()) await new Promise((resolve) => setImmediate(resolve))
    await b.direct.query('rollback')
    expect(await b.table()).toEqual(BEFORE)
    expect(await b.rows(`select status from stet.run where attempt_id = 'aborted'`)).toEqual([['failed']])
    expect(await load(postgres({ url: b.url }), LOAD)).toMatchObject({ inserted: 1, updated: 1, deleted: 1 })
  })

  test(`a stream that breaks off on either side never counts as a whole one (${name})`, async () => {
    await using b = await bench(url)
    await using local = await openLocalEngine()
    await using connection = await openConnection(await loadDriver(), { connectionString: b.url })
    await connection.query('create table s (v text); create table picky (v int check (v < 1000))')
    const failures: readonly (readonly [string, string, RegExp])[] = [
      [
        `select case when i = 300000 then error('boom')::varchar else i::varchar end from range(500000) as r (i)`,
        's',
        /boom/,
      ],
      ['select * from missing', 's', /missing/],
      ['select i from range(500000) as r (i)', 'picky', /picky_v_check/],
      ['select i, i from range(10) as r (i)', 's', /extra data/],
      [`select 'x' from range(10)`, 'nowhere', /nowhere/],
    ]
    for (const [select, into, message] of failures) {
      await connection.query('begin')
      await expect(pushRows(connection, local, { select, into }), select).rejects.toThrow(message)
      await connection.query('rollback')
    }
    expect(await b.rows('select (select count(*) from s), (select count(*) from picky)')).toEqual([
      ['0', '0'],
    ])
    expect(
      await pushRows(connection, local, {
        select: 'select i::varchar from range(500000) as r (i)',
        into: 's',
      }),
    ).toBe(500_000)
    const columns = [{ id: 'c0', readAs: 'VARCHAR', value: 'c0', unheld: null }]
    await expect(
      pullRows(connection, local, 'select 1, 1 / (300000 - i) from generate_series(1, 500000) as i', columns),
    ).rejects.toThrow(/division by zero/)
    expect((await pullRows(connection, local, 'select 1, v from s', columns)).rows).toBe(500_000)
  })
}

// One server is enough here: the contract suite cuts at every message of every strategy, on both.
test(`G1: cut before and after every message, each ends as before or as after, and the rerun ends the same`, async () => {
  await using b = await bench(inject('postgresUrl'))
  await b.reset()
  await load(postgres({ url: b.proxy.url }), LOAD)
  const first = b.proxy.units().length
  await b.reset()
  await load(postgres({ url: b.proxy.url }), LOAD)
  const messages = b.proxy.units().length - first
  expect(messages).toBeGreaterThan(20)
  const outcomes = new Set<string>()
  for (const cut of ['before', 'after'] as const) {
    for (let at = 1; at <= messages; at++) {
      await b.reset()
      const fault = b.proxy.arm({ cut, at })
      const attemptId = `${cut}-${at}`
      const outcome = await load(postgres({ url: b.proxy.url }), {
        ...LOAD,
        attemptId,
        leaseTimeoutMs: 600_000,
      }).then(
        () => 'succeeded',
        (error: { code?: string }) => error.code ?? String(error),
      )
      fault.disarm()
      outcomes.add(outcome)
      const where = `${cut} message ${at}`
      expect(['succeeded', 'STET_CONNECTION'], where).toContain(outcome)
      expect(await b.table(), where).toEqual(outcome === 'succeeded' ? LOAD.rows : BEFORE)
      const recorded = await b.rows(
        `select count(*) from stet.run where attempt_id = '${attemptId}' and status = 'succeeded'`,
      )
      expect(recorded, where).toEqual([[outcome === 'succeeded' ? '1' : '0']])
      // Directly after, without waiting for anything to time out.
      await load(postgres({ url: b.url }), { ...LOAD, leaseTimeoutMs: 600_000, lockTimeoutMs: 5_000 })
      expect(await b.table(), where).toEqual(LOAD.rows)
    }
  }
  expect(outcomes).toEqual(new Set(['succeeded', 'STET_CONNECTION']))
  expect(await b.rows(`select count(*) from stet.run where status = 'running'`)).toEqual([['0']])
}, 300_000)

/** The commit of the rows: the third of an attempt whose first two are the record's and the lease's. */
function writingCommit(proxy: WireProxy) {
  const seen = proxy.units().length
  return (unit: { sql: string; n: number; transaction: number }) =>
    unit.n > seen &&
    unit.sql === 'commit' &&
    proxy
      .units()
      .some((other) => other.transaction === unit.transaction && other.sql.startsWith('copy pg_temp'))
}
