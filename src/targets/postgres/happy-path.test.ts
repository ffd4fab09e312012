import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { load } from '../../../test/support/postgres-target.ts'
import { postgres } from './index.ts'

const COLUMNS = { order_ref: 'text', amount: 'numeric(12,2)', load_seq: 'bigint' }
const UPSERT = { strategy: 'upsert', key: ['order_ref'], newest: 'load_seq' } as const
const KEEP = { updatedAt: 'updated_at', contentHash: 'content_hash' }

for (const { name, url } of postgresServers()) {
  test(`a first load makes the table, its key and the columns that Stet keeps (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    const applied = await load(target, {
      table: 'orders',
      write: UPSERT,
      columns: COLUMNS,
      keep: KEEP,
      rows: [
        ['A', '1.50', '1'],
        ['B', null, '1'],
      ],
    })
    expect(applied).toMatchObject({ inserted: 2, updated: 0 })
    await using db = await connect(database)
    const { rows } = await db.client.query(
      `select order_ref, amount::text, content_hash, updated_at is not null as stamped from orders order by 1`,
    )
    expect(rows).toEqual([
      { order_ref: 'A', amount: '1.50', content_hash: 'h', stamped: true },
      { order_ref: 'B', amount: null, content_hash: 'h', stamped: true },
    ])
    const key = await db.client.query(
      `select pg_get_constraintdef(oid) as def from pg_constraint where contype = 'p' and conrelid = 'orders'::regclass`,
    )
    expect(key.rows).toEqual([{ def: 'PRIMARY KEY (order_ref)' }])
  })

  test(`the same rows again touch nothing, a changed one is updated, an older one is stale (${name})`, async () => {
    const database = await freshDatabase(url)
    const target = postgres({ url: database })
    const first = [
      ['A', '1.50', '2'],
      ['B', '2.00', '2'],
    ]
    await load(target, { table: 'orders', write: UPSERT, columns: COLUMNS, keep: KEEP, rows: first })
    await using db = await connect(database)
    const versions = async () =>
      (
        await db.client.query(
          'select order_ref, xmin::text, xmax::text, updated_at::text from orders order by 1',
        )
      ).rows
    const before = await versions()
    expect(
      await load(target, { table: 'orders', write: UPSERT, columns: COLUMNS, rows: first }),
    ).toMatchObject({ inserted: 0, updated: 0 })
    expect(await versions()).toEqual(before)
    const second = await load(target, {
      table: 'orders',
      write: UPSERT,
      columns: COLUMNS,
      rows: [
        ['A', '9.99', '3'],
        ['B', '8.00', '1'],
        ['C', '1', '1'],
      ],
    })
    expect(second).toEqual({
      inserted: 1,
      updated: 1,
      unchanged: 0,
      stale: 1,
      frozen: 0,
      deleted: 0,
      marked: 0,
      restored: 0,
    })
    expect((await db.client.query('select order_ref, amount::text from orders order by 1')).rows).toEqual([
      { order_ref: 'A', amount: '9.99' },
      { order_ref: 'B', amount: '2.00' },
      { order_ref: 'C', amount: '1.00' },
    ])
    const after = await versions()
    expect(after[1]?.updated_at).toBe(before[1]?.updated_at)
    expect(after[0]?.updated_at).not.toBe(before[0]?.updated_at)
  })

  test(`the run log has every attempt with its counts (${name})`, async () => {
    const target = postgres({ url: await freshDatabase(url) })
    const { signal } = new AbortController()
    await using empty = await target.openRunLog({ signal })
    expect(await empty.list({})).toEqual([])
    await load(target, {
      table: 'orders',
      write: UPSERT,
      columns: COLUMNS,
      rows: [['A', '1', '1']],
      attemptId: 'one',
    })
    await load(target, {
      table: 'orders',
      write: UPSERT,
      columns: COLUMNS,
      rows: [['A', '1', '1']],
      attemptId: 'two',
    })
    await using log = await target.openRunLog({ signal })
    const entries = await log.list({ pipeline: 'p', last: 10 })
    expect(
      entries.map(({ attemptId, status, table, counts }) => [attemptId, status, table, counts?.inserted]),
    ).toEqual([
      ['two', 'succeeded', 'public.orders', 0],
      ['one', 'succeeded', 'public.orders', 1],
    ])
    expect(entries[0]?.startedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    expect(entries[0]?.files).toEqual([{ path: 'a.csv', bytes: 3, sha256: 'ab' }])
    expect((await log.find('run-of-on')).map(({ attemptId }) => attemptId)).toEqual(['one'])
    expect((await log.find('run-of')).length).toBe(0)
  })
}
