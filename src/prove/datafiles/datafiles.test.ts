import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import Database from 'libsql'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ignoring } from '../state/ignore.ts'
import { dataFileReader } from './reader.ts'
import { rowsOfCsv, rowsOfNdjson } from './rows-of-text.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-datafiles-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const ALL = ignoring([])

async function tablesOf(name: string, ignore = ALL) {
  const state = await dataFileReader(folder).read(join(folder, name), name, ignore)
  if (state === null || !('tables' in state)) return state
  return { hash: state.hash, rows: [...state.tables].map(([table, { rows }]) => [table, rows]) }
}

test('CSV keeps its cells as they are: quotes, empty ones, and a row that was torn', () => {
  expect(rowsOfCsv('id;name\r\n1;"a;""b"\r\n2;')).toEqual({
    columns: ['id', 'name'],
    rows: [
      ['1', 'a;"b'],
      ['2', ''],
    ],
  })
  expect(rowsOfCsv('1,2\n3')).toEqual({
    columns: ['column 1', 'column 2'],
    rows: [
      ['1', '2'],
      ['3', null],
    ],
  })
})

test('JSON by line keeps every digit, and what is no object stays text', () => {
  expect(rowsOfNdjson('{"a":9007199254740993,"b":"1.0"}\n{"a":1.00}\n{"a":2')).toEqual({
    columns: ['a', 'b', 'text'],
    rows: [
      ['9007199254740993', '1.0', null],
      ['1.00', null, null],
      [null, null, '{"a":2'],
    ],
  })
})

test('rows count, not their order; a row that is there twice counts twice', async () => {
  await writeFile(join(folder, 'a.csv'), 'id,v\n1,x\n2,y\n')
  await writeFile(join(folder, 'b.csv'), 'id,v\n2,y\n1,x\n')
  await writeFile(join(folder, 'c.csv'), 'id,v\n1,x\n2,y\n1,x\n1,x\n')
  const [a, b, c] = [await tablesOf('a.csv'), await tablesOf('b.csv'), await tablesOf('c.csv')]
  expect(a).toEqual({ hash: expect.any(String), rows: [['a.csv', 2]] })
  // The name is part of a table's name, not of its content: only the rows are compared here.
  const reader = dataFileReader(folder)
  const diff = (here: string) => reader.diff(join(folder, 'a.csv'), join(folder, here), 'a.csv', 'a.csv', ALL)
  expect(await diff('b.csv')).toMatchObject({ doubled: 0, lost: 0, changed: 0, extra: 0 })
  expect(await diff('c.csv')).toMatchObject({
    doubled: 2,
    lost: 0,
    examples: [{ values: { id: '1', v: 'x' }, clean: 1, here: 3 }],
  })
  expect(b).toBeTruthy()
  expect(c).toEqual({ hash: expect.any(String), rows: [['c.csv', 4]] })
})

test('DuckDB: what the last run has only written ahead is read, and the file is not touched', async () => {
  const path = join(folder, 'wh.duckdb')
  const instance = await DuckDBInstance.create(path)
  const connection = await instance.connect()
  await connection.run('create table fact (id int primary key, v decimal(10,2), seen timestamp)')
  await connection.run('checkpoint')
  await connection.run("insert into fact values (1, 1.50, '2024-01-01'), (2, 2.50, '2024-01-01')")
  // As a crash leaves it: the log has not come into the file.
  for (const ending of ['', '.wal']) await copyFile(`${path}${ending}`, join(folder, `dead.duckdb${ending}`))
  await connection.run("update fact set v = 3, seen = '2024-01-02' where id = 2")
  connection.closeSync()
  instance.closeSync()
  expect(await tablesOf('dead.duckdb')).toMatchObject({ rows: [['dead.duckdb:fact', 2]] })
  const reader = dataFileReader(folder)
  const [dead, alive] = [join(folder, 'dead.duckdb'), path]
  const ignore = ignoring(['wh.duckdb:fact.seen'])
  expect(await reader.diff(dead, alive, 'wh.duckdb', 'wh.duckdb:fact', ignore)).toMatchObject({
    changed: 1,
    lost: 0,
    changes: [{ key: { id: '2' }, changes: [{ column: 'v', clean: '2.50', here: '3.00' }] }],
  })
})

test('SQLite: the write-ahead log is read, and values keep their digits', async () => {
  const database = new Database(join(folder, 'app.db'))
  database.exec('pragma journal_mode = wal')
  database.exec('create table t (id integer primary key, n integer, r real, b blob)')
  database.exec("insert into t values (1, 9007199254740993, 0.1, x'00ff'), (2, null, 2, null)")
  expect(await tablesOf('app.db')).toMatchObject({ rows: [['app.db:t', 2]] })
  await copyFile(join(folder, 'app.db'), join(folder, 'other.db'))
  await copyFile(join(folder, 'app.db-wal'), join(folder, 'other.db-wal'))
  database.exec('update t set n = n + 1 where id = 1')
  const reader = dataFileReader(folder)
  const diff = await reader.diff(join(folder, 'other.db'), join(folder, 'app.db'), 'app.db', 'app.db:t', ALL)
  database.close()
  expect(diff?.changes).toEqual([
    { key: { id: '1' }, changes: [{ column: 'n', clean: '9007199254740993', here: '9007199254740994' }] },
  ])
})

test('a database that a crash has left unreadable is not a table, and says why', async () => {
  await writeFile(
    join(folder, 'torn.duckdb'),
    Buffer.concat([Buffer.alloc(8), Buffer.from('DUCK'), Buffer.alloc(90)]),
  )
  expect(await tablesOf('torn.duckdb')).toEqual({ complaint: expect.any(String) })
  await writeFile(join(folder, 'plain.txt'), 'DUCK')
  expect(await tablesOf('plain.txt')).toBeNull()
})

test('Parquet is read by its rows', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`copy (select 1 as id, 'x' as v) to '${join(folder, 'a.parquet')}' (format parquet)`)
  connection.closeSync()
  instance.closeSync()
  expect(await tablesOf('a.parquet')).toMatchObject({ rows: [['a.parquet', 1]] })
})
