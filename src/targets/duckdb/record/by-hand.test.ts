import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  openTestSession,
  recordOf,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../../test/support/duckdb-session.ts'
import type { Reject } from '../../../model/source.ts'
import type { CommitExtras, History, Target } from '../../../model/target.ts'
import { duckdb } from '../index.ts'

const WRITE = { strategy: 'upsert', key: ['id'] } as const
const CONTRACT = contractOf({ id: 'text' }, ['id'])
const NEVER = new AbortController().signal
const SNAPSHOT = { truth: 'snapshot', slice: 'd1' } as const
const ROW = [`('insert', 'a', null, null)`]

/** What a run, or a plan, learns of earlier ones. */
async function historyOf(
  target: Target,
  slice: string,
  mode: 'run' | 'plan' = 'plan',
  table = 't',
): Promise<History> {
  await using opened = await openTestSession(target, table, WRITE, { mode })
  if (mode === 'run') await opened.session.acquire(startOf({ slice }))
  const history = await opened.session.history('test', slice)
  return history
}

const EXTRAS: CommitExtras = {
  watermark: {
    pipeline: 'test',
    cursor: 'seen',
    value: '2026-08-07 00:00:00+00',
    definition: '{}',
    setBy: 'x',
    readAt: null,
  },
  quarantine: [],
}

function extrasOf(readAt: string | null, value: string): CommitExtras {
  return { ...EXTRAS, watermark: EXTRAS.watermark && { ...EXTRAS.watermark, readAt, value } }
}

test('a file without a record, or none at all, has no history, and none is made by a plan', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const nothing = { watermark: null, frozen: false }
  expect(await historyOf(duckdb({ file }), 'all')).toEqual(nothing)
  await byHand(file, 'create table t(id varchar)')
  expect(await historyOf(duckdb({ file }), 'all')).toEqual(nothing)
  expect(await byHand(file, `select count(*) from duckdb_schemas() where schema_name = 'stet'`)).toEqual([
    ['0'],
  ])
  expect(await historyOf(duckdb({ file }), 'all', 'run')).toEqual(nothing)
})

test('a slice is frozen by a snapshot that ended well with rows, until it is thawed, and anew by the next (G12)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const finish = (start: object, afterTransform: number, key: string) =>
    writeByHand(target, 't', WRITE, CONTRACT, [`('insert', '${key}', null, null)`], {
      start,
      counts: { afterTransform },
    })
  const frozen = async (slice = 'd1', mode: 'run' | 'plan' = 'plan', table = 't') =>
    (await historyOf(target, slice, mode, table)).frozen
  await finish({ truth: 'source', slice: 'd1' }, 1, 'a')
  expect(await frozen()).toBe(false)
  await finish(SNAPSHOT, 0, 'b')
  expect(await frozen()).toBe(false)
  {
    await using opened = await openTestSession(target, 't', WRITE)
    const start = startOf(SNAPSHOT)
    await opened.session.acquire(start)
    await opened.session.fail(recordOf(start, { afterTransform: 1 }, { status: 'failed' }))
  }
  expect(await frozen()).toBe(false)
  await finish(SNAPSHOT, 1, 'c')
  expect(await frozen()).toBe(true)
  expect(await frozen('d1', 'run')).toBe(true)
  expect(await frozen('d2')).toBe(false)
  expect(await frozen('d1', 'plan', 'other')).toBe(false)

  await using record = await target.openRecord({ signal: NEVER })
  expect(await record.thaw('other', 'd1', 'ann@host')).toBe(false)
  expect(await record.thaw('t', 'd2', 'ann@host')).toBe(false)
  expect(await record.thaw('main.T', 'd1', 'ann@host')).toBe(true)
  expect(await frozen()).toBe(false)
  expect(await record.thaw('t', 'd1', 'ann@host')).toBe(false)
  await using log = await target.openRunLog({ signal: NEVER })
  expect(await log.events()).toMatchObject([
    { kind: 'thaw', pipeline: null, table: 't', slice: 'd1', by: 'ann@host' },
  ])
  await finish(SNAPSHOT, 1, 'd')
  expect(await frozen()).toBe(true)
})

test('a thaw holds also when the clock has been put back since the run', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', WRITE, CONTRACT, ROW, { start: SNAPSHOT, counts: { afterTransform: 1 } })
  await byHand(file, `update stet.run set finished_at = now() + interval 1 hour`)
  await using record = await target.openRecord({ signal: NEVER })
  expect(await record.thaw('t', 'd1', 'ann@host')).toBe(true)
  expect(await historyOf(target, 'd1')).toMatchObject({ frozen: false })
})

test('a watermark is committed with the rows, and refused when another has been set since it was read (G4)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const move = (key: string, extras: CommitExtras) =>
    writeByHand(target, 'main.t', WRITE, CONTRACT, [`('insert', '${key}', null, null)`], {
      extras,
      start: { attemptId: `attempt-${key}` },
    })
  await move('a', extrasOf(null, '1'))
  const first = (await historyOf(target, 'all')).watermark
  expect(first).toEqual({
    pipeline: 'test',
    table: 't',
    cursor: 'seen',
    value: '1',
    definition: '{}',
    setBy: 'attempt-a',
    setAt: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/),
  })
  const refused = { code: 'STET_SERIALIZATION', message: expect.stringContaining('attempt-a set it to 1') }
  await expect(move('b', extrasOf(null, '2'))).rejects.toMatchObject(refused)
  await expect(move('c', extrasOf('2026-01-01T00:00:00.000000Z', '2'))).rejects.toMatchObject(refused)
  expect(await byHand(file, 'from t')).toEqual([['a']])
  expect((await historyOf(target, 'all')).watermark).toEqual(first)

  await move('d', extrasOf(first?.setAt ?? null, '2'))
  const second = (await historyOf(target, 'all')).watermark
  expect(second).toMatchObject({ value: '2', setBy: 'attempt-d' })
  await using record = await target.openRecord({ signal: NEVER })
  await record.setWatermark(
    { pipeline: 'test', table: 't', cursor: 'seen', definition: '{}', value: null },
    'ann@host',
  )
  await expect(move('e', extrasOf(second?.setAt ?? null, '3'))).rejects.toMatchObject({
    code: 'STET_SERIALIZATION',
    message: expect.stringContaining('forgotten'),
  })
  await writeByHand(target, 't', WRITE, CONTRACT, [], { extras: { watermark: null, quarantine: [] } })
  expect((await historyOf(target, 'all')).watermark).toBeNull()
})

test('each setting of a watermark has a moment of its own, however fast they come and whatever the clock says', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await using record = await target.openRecord({ signal: NEVER })
  const named = { pipeline: 'p', table: 't', cursor: 'seen', definition: '{}' }
  await record.setWatermark({ ...named, value: '1' }, 'ann@host')
  await byHand(file, `update stet.watermark set set_at = now() + interval 1 hour`)
  const before = await record.watermark('p', 't')
  await record.setWatermark({ ...named, value: '1' }, 'ann@host')
  const after = await record.watermark('p', 't')
  expect(String(after?.setAt) > String(before?.setAt)).toBe(true)
})

test('a person sets, reads, rewinds and forgets a watermark, and the record tells who and what', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await using record = await target.openRecord({ signal: NEVER })
  expect(await record.watermark('p', 'orders')).toBeNull()
  expect(await record.thaw('orders', 'all', 'ann@host')).toBe(false)
  await using log = await target.openRunLog({ signal: NEVER })
  await expect(log.watermarks()).rejects.toMatchObject({ code: 'STET_CONFIG' })
  const named = { pipeline: `o'brien`, table: 'main.orders', definition: '{"a":1}' }
  await record.setWatermark({ ...named, cursor: 'seen', value: '2026-02-01' }, 'ann@host')
  await record.setWatermark({ ...named, cursor: 'seen', value: '2026-01-01' }, 'bob@host')
  await record.setWatermark({ ...named, cursor: 'number', value: '7' }, 'bob@host')
  expect(await record.watermark(`o'brien`, 'orders')).toMatchObject({
    table: 'orders',
    cursor: 'number',
    value: '7',
    definition: '{"a":1}',
    setBy: 'bob@host',
  })
  expect(await log.watermarks()).toMatchObject([{ pipeline: `o'brien`, table: 'orders', value: '7' }])
  await record.setWatermark({ ...named, cursor: 'number', value: null }, 'ann@host')
  expect(await record.watermark(`o'brien`, 'orders')).toBeNull()
  expect(await log.watermarks()).toEqual([])
  expect((await log.events()).map(({ kind, pipeline, detail, by }) => [kind, pipeline, detail, by])).toEqual([
    ['watermark', `o'brien`, 'number: 7 -> none', 'ann@host'],
    ['watermark', `o'brien`, 'number: 2026-01-01 (of seen) -> 7', 'bob@host'],
    ['watermark', `o'brien`, 'seen: 2026-02-01 -> 2026-01-01', 'bob@host'],
    ['watermark', `o'brien`, 'seen: none -> 2026-02-01', 'ann@host'],
  ])
})

test('quarantined rows are kept whole in the commit of the rows, and not doubled by a rerun (G9)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const rejects: Reject[] = [
    { file: 'a.csv', line: 7, column: 'n', value: '\u0000"é', reason: 'is no number', raw: `7,\u0000"é` },
    {
      file: 'a.csv',
      line: 7,
      column: 'm',
      value: 'x',
      reason: 'is no number either',
      raw: 'the same record',
    },
    { file: 'a.csv', line: null, column: null, value: null, reason: 'is ragged' },
    { file: null, line: 7, column: 'n', value: 'y', reason: 'is no number', raw: 'of no file' },
    ...Array.from({ length: 2_500 }, (_, index) => ({
      file: 'b.csv',
      line: index + 1,
      column: 'n',
      value: 'z',
      reason: 'is no number',
      raw: String(index),
    })),
  ]
  const run = (sha256: string, start: object, rows: readonly string[] = []) =>
    writeByHand(target, 't', WRITE, CONTRACT, rows, {
      start,
      extras: { watermark: null, quarantine: rejects },
      record: {
        files: [
          { path: 'a.csv', bytes: 1, sha256 },
          { path: 'b.csv', bytes: 1, sha256: 'bb' },
        ],
      },
    })
  const kept = () => byHand(file, 'select count(*), count(distinct attempt_id) from stet.quarantine')
  await run('aa', { slice: 'd1', attemptId: 'first' })
  expect(await kept()).toEqual([['2503', '1']])
  await run('aa', { slice: 'd1', attemptId: 'second' })
  expect(await kept()).toEqual([['2503', '1']])
  await run('ab', { slice: 'd1', attemptId: 'third' })
  expect(await kept()).toEqual([['2505', '2']])
  await run('aa', { slice: 'd2', attemptId: 'fourth' })
  expect(await kept()).toEqual([['5008', '3']])
  expect(
    await byHand(
      file,
      `select pipeline, table_name, slice, file, file_sha256, line, column_name, value, reason, raw
         from stet.quarantine
        where attempt_id = 'first' and (file is null or file = 'a.csv')
        order by file nulls last, line`,
    ),
  ).toEqual([
    ['test', 't', 'd1', 'a.csv', 'aa', '2', null, null, 'is ragged', null],
    ['test', 't', 'd1', 'a.csv', 'aa', '7', 'n', '\u0000"é', 'is no number', '7,\u0000"é'],
    [
      'test',
      't',
      'd1',
      null,
      expect.stringMatching(/^[0-9a-f]{64}$/),
      '7',
      'n',
      'y',
      'is no number',
      'of no file',
    ],
  ])
  const twice = [`('insert', 'a', null, null)`, `('insert', 'a', null, null)`]
  await expect(run('ac', { slice: 'd1' }, twice)).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT' })
  expect(await kept()).toEqual([['5008', '3']])
})

/** The record as the first version made it. */
const VERSION_1 = [
  'create schema stet',
  'create table stet.version (version integer not null, stet_version varchar not null, applied_at timestamptz not null)',
  `insert into stet.version values (1, '0.1.0', now())`,
  `create table stet.run (
     attempt_id varchar not null, run_id varchar not null, pipeline varchar not null, source varchar not null,
     slice varchar not null, table_name varchar not null, strategy varchar not null, truth varchar not null,
     key_columns varchar, table_rows bigint, holder varchar not null, stet_version varchar not null,
     status varchar not null, started_at timestamptz not null, finished_at timestamptz,
     rows_read bigint, rows_filtered bigint, rows_added bigint, rows_after_transform bigint, rows_rejected bigint,
     rows_duplicate bigint, rows_inserted bigint, rows_updated bigint, rows_unchanged bigint, rows_stale bigint,
     rows_frozen bigint, rows_deleted bigint, files varchar, rejects varchar, error_code varchar, error_message varchar)`,
  'create table t(id varchar)',
  `insert into t values ('old')`,
  `insert into stet.run
     values ('done', 'done', 'test', 's', 'all', 't', 'upsert', 'source', '["id"]', 1, 'h', '0.1.0', 'succeeded',
             now(), now(), 5, 0, 0, 5, 0, 0, 1, 0, 4, 0, 0, 0, '[]', '[]', null, null),
            ('cut', 'cut', 'test', 's', 'all', 't', 'upsert', 'source', null, null, 'h', '0.1.0', 'running',
             now() - interval 1 hour, null, ${Array(12).fill('null').join(', ')}, null, null, null, null)`,
]

test('a record of the first version is read as it is, and brought up to date by the next run with its lines', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await byHand(file, ...VERSION_1)
  await using log = await target.openRunLog({ signal: NEVER })
  const old = { runId: 'done', window: null, logicalTime: null, code: null, rerunOf: null, truth: 'source' }
  const counts = { read: 5, inserted: 1, unchanged: 4, outside: 0, marked: 0, restored: 0, missing: 0 }
  const before = await log.list({})
  expect(before).toMatchObject([
    { ...old, counts },
    { runId: 'cut', counts: null, status: 'running' },
  ])
  expect(await log.watermarks()).toEqual([])
  expect(await log.events()).toEqual([])
  expect(await historyOf(target, 'all')).toEqual({ watermark: null, frozen: false })
  await using record = await target.openRecord({ signal: NEVER })
  expect(await record.watermark('test', 't')).toBeNull()
  expect(await byHand(file, 'select max(version) from stet.version')).toEqual([['1']])

  await writeByHand(target, 't', WRITE, CONTRACT, [`('insert', 'new', null, null)`], {
    start: { runId: 'new' },
    extras: extrasOf(null, '1'),
  })
  const after = await log.list({})
  expect(after.map(({ runId, status }) => [runId, status])).toEqual([
    ['new', 'succeeded'],
    ['done', 'succeeded'],
    ['cut', 'interrupted'],
  ])
  expect(after[1]).toEqual(before[0])
  expect(
    await byHand(
      file,
      `select run_id, rows_outside, rows_marked, rows_restored, rows_missing from stet.run where run_id <> 'new' order by 1`,
    ),
  ).toEqual([
    ['cut', null, null, null, null],
    ['done', '0', '0', '0', '0'],
  ])
  expect(await log.watermarks()).toMatchObject([{ pipeline: 'test', table: 't', value: '1' }])
})

test('a person’s hand brings a record up to date too, and a newer one is refused', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await byHand(file, ...VERSION_1)
  await using record = await target.openRecord({ signal: NEVER })
  const watermark = { pipeline: 'test', table: 't', cursor: 'seen', definition: '{}', value: '1' }
  await record.setWatermark(watermark, 'ann@host')
  expect((await historyOf(target, 'all')).watermark).toMatchObject({ value: '1', setBy: 'ann@host' })
  await byHand(file, `insert into stet.version values (99, '9.0.0', now())`)
  const newer = { code: 'STET_VERSION' }
  await expect(record.watermark('test', 't')).rejects.toMatchObject(newer)
  await expect(record.setWatermark(watermark, 'ann@host')).rejects.toMatchObject(newer)
  await expect(record.thaw('t', 'all', 'ann@host')).rejects.toMatchObject(newer)
  await expect(historyOf(target, 'all')).rejects.toMatchObject(newer)
})
