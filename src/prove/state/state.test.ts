import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { embeddedBinaries } from '../../../test/support/postgres-binaries.ts'
import { dataFileReader } from '../datafiles/reader.ts'
import { type Cluster, type Session, startCluster } from '../sandbox/cluster.ts'
import { openGround } from '../sandbox/fence.ts'
import { diffTable, isTwiceAsMuch, type TableDiff } from './diff.ts'
import { diffFiles, filesOf } from './files.ts'
import { digestOf, type Fingerprint, fingerprint, touchedRows, volatileColumns } from './fingerprint.ts'
import { ignoring } from './ignore.ts'
import { listTables } from './tables.ts'

let cluster: Cluster
let one: Session
let two: Session

beforeAll(async () => {
  cluster = await startCluster(await embeddedBinaries(), openGround())
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})
beforeEach(async () => {
  one = await cluster.open(await cluster.create())
  two = await cluster.open(await cluster.create())
  return async () => {
    await one[Symbol.asyncDispose]()
    await two[Symbol.asyncDispose]()
  }
})

const all = ignoring([])

async function both(sql: string): Promise<void> {
  await one.query(`set search_path to public; ${sql}`)
  await two.query(`set search_path to public; ${sql}`)
}

async function prints(): Promise<readonly [Fingerprint, Fingerprint]> {
  return [await fingerprint(one, all), await fingerprint(two, all)]
}

async function diff(): Promise<TableDiff> {
  const [table] = await listTables(one)
  if (table === undefined) throw new Error('no table')
  return diffTable(one, two, table, all)
}

describe('fingerprint', () => {
  test('equal rows in another order are one state', async () => {
    await both('create table t (a int, b text)')
    await one.query("insert into t values (1, 'x'), (2, null)")
    await two.query("insert into t values (2, null), (1, 'x')")
    const [a, b] = await prints()
    expect(digestOf(a)).toBe(digestOf(b))
  })

  test('rows that are there twice do not cancel each other out', async () => {
    await both('create table t (a int)')
    await two.query('insert into t values (1), (1)')
    const [a, b] = await prints()
    expect(a.tables.get('t')?.full).not.toBe(b.tables.get('t')?.full)
  })

  test.each([
    ['null and the empty text', 'text', 'null', "''"],
    ['1.0 and 1.00', 'numeric', '1.0', '1.00'],
    ['a value and its upper case', 'text', "'a'", "'A'"],
    ['two numbers beyond 2^53', 'bigint', '9007199254740993', '9007199254740992'],
    ['two json texts of one object', 'json', `'{"a": 1}'`, `'{"a":1}'`],
  ])('%s are two states', async (_, type, left, right) => {
    await both(`create table t (v ${type})`)
    await one.query(`insert into t values (${left})`)
    await two.query(`insert into t values (${right})`)
    const [a, b] = await prints()
    expect(digestOf(a)).not.toBe(digestOf(b))
  })

  test('values swapped between two rows are another state', async () => {
    await both('create table t (a int, b int)')
    await one.query('insert into t values (1, 10), (2, 20)')
    await two.query('insert into t values (1, 20), (2, 10)')
    const [a, b] = await prints()
    expect(digestOf(a)).not.toBe(digestOf(b))
  })

  test('serial and identity columns belong to the state but not to its content', async () => {
    await both('create table t (id bigserial primary key, n int generated always as identity, v text)')
    await one.query("insert into t (v) values ('x')")
    await two.query("select nextval('t_id_seq')")
    await two.query("insert into t (v) values ('x')")
    const [a, b] = await prints()
    expect(a.tables.get('t')?.full).not.toBe(b.tables.get('t')?.full)
    expect(a.tables.get('t')?.content).toBe(b.tables.get('t')?.content)
  })

  test('partitions are compared, an index and an attached partition are seen', async () => {
    await both(
      'create table t (d int) partition by list (d); create table t1 partition of t for values in (1)',
    )
    await two.query('insert into t values (1)')
    await two.query('create index i on t1 (d)')
    const [a, b] = await prints()
    expect([...a.tables.keys()]).toEqual(['t1'])
    expect(b.tables.get('t1')?.rows).toBe(1)
    expect(b.definitions.filter((line) => !a.definitions.includes(line))).toEqual([
      'CREATE INDEX i ON public.t1 USING btree (d)',
    ])
  })

  test('columns that two runs fill differently are named', async () => {
    await both('create table t (v int, at timestamptz default clock_timestamp())')
    await both('insert into t values (1)')
    const [a, b] = await prints()
    expect(volatileColumns(a.tables, b.tables)).toEqual(['t.at'])
    const varying = ignoring([]).withVarying(['t.at'])
    expect(digestOf(await fingerprint(one, varying))).toBe(digestOf(await fingerprint(two, varying)))
    await two.query('update public.t set at = null')
    expect(digestOf(await fingerprint(one, varying))).not.toBe(digestOf(await fingerprint(two, varying)))
    expect(digestOf(await fingerprint(one, ignoring(['t.at'])))).toBe(
      digestOf(await fingerprint(two, ignoring(['*.at']))),
    )
  })
})

test('rows written again are counted though they are equal', async () => {
  await one.query('create table public.t as select g as v from generate_series(1, 10) as g')
  const before = await cluster.nextTransaction()
  await one.query('update public.t set v = v where v > 7')
  const transactions = (await cluster.nextTransaction()) - before
  expect(await touchedRows(one, transactions, all)).toEqual([{ table: 't', rows: 3, of: 10 }])
})

describe('diff', () => {
  test('without a key, copies too many are doubled and missing ones lost, at any size', async () => {
    await both('create table t as select g as v from generate_series(1, 20000) as g')
    await two.query('insert into t select v from t where v > 5')
    await two.query('delete from t where v = 3')
    expect(await diff()).toMatchObject({ doubled: 19995, lost: 1, changed: 0, extra: 0 })
  })

  test('with a key, a row is changed, lost or unknown', async () => {
    await both(
      "create table t (k int primary key, v text, w int); insert into t values (1, 'a', 1), (2, 'b', 2)",
    )
    await two.query("update t set v = 'z' where k = 1")
    await two.query('delete from t where k = 2')
    await two.query("insert into t values (3, 'c', 3)")
    const found = await diff()
    expect(found).toMatchObject({ doubled: 0, lost: 1, changed: 1, extra: 1 })
    expect(found.changes).toEqual([{ key: { k: '1' }, changes: [{ column: 'v', clean: 'a', here: 'z' }] }])
    expect(found.examples).toContainEqual({ values: { k: '2', v: 'b', w: '2' }, clean: 1, here: 0 })
  })

  test('a sum that was added up again is recognised', async () => {
    await both('create table t (k int primary key, n numeric); insert into t values (1, 5.5), (2, 0), (3, 7)')
    await two.query('update t set n = n * 2.0')
    expect(isTwiceAsMuch((await diff()).changes.filter((row) => row.key.k !== '2'))).toBe(true)
    await two.query('update t set n = 1 where k = 3')
    expect(isTwiceAsMuch((await diff()).changes)).toBe(false)
  })

  test('a row without a key that changed is one change', async () => {
    await both('create table t (v int); insert into t values (1), (2)')
    await two.query('update t set v = 3 where v = 2')
    expect(await diff()).toMatchObject({ doubled: 0, lost: 0, changed: 1, extra: 0 })
  })
})

test('the run log is left out by its schema, wherever it is, and no file that is named like it', () => {
  const ignore = ignoring(['stet.*'])
  expect(['stet.run', 'wh.duckdb:stet.run', 'stet.duckdb:stet.event'].filter(ignore.table)).toHaveLength(3)
  expect(['stet.duckdb:orders', 'wh.duckdb:run', 'stet_run', 'a.stet.run'].filter(ignore.table)).toEqual([])
  expect(['stet.duckdb', 'stet.csv'].filter(ignore.file)).toEqual([])
  expect(ignore.nothing.table('stet.run')).toBe(false)
})

test('files are compared by content', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stet-files-'))
  for (const side of ['clean', 'here']) await mkdir(join(folder, side, 'out'), { recursive: true })
  const write = (side: string, name: string, content: string) => writeFile(join(folder, side, name), content)
  await write('clean', 'out/twice.txt', 'a\nb\n')
  await write('here', 'out/twice.txt', 'a\nb\na\nb\n')
  await write('clean', 'same', '1')
  await write('here', 'same', '1')
  await write('clean', 'gone', '1')
  await write('here', '.part', '1')
  await write('here', 'run.log', '1')
  const state = async (side: string) => ({
    folder: join(folder, side),
    files: await filesOf(join(folder, side), ignoring(['*.log']), [], dataFileReader(folder)),
  })
  expect(await diffFiles(await state('clean'), await state('here'))).toEqual([
    { file: 'gone', kind: 'lost', lines: null },
    { file: 'out/twice.txt', kind: 'doubled', lines: { clean: 2, here: 4 } },
    { file: '.part', kind: 'left behind', lines: null },
  ])
  await rm(folder, { recursive: true })
})
