import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { type Load, load } from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import type { Watermark } from '../../model/slice.ts'
import type { Reject } from '../../model/source.ts'
import type { History, Target } from '../../model/target.ts'
import { postgres } from './index.ts'

const LOAD: Load = {
  table: 't',
  write: { strategy: 'upsert', key: ['k'] },
  columns: { k: 'text', v: 'text' },
  rows: [['a', '1']],
}
const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
const { signal } = new AbortController()

/** What a database holds that the first released version has made and used; databases like it exist. */
const VERSION_1 = `
create schema stet;
create table stet.version (version integer primary key, applied_at timestamptz not null default clock_timestamp());
create table stet.lease (
  table_name text not null, slice text not null, epoch bigint not null, attempt_id text, run_id text, holder text,
  taken_at timestamptz, heartbeat_at timestamptz, timeout_ms bigint, backend_pid integer, backend_start timestamptz,
  primary key (table_name, slice));
create table stet.run (
  attempt_id text primary key, run_id text not null, pipeline text not null, source text not null,
  table_name text not null, slice text not null, strategy text not null, truth text not null, holder text not null,
  stet_version text not null, epoch bigint,
  status text not null check (status in ('running', 'succeeded', 'failed', 'interrupted')),
  started_at timestamptz not null default clock_timestamp(), finished_at timestamptz,
  rows_read bigint, rows_filtered bigint, rows_added bigint, rows_after_transform bigint, rows_rejected bigint,
  rows_duplicate bigint, rows_inserted bigint, rows_updated bigint, rows_unchanged bigint, rows_stale bigint,
  rows_frozen bigint, rows_deleted bigint,
  files jsonb not null default '[]', rejects jsonb not null default '[]', error_code text, error_message text);
create index run_by_start on stet.run (started_at desc);
create index run_by_run_id on stet.run (run_id);
insert into stet.version (version) values (1);
insert into stet.lease values ('public.t', 'all', 7);
insert into stet.run (attempt_id, run_id, pipeline, source, table_name, slice, strategy, truth, holder, stet_version, status, finished_at,
                      rows_read, rows_filtered, rows_added, rows_after_transform, rows_rejected, rows_duplicate,
                      rows_inserted, rows_updated, rows_unchanged, rows_stale, rows_frozen, rows_deleted)
values ('old', 'old', 'p', 's', 'public.t', 'all', 'upsert', 'source', 'h', '0.1.0', 'succeeded', clock_timestamp(), 3, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0),
       ('died', 'died', 'p', 's', 'public.t', 'all', 'upsert', 'source', 'h', '0.1.0', 'interrupted', clock_timestamp(), null, null, null, null, null, null, null, null, null, null, null, null);
create table t (k text primary key, v text)`

async function historyOf(
  target: Target,
  slice = 'all',
  mode: 'run' | 'plan' = 'plan',
  notice: (message: string) => void = () => undefined,
): Promise<History> {
  await using local = await openLocalEngine()
  await using session = await target.open({
    table: 't',
    write: LOAD.write,
    local,
    mode,
    lockTimeoutMs: 1_000,
    leaseTimeoutMs: 15_000,
    signal,
    notice,
  })
  return await session.history('p', slice)
}

function moveTo(value: string, readAt: string | null) {
  const watermark = { pipeline: 'p', table: 't', cursor: 'seq', value, definition: 'd', setBy: 'x', readAt }
  return { extras: { watermark } }
}

async function readAtOf(target: Target): Promise<string> {
  const { watermark } = await historyOf(target)
  return watermark?.setAt ?? ''
}

for (const { name, url } of postgresServers()) {
  test(`a record of version 1 is read as it is, and keeps its rows when a run brings it up to date (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(VERSION_1)
    const target = postgres({ url: database })
    {
      await using log = await target.openRunLog({ signal })
      const found = await log.list({ table: 't' })
      expect(found.map(({ attemptId }) => attemptId).toSorted()).toEqual(['died', 'old'])
      expect(found).toMatchObject([{ window: null }, { window: null, truth: 'source', logicalTime: null }])
      expect(await log.watermarks()).toEqual([])
      expect(await log.events()).toEqual([])
    }
    expect(await historyOf(target)).toEqual({ watermark: null, frozen: false })
    expect((await db.client.query('select max(version) as v from stet.version')).rows).toEqual([{ v: 1 }])
    await load(target, { ...LOAD, attemptId: 'new' })
    expect((await db.client.query('select max(version) as v from stet.version')).rows).toEqual([{ v: 2 }])
    const { rows } = await db.client.query(
      'select attempt_id, rows_read, rows_outside, rows_marked, rows_restored, rows_missing from stet.run order by attempt_id',
    )
    expect(rows.map((row) => Object.values(row))).toEqual([
      ['died', null, null, null, null, null],
      ['new', '0', '0', '0', '0', '0'],
      ['old', '3', '0', '0', '0', '0'],
    ])
    expect((await db.client.query(`select epoch from stet.lease where slice = 'all'`)).rows).toEqual([
      { epoch: '8' },
    ])
  })

  test(`who may not change a record of version 1 is told what lacks, and it is enough (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const role = `loader_${new URL(database).pathname.slice(1)}`
    await db.client.query(`${VERSION_1}; create role ${role} login;
      grant usage on schema stet to ${role}; grant select on stet.version to ${role};
      grant select, insert, update on stet.lease, stet.run, t to ${role}`)
    const asLoader = new URL(database)
    asLoader.username = role
    const target = postgres({ url: asLoader.href })
    const error = await load(target, LOAD).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STET_PRIVILEGE' })
    const hint = (error as { hint: string }).hint
    await db.client.query(hint.slice(hint.indexOf('\n')))
    const quarantine = [{ file: 'a.csv', line: 2, column: null, value: null, reason: 'bad' }]
    const extras = { watermark: moveTo('1', null).extras.watermark, quarantine }
    expect(await load(target, { ...LOAD, extras })).toMatchObject({ inserted: 1 })
    await load(target, { ...LOAD, ...moveTo('2', await readAtOf(target)), truth: 'snapshot' })
    await using record = await target.openRecord({ signal })
    expect(await record.thaw('t', 'all', 'me')).toBe(true)
    const forgotten = { pipeline: 'p', table: 't', cursor: 'seq', definition: 'd', value: null }
    await record.setWatermark(forgotten, 'me')
    // Least rights: what is on the record of people and rejects stays there.
    await using loader = await connect(asLoader.href)
    for (const table of ['event', 'quarantine']) {
      await expect(loader.client.query(`delete from stet.${table}`)).rejects.toThrow(/permission denied/)
    }
    await db.client.query(`drop owned by ${role}`)
  })

  test(`a plan of somebody who may not read the record says so, and knows of nothing (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await load(postgres({ url: database }), LOAD)
    const role = `planner_${new URL(database).pathname.slice(1)}`
    await db.client.query(`create role ${role} login`)
    const asPlanner = new URL(database)
    asPlanner.username = role
    const notices: string[] = []
    const target = postgres({ url: asPlanner.href })
    expect(await historyOf(target, 'all', 'plan', (message) => void notices.push(message))).toEqual({
      watermark: null,
      frozen: false,
    })
    expect(notices).toEqual([expect.stringContaining('may not be read')])
    await expect(historyOf(target, 'all', 'run')).rejects.toMatchObject({ code: 'STET_PRIVILEGE' })
    await db.client.query(`drop owned by ${role}`)
  })

  test(`the run log keeps truth, window, logical time, code and what is repeated, and finds by table (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    const window = { from: null, to: '2026-08-07 00:00:00+00' }
    const start = { logicalTime: '2026-08-07T02:00:00Z', code: 'c0de', rerunOf: 'zero' }
    await load(target, { ...LOAD, attemptId: 'one', truth: 'snapshot', start, record: { window } })
    await load(target, { ...LOAD, attemptId: 'two', table: 'u' })
    await using log = await target.openRunLog({ signal })
    expect(await log.find('one')).toMatchObject([{ truth: 'snapshot', window, ...start }])
    expect(await log.find('two')).toMatchObject([
      { truth: 'source', window: null, logicalTime: null, code: null, rerunOf: null },
    ])
    const named = async (table: string) => (await log.list({ table })).map(({ attemptId }) => attemptId)
    expect(await named('t')).toEqual(['one'])
    expect(await named('public.u')).toEqual(['two'])
    expect(await named('nowhere')).toEqual([])
  })

  test(`G4: the watermark moves in the commit of the rows, and only from the one that was read (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const target = postgres({ url: database })
    expect((await historyOf(target)).watermark).toBeNull()
    await load(target, { ...LOAD, attemptId: 'one', ...moveTo('2026-01-01 00:00:00+09', null) })
    const first = (await historyOf(target)).watermark
    expect(first).toEqual({
      pipeline: 'p',
      table: 'public.t',
      cursor: 'seq',
      value: '2026-01-01 00:00:00+09',
      definition: 'd',
      setAt: expect.stringMatching(MICROSECONDS),
      setBy: 'one',
    } satisfies Watermark)
    await using log = await target.openRunLog({ signal })
    expect(await log.watermarks()).toEqual([first])
    const refused = async (readAt: string | null, extra: Partial<Load> = {}) => {
      const run = load(target, { ...LOAD, rows: [['a', 'refused']], ...moveTo('9', readAt), ...extra })
      await expect(run).rejects.toMatchObject({
        code: 'STET_SERIALIZATION',
        message: expect.stringMatching(/watermark of p on public\.t was set by someone else/),
      })
      expect((await db.client.query('select v from t')).rows).toEqual([{ v: '1' }])
    }
    await refused(null)
    await refused('2026-01-01T00:00:00.000000Z')
    // A clock that was set back gives the new watermark no moment that another one has had.
    await db.client.query(`update stet.watermark set set_at = '2999-01-01T00:00:00.5Z'`)
    await load(target, { ...LOAD, ...moveTo('2', '2999-01-01T00:00:00.500000Z') })
    expect((await historyOf(target)).watermark).toMatchObject({
      value: '2',
      setAt: '2999-01-01T00:00:00.500001Z',
    })
    // One that another commits between the read and the commit.
    await refused('2999-01-01T00:00:00.500001Z', {
      beforeCommit: async () => void (await db.client.query(`update stet.watermark set set_at = now()`)),
    })
    const gone = await readAtOf(target)
    await db.client.query('delete from stet.watermark')
    await refused(gone)
    expect((await historyOf(target)).watermark).toBeNull()
  })

  test(`rejected rows are kept whole with their commit, once, however often the run is repeated (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const target = postgres({ url: database })
    const reject = (line: number | null, file: string | null, raw: string): Reject => ({
      file,
      line,
      column: 'v',
      value: 'x\0y',
      reason: 'no number',
      raw,
    })
    // More than one statement carries.
    const long = 'ü'.repeat(9_000)
    const many = Array.from({ length: 1_000 }, (_, n) => reject(n + 2, 'a.csv', `${n},${long}`))
    const quarantine = [...many, reject(7, null, 'a row of a query'), reject(null, null, 'a row of nowhere')]
    await load(target, { ...LOAD, attemptId: 'one', extras: { quarantine } })
    await load(target, { ...LOAD, attemptId: 'two', extras: { quarantine } })
    const count = async () =>
      (await db.client.query('select count(*)::int as n from stet.quarantine')).rows[0]?.n
    expect(await count()).toBe(1_002)
    const { rows } = await db.client.query(
      `select pipeline, table_name, slice, file, file_sha256, line, column_name, value, reason, raw, attempt_id
         from stet.quarantine where line = 2`,
    )
    expect(rows.map((row) => Object.values(row))).toEqual([
      ['p', 'public.t', 'all', 'a.csv', 'ab', '2', 'v', 'x\u2400y', 'no number', `0,${long}`, 'one'],
    ])
    // Another row of a source without files, in the same place, is another row; so is one of another file.
    const others = [reject(7, null, 'another row'), reject(2, 'a.csv', 'b')]
    const files = [{ path: 'a.csv', bytes: 3, sha256: 'cd' }]
    await load(target, { ...LOAD, extras: { quarantine: others }, record: { files } })
    expect(await count()).toBe(1_004)
    const failing = load(target, {
      ...LOAD,
      extras: { quarantine: [reject(1, null, 'of a run that fails')], ...moveTo('1', 'never').extras },
    })
    await expect(failing).rejects.toMatchObject({ code: 'STET_SERIALIZATION' })
    expect(await count()).toBe(1_004)
  })

  test(`G12: a snapshot that brought rows freezes its slice until it is thawed, and again after the next (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    const isFrozen = async (slice: string) => (await historyOf(target, slice)).frozen
    await load(target, { ...LOAD, slice: 'monday', truth: 'source' })
    expect(await isFrozen('monday')).toBe(false)
    await load(target, { ...LOAD, slice: 'monday', truth: 'snapshot', rows: [] })
    expect(await isFrozen('monday')).toBe(false)
    const refused = { ...LOAD, slice: 'monday', truth: 'snapshot', ...moveTo('1', 'never') } as const
    await expect(load(target, refused)).rejects.toMatchObject({ code: 'STET_SERIALIZATION' })
    expect(await isFrozen('monday')).toBe(false)
    await load(target, { ...LOAD, slice: 'monday', truth: 'snapshot' })
    expect(await isFrozen('monday')).toBe(true)
    expect(await isFrozen('tuesday')).toBe(false)
    await using record = await target.openRecord({ signal })
    expect(await record.thaw('t', 'tuesday', 'me@here')).toBe(false)
    expect(await record.thaw('t', 'monday', 'me@here')).toBe(true)
    expect(await isFrozen('monday')).toBe(false)
    expect(await record.thaw('t', 'monday', 'me@here')).toBe(false)
    await load(target, { ...LOAD, slice: 'monday', truth: 'snapshot' })
    expect(await isFrozen('monday')).toBe(true)
    await using log = await target.openRunLog({ signal })
    expect(await log.events()).toEqual([
      {
        at: expect.stringMatching(MICROSECONDS),
        kind: 'thaw',
        pipeline: null,
        table: 'public.t',
        slice: 'monday',
        detail: 'slice monday may change again, until the next snapshot of it',
        by: 'me@here',
      },
    ])
  })

  test(`a watermark set by hand is on the record, and stops a run that has read the one before (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    // Opened on a database that knows nothing yet.
    await using record = await target.openRecord({ signal })
    const mark = { pipeline: 'p', table: 't', cursor: 'seq', definition: 'd' }
    await record.setWatermark({ ...mark, value: null }, 'me')
    await record.setWatermark({ ...mark, value: '10' }, 'me')
    expect(await record.watermark('p', 'public.t')).toMatchObject({
      value: '10',
      setBy: 'me',
      table: 'public.t',
    })
    const readAt = await readAtOf(target)
    await expect(
      load(target, {
        ...LOAD,
        ...moveTo('20', readAt),
        beforeCommit: () => record.setWatermark({ ...mark, value: '5' }, 'you'),
      }),
    ).rejects.toMatchObject({ code: 'STET_SERIALIZATION' })
    expect(await record.watermark('p', 't')).toMatchObject({ value: '5', setBy: 'you' })
    await record.setWatermark({ ...mark, value: null }, 'me')
    expect(await record.watermark('p', 't')).toBeNull()
    await using log = await target.openRunLog({ signal })
    expect(
      (await log.events()).map(({ kind, pipeline, detail, by }) => [kind, pipeline, detail, by]),
    ).toEqual([
      ['watermark', 'p', 'seq: 5 → none', 'me'],
      ['watermark', 'p', 'seq: 10 → 5', 'you'],
      ['watermark', 'p', 'seq: none → 10', 'me'],
    ])
  })
}
