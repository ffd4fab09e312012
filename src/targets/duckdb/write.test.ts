import { join } from 'node:path'
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
import type { WriteStrategy } from '../../model/write.ts'
import { duckdb } from './index.ts'

const UPSERT: WriteStrategy = { strategy: 'upsert', key: ['id'] }
const REPLACE: WriteStrategy = { strategy: 'replace-table', key: ['id'] }
const REPLACE_WITHOUT_KEY: WriteStrategy = { strategy: 'replace-table' }
const CONTRACT = contractOf({ id: 'text', mail: 'text' }, ['id'])

test('columns that the source does not have are left alone, and so are rows outside the difference', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    `create table t(id varchar, mail varchar, remark varchar default 'none', n integer)`,
    `insert into t values ('a', 'a@x', 'mine', 1), ('b', 'b@x', 'yours', 2)`,
  )
  const applied = await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [
    `('update', 'a', 'new@x', null, null)`,
    `('insert', 'c', null, null, null)`,
  ])
  expect(applied).toMatchObject({ inserted: 1, updated: 1, deleted: 0 })
  expect(await byHand(file, 'from t order by id')).toEqual([
    ['a', 'new@x', 'mine', '1'],
    ['b', 'b@x', 'yours', '2'],
    ['c', null, 'none', null],
  ])
})

test('updated_at and content_hash change with a written row only (G2)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ id: 'text', mail: 'text' }, ['id'], {
    keep: { updatedAt: 'seen', contentHash: 'hash' },
  })
  await writeByHand(duckdb({ file }), 't', UPSERT, contract, [
    `('insert', 'a', '1', 'h1', null)`,
    `('insert', 'b', '1', 'h2', null)`,
  ])
  const before = await byHand(file, 'select id, seen::varchar, hash from t order by id')
  await writeByHand(duckdb({ file }), 't', UPSERT, contract, [`('update', 'b', '2', 'h3', null)`])
  const after = await byHand(file, 'select id, seen::varchar, hash from t order by id')
  expect(after[0]).toEqual(before[0])
  expect(after[1]?.[2]).toBe('h3')
  expect(String(after[1]?.[1]) > String(before[1]?.[1])).toBe(true)
})

test('rows that are gone are deleted by key before others come, so that a unique value may be freed by an update', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', REPLACE, CONTRACT, [
    `('insert', 'a', '1', null, null)`,
    `('insert', 'b', null, null, null)`,
  ])
  const applied = await writeByHand(target, 't', REPLACE, CONTRACT, [
    `('delete', 'b', null, null, null)`,
    `('update', 'a', '2', null, null)`,
    `('insert', 'c', '3', null, null)`,
  ])
  expect(applied).toMatchObject({ inserted: 1, updated: 1, deleted: 1 })
  expect(await byHand(file, 'from t order by id')).toEqual([
    ['a', '2'],
    ['c', '3'],
  ])
})

test('a delete whose row is not as it was compared is a defect, not a deletion (G6)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', REPLACE, CONTRACT, [`('insert', 'a', '1', null, null)`])
  await expect(
    writeByHand(target, 't', REPLACE, CONTRACT, [`('delete', 'a', 'other', null, null)`]),
  ).rejects.toMatchObject({
    code: 'STET_COUNTS',
  })
  expect(await byHand(file, 'from t')).toEqual([['a', '1']])
})

test('without a key, one of two equal rows is deleted by its place', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const contract = contractOf({ id: 'text', mail: 'text' }, [])
  await writeByHand(target, 't', REPLACE_WITHOUT_KEY, contract, [
    `('insert', 'a', '1', null, null)`,
    `('insert', 'a', '1', null, null)`,
    `('insert', 'b', null, null, null)`,
  ])
  await using opened = await openTestSession(target, 't', REPLACE_WITHOUT_KEY)
  const { local, session } = opened
  const start = startOf()
  await session.acquire(start)
  await session.describe()
  await session.prepare(contract)
  await session.begin()
  const scope = await session.rowsInScope(contract, { kind: 'table' })
  const [row] = await local.rows(`select row_id from ${scope.table} where c0 = 'a' limit 1`)
  const difference = await differenceOf(local, contract, [
    `('delete', 'a', '1', null, '${String(row?.row_id)}')`,
  ])
  expect(await session.apply(contract, difference)).toMatchObject({ deleted: 1 })
  await session.commit(recordOf(start, { deleted: 1 }))
  expect(await byHand(file, 'from t order by id')).toEqual([
    ['a', '1'],
    ['b', null],
  ])
})

test('NULL as a key value is met by itself when the pipeline wants it so', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const write: WriteStrategy = { ...UPSERT, nullKeys: 'match' }
  await writeByHand(duckdb({ file }), 't', write, CONTRACT, [`('insert', null::varchar, '1', null, null)`])
  await writeByHand(duckdb({ file }), 't', write, CONTRACT, [`('update', null::varchar, '2', null, null)`])
  expect(await byHand(file, 'from t')).toEqual([[null, '2']])
})

test('a schema that is not there is made with the table, and odd names are names', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ order: 'text', 'sum, "net"': 'numeric(5,2)', stet_d: 'text' }, ['order'])
  const table = '"Sales 2025"."Order ""lines"""'
  const write: WriteStrategy = { strategy: 'upsert', key: ['order'] }
  await writeByHand(duckdb({ file }), table, write, contract, [
    `('insert', 'a', 1.5::decimal(5,2), 'x', null, null)`,
  ])
  await writeByHand(duckdb({ file }), table, write, contract, [
    `('update', 'a', 2.5::decimal(5,2), 'y', null, null)`,
  ])
  expect(await byHand(file, `select "order", "sum, ""net"""::varchar, stet_d from ${table}`)).toEqual([
    ['a', '2.50', 'y'],
  ])
})

test('values that meet a unique rule on another column are refused by name, and nothing is written', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    `create table t(id varchar primary key, mail varchar unique)`,
    `insert into t values ('a', 'a@x'), ('b', 'b@x')`,
  )
  const rows = [`('insert', 'c', 'c@x', null, null)`, `('insert', 'd', 'b@x', null, null)`]
  await expect(writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, rows)).rejects.toMatchObject({
    code: 'STET_CONSTRAINT',
    message: expect.stringContaining('mail: b@x'),
    details: { table: 't', column: 'mail', value: 'b@x' },
  })
  expect(await byHand(file, 'select count(*) from t')).toEqual([['2']])
  await using log = await duckdb({ file }).openRunLog({ signal: new AbortController().signal })
  expect((await log.list({}))[0]).toMatchObject({ status: 'failed', verdict: 'failed' })
})

test('unique values may move from deleted rows to others, and swap places', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    `create table t(id varchar primary key, mail varchar unique)`,
    `insert into t values ('a', '1'), ('b', '2'), ('c', '3'), ('d', '4')`,
  )
  await writeByHand(duckdb({ file }), 't', REPLACE, CONTRACT, [
    `('delete', 'a', '1', null, null)`,
    `('update', 'b', '3', null, null)`,
    `('update', 'c', '2', null, null)`,
    `('insert', 'e', '1', null, null)`,
  ])
  expect(await byHand(file, 'from t order by id')).toEqual([
    ['b', '3'],
    ['c', '2'],
    ['d', '4'],
    ['e', '1'],
  ])
})

test('a row that another table refers to can be updated', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    'create table t(id varchar primary key, mail varchar)',
    'create table refers(id varchar references t(id))',
    `insert into t values ('a', '1')`,
    `insert into refers values ('a')`,
  )
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('update', 'a', '2', null, null)`])
  expect(await byHand(file, 'from t')).toEqual([['a', '2']])
})

test.each([
  ['create table t(id varchar, mail varchar not null)', `('insert', 'c', null, null, null)`, 'mail'],
  [
    `create table t(id varchar, mail varchar check (mail <> 'bad'))`,
    `('insert', 'c', 'bad', null, null)`,
    'mail',
  ],
])('a rule of the table that a row breaks is named: %s', async (ddl, row, named) => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, ddl)
  await expect(writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [row])).rejects.toMatchObject({
    code: 'STET_CONSTRAINT',
    message: expect.stringContaining(named),
  })
  expect(await byHand(file, 'select count(*) from t')).toEqual([['0']])
})

test('a difference with one key twice is not written, although the table has no constraint (G1)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('insert', 'a', '1', null, null)`])
  const twice = [`('insert', 'b', '1', null, null)`, `('insert', 'b', '2', null, null)`]
  await expect(writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, twice)).rejects.toMatchObject({
    code: 'STET_KEY_CONSTRAINT',
  })
  await expect(
    writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('insert', 'a', '2', null, null)`]),
  ).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT', message: expect.stringContaining('id=a') })
  expect(await byHand(file, 'from t')).toEqual([['a', '1']])
})

test('keys of a new table that could be equal there and not in the load are looked at; a first load that fails leaves no table', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ id: 'jsonb', mail: 'text' }, ['id'])
  const twice = [`('insert', '1', '1', null, null)`, `('insert', '1', '2', null, null)`]
  await expect(writeByHand(duckdb({ file }), 't', UPSERT, contract, twice)).rejects.toThrow('(G1)')
  expect(await byHand(file, `select count(*) from duckdb_tables() where table_name = 't'`)).toEqual([['0']])
})

test('an empty first load makes the table', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT)
  const { session } = opened
  const start = startOf()
  await session.acquire(start)
  expect(await session.describe()).toBeNull()
  await session.prepare(CONTRACT)
  await session.begin()
  expect((await session.rowsInScope(CONTRACT, { kind: 'table' })).rows).toBe(0)
  await session.commit(recordOf(start))
  expect(await byHand(file, 'select count(*) from t')).toEqual([['0']])
})
