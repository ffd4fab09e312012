import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  differenceOf,
  openTestSession,
  recordOf,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import { openLocalEngine } from '../../local/engine.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { RunCounts } from '../../model/run.ts'
import { duckdb } from './index.ts'

const UPSERT = { strategy: 'upsert', key: ['id'] } as const
const CONTRACT = contractOf({ id: 'text' }, ['id'])
const DRIVER = pathToFileURL(createRequire(import.meta.url).resolve('@duckdb/node-api')).href
const NEVER = new AbortController().signal

test('the log tells every count, file, reject and error of a run, newest run first', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'x.duckdb') })
  const counts: RunCounts = {
    read: 1,
    filtered: 2,
    added: 3,
    afterTransform: 4,
    rejected: 5,
    duplicate: 6,
    inserted: 7,
    updated: 8,
    unchanged: 9,
    stale: 10,
    frozen: 11,
    deleted: 12,
    outside: 13,
    marked: 14,
    restored: 15,
    missing: 16,
  }
  const files = [{ path: `it's.csv`, bytes: 5, sha256: 'ab' }]
  const rejects = [{ file: 'a.csv', line: 3, column: 'x', value: '\u0000"é', reason: 'no' }]
  const window = { from: null, to: '2026-08-07 00:00:00+00' }
  const first = startOf({
    runId: 'r1',
    pipeline: 'one',
    slice: '2026-08-07',
    truth: 'snapshot',
    logicalTime: '2026-08-07T02:00:00Z',
    code: 'c0de',
    rerunOf: 'r0',
  })
  const second = startOf({ runId: 'r2', pipeline: 'two' })
  {
    await using opened = await openTestSession(target, 't', UPSERT)
    await opened.session.acquire(first)
    await opened.session.describe()
    await opened.session.prepare(CONTRACT)
    await opened.session.begin()
    await opened.session.commit(recordOf(first, counts, { files, rejects, window }))
  }
  {
    await using opened = await openTestSession(target, 'main.other', UPSERT)
    await opened.session.acquire(second)
    await opened.session.fail(
      recordOf(second, {}, { status: 'failed', error: { code: 'STET_TIE', message: `it's a tie` } }),
    )
  }
  await using log = await target.openRunLog({ signal: NEVER })
  const entries = await log.list({})
  expect(entries.map(({ runId, status }) => [runId, status])).toEqual([
    ['r2', 'failed'],
    ['r1', 'succeeded'],
  ])
  expect(entries[1]).toMatchObject({
    ...first,
    counts,
    window,
    files,
    rejects,
    error: null,
    verdict: 'changed',
  })
  expect(entries[1]?.durationMs).toBeGreaterThanOrEqual(0)
  expect(entries[0]).toMatchObject({ error: { code: 'STET_TIE', message: `it's a tie` } })
  expect((await log.list({ pipeline: 'one' })).map(({ runId }) => runId)).toEqual(['r1'])
  expect((await log.list({ table: 'T', last: 5 })).map(({ runId }) => runId)).toEqual(['r1'])
  expect((await log.list({ last: 1 })).map(({ runId }) => runId)).toEqual(['r2'])
})

test('runs are found by run id, by attempt id, and by a beginning that only one run has', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'x.duckdb') })
  for (const [runId, attemptId] of [
    ['night-1', 'aa11'],
    ['night-1', 'ab22'],
    ['night-2', 'bb33'],
  ] as const) {
    await using opened = await openTestSession(target, 't', UPSERT)
    await opened.session.acquire(startOf({ runId, attemptId }))
  }
  await using log = await target.openRunLog({ signal: NEVER })
  const found = async (id: string) => (await log.find(id)).map(({ attemptId }) => attemptId)
  expect(await found('night-1')).toEqual(['ab22', 'aa11'])
  expect(await found('bb33')).toEqual(['bb33'])
  expect(await found('b')).toEqual(['bb33'])
  expect(await found('a')).toEqual(['ab22', 'aa11'])
  expect(await found('night')).toEqual([])
  expect(await found('')).toEqual([])
})

test('a missing file has no runs, and is not made by asking', async () => {
  await using folder = await temporaryFolder()
  await using log = await duckdb({ file: join(folder.path, 'x.duckdb') }).openRunLog({ signal: NEVER })
  await expect(log.list({})).rejects.toMatchObject({
    code: 'STET_CONFIG',
    message: expect.stringMatching(/No run has been recorded: .*x\.duckdb does not exist/),
  })
})

test('a database that Stet has never loaded into has an empty log', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  await using log = await duckdb({ file }).openRunLog({ signal: NEVER })
  expect(await log.list({})).toEqual([])
})

test('a run that was killed is marked as interrupted by the next, and nothing has to be unlocked', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  // What an attempt has done when it dies in the middle: its first line is committed, its rows are not.
  const script = `
    const { DuckDBInstance } = await import(${JSON.stringify(DRIVER)})
    const connection = await (await DuckDBInstance.create(${JSON.stringify(file)})).connect()
    await connection.run("insert into stet.run select * replace ('dead' as attempt_id, 'dead' as run_id, 'running' as status) from stet.run limit 1")
    await connection.run('begin')
    await connection.run("insert into t values ('half')")
    process.kill(process.pid, 'SIGKILL')`
  const { signal } = spawnSync(process.execPath, ['--input-type=module', '--eval', script])
  expect(signal).toBe('SIGKILL')
  await writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', 'b', null, null)`])
  await using log = await target.openRunLog({ signal: NEVER })
  expect(await log.find('dead')).toMatchObject([{ status: 'interrupted', verdict: 'interrupted' }])
  expect(await byHand(file, 'from t order by id')).toEqual([['a'], ['b']])
})

test('a record that a newer Stet has written is refused, by runs and by the log', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  await byHand(file, `insert into stet.version values (99, '9.0.0', now())`)
  await expect(writeByHand(target, 't', UPSERT, CONTRACT, [])).rejects.toMatchObject({ code: 'STET_VERSION' })
  await using log = await target.openRunLog({ signal: NEVER })
  await expect(log.list({})).rejects.toMatchObject({ code: 'STET_VERSION' })
})

test('what a person did is on the record of the table, however its name is written', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'x.duckdb') })
  await writeByHand(target, '"Orders"', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  {
    await using record = await target.openRecord({ signal: NEVER })
    await record.forgetSlice('p', '"Orders"', '2026-05-01', 'somebody@here')
  }
  await using log = await target.openRunLog({ signal: NEVER })
  const [run] = await log.list({ table: 'orders' })
  expect((await log.events()).map(({ kind, table }) => [kind, table])).toEqual([['forget', run?.table]])
})

test('a failed transaction whose COMMIT says nothing is no success (planted fault)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await using local = await openLocalEngine()
  // The transaction fails after its last statement, as an interrupt that comes late makes it.
  const failing: LocalConnection = {
    ...local,
    connect: async () => {
      const inner = await local.connect()
      return {
        ...inner,
        run: async (sql) => {
          if (sql === 'commit') await inner.run(`select error('planted')`).catch(() => undefined)
          await inner.run(sql)
        },
      }
    },
  }
  await using session = await duckdb({ file }).open({
    table: 't',
    write: UPSERT,
    local: failing,
    mode: 'run',
    lockTimeoutMs: 1_000,
    leaseTimeoutMs: 1_000,
    signal: NEVER,
    notice: () => undefined,
  })
  const start = startOf()
  await writeByHand(duckdb({ file }), 'other', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  await session.acquire(start)
  await session.describe()
  await session.prepare(CONTRACT)
  await session.begin()
  await session.apply(CONTRACT, await differenceOf(local, CONTRACT, [`('insert', 'a', null, null)`]))
  await expect(session.commit(recordOf(start, { inserted: 1 }))).rejects.toMatchObject({
    code: 'STET_INTERNAL',
    message: expect.stringContaining('said nothing'),
  })
  await session.fail(
    recordOf(start, {}, { status: 'failed', error: { code: 'STET_INTERNAL', message: 'planted' } }),
  )
  expect(await byHand(file, `select count(*) from duckdb_tables() where table_name = 't'`)).toEqual([['0']])
  await using log = await duckdb({ file }).openRunLog({ signal: NEVER })
  expect((await log.find(start.attemptId))[0]).toMatchObject({
    status: 'failed',
    error: { message: 'planted' },
  })
})

test('an abort in the middle of a write leaves the table as it was and is logged', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const controller = new AbortController()
  const reason = new Error('enough')
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  const start = startOf()
  {
    await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, { signal: controller.signal })
    const { local, session } = opened
    await session.acquire(start)
    await session.describe()
    await session.prepare(CONTRACT)
    await session.begin()
    await local.run(`
      create view endless as
      select 'insert' as op, i::varchar as c0, null as content_hash, null as row_id
        from range(100000000000) as r(i)`)
    const writing = session.apply(CONTRACT, {
      table: 'endless',
      inserts: 1,
      updates: 0,
      deletes: 0,
      marks: 0,
    })
    setImmediate(() => controller.abort(reason))
    await expect(writing).rejects.toBe(reason)
    await session.fail(
      recordOf(start, {}, { status: 'interrupted', error: { code: 'STET_INTERRUPTED', message: 'enough' } }),
    )
  }
  expect(await byHand(file, 'from t')).toEqual([['a']])
  await using log = await duckdb({ file }).openRunLog({ signal: NEVER })
  expect((await log.find(start.attemptId))[0]).toMatchObject({ status: 'interrupted' })
})
