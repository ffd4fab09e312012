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
import { duckdb } from './index.ts'

const UPSERT = { strategy: 'upsert', key: ['id'] } as const
const COLUMNS = { id: 'text', amount: 'numeric(12,2)', at: 'timestamptz' }
const KEEP = { keep: { updatedAt: 'updated_at', contentHash: 'content_hash' } }

test('a first load makes the file, the table and the record, and the log tells of it', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'stet.duckdb')
  const target = duckdb({ file })
  const contract = contractOf(COLUMNS, ['id'], KEEP)
  const applied = await writeByHand(target, 'orders', UPSERT, contract, [
    `('insert', 'a', 1.50::decimal(12,2), '2024-02-29 10:00:00.000001+02'::timestamptz, 'h1', null)`,
    `('insert', 'b', null, null, 'h2', null)`,
  ])
  expect(applied).toEqual({
    inserted: 2,
    updated: 0,
    unchanged: 0,
    stale: 0,
    frozen: 0,
    deleted: 0,
    marked: 0,
    restored: 0,
  })
  expect(
    await byHand(
      file,
      'select id, amount::varchar, "at"::varchar, content_hash, updated_at is not null from orders order by id',
    ),
  ).toEqual([
    ['a', '1.50', '2024-02-29 08:00:00.000001+00', 'h1', 'true'],
    ['b', null, null, 'h2', 'true'],
  ])
  await using log = await target.openRunLog({ signal: new AbortController().signal })
  const [entry, ...others] = await log.list({})
  expect(others).toEqual([])
  expect(entry).toMatchObject({
    status: 'succeeded',
    verdict: 'changed',
    table: 'orders',
    pipeline: 'test',
    error: null,
  })
  expect(entry?.counts).toMatchObject({ inserted: 2, updated: 0 })
  expect(entry?.startedAt).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
})

test('a second run sees the rows of the first, by the contract’s ids, and describes what is kept', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'stet.duckdb') })
  const contract = contractOf(COLUMNS, ['id'], KEEP)
  await writeByHand(target, 'orders', UPSERT, contract, [
    `('insert', 'a', 1.50::decimal(12,2), null::timestamptz, 'h1', null)`,
    `('insert', 'b', 2, null, 'h2', null)`,
  ])
  await using opened = await openTestSession(target, 'Orders', UPSERT)
  const { local, session } = opened
  const start = startOf()
  await session.acquire(start)
  const table = await session.describe()
  expect(table?.name).toBe('orders')
  expect(table?.columns.map(({ name, native, kept }) => [name, native, kept])).toEqual([
    ['id', 'VARCHAR', undefined],
    ['amount', 'DECIMAL(12,2)', undefined],
    ['at', 'TIMESTAMP WITH TIME ZONE', undefined],
    ['updated_at', 'TIMESTAMP WITH TIME ZONE', 'updatedAt'],
    ['content_hash', 'VARCHAR', 'contentHash'],
  ])
  await session.prepare(contract)
  await session.begin()
  const whole = await session.rowsInScope(contract, { kind: 'table' })
  expect(whole.rows).toBe(2)
  await local.run(`create table keys as select 'b' as c0`)
  const some = await session.rowsInScope(contract, { kind: 'keys', keys: 'keys', count: 1 })
  expect(await local.rows(`select c0, c1::varchar as c1 from ${some.table}`)).toEqual([
    { c0: 'b', c1: '2.00' },
  ])
  await session.apply(
    contract,
    await differenceOf(local, contract, [`('update', 'b', 3::decimal(12,2), null::timestamptz, 'h3', null)`]),
  )
  await session.commit(recordOf(start, { updated: 1 }))
  expect(
    await byHand(
      join(folder.path, 'stet.duckdb'),
      'select id, amount::varchar, content_hash from orders order by id',
    ),
  ).toEqual([
    ['a', '1.50', 'h1'],
    ['b', '3.00', 'h3'],
  ])
})
