import { expect, inject, test } from 'vitest'
import { definePipeline, type ReplacePartition, run } from '../src/index.ts'
import { postgres as query } from '../src/sources/postgres/index.ts'
import type { PostgresTarget } from '../src/targets/postgres/index.ts'
import { bench } from './support/postgres-bench.ts'

// What a database may leave out of a query's answer must be outside of the slice by the table's own lights (G3, G9): a row that is
// not read looks like one that is gone.

const server = inject('postgresUrl')

test('a slice by a column that the transform makes is not narrowed by the one of the source', async () => {
  await using db = await bench(
    server,
    `create table s (id int, d date, created date);
     insert into s values (1, '2026-05-01', '2026-05-01'), (2, null, '2026-05-01')`,
  )
  const pipeline = definePipeline({
    name: 't',
    source: query({ url: db.url, query: 'select * from s' }),
    target: db.target,
    table: 't',
    transform: { row: (row) => ({ ...row, d: row.d ?? row.created ?? null }) },
    write: { strategy: 'replace-partition', by: 'd', size: 'day', key: ['id'] },
  })
  expect((await run(pipeline, { slice: '2026-05-01' })).counts).toMatchObject({ read: 2, inserted: 2 })
  expect((await run(pipeline, { slice: '2026-05-01' })).counts).toMatchObject({ read: 2, unchanged: 2 })
})

for (const how of ['sent', 'compared in the database'] as const) {
  const pipelineOf = (
    db: { readonly url: string; readonly target: PostgresTarget },
    write: Omit<ReplacePartition, 'strategy'>,
  ) =>
    definePipeline({
      name: 't',
      source:
        how === 'sent'
          ? query({ url: db.url, query: 'select * from s' })
          : db.target.query('select * from s'),
      target: db.target,
      table: 't',
      write: { strategy: 'replace-partition', ...write },
    })

  const columns = [
    {
      of: 'numeric(10,2)',
      into: 'numeric(10,2)',
      values: '(1, 1.50), (2, 1.50)',
      slice: '1.50',
      size: 'value',
    },
    { of: 'numeric(10,2)', into: 'integer', values: '(1, 1.00), (2, 1.00)', slice: '1', size: 'value' },
    { of: 'text', into: 'integer', values: "(1, '1'), (2, '01')", slice: '1', size: 'value' },
    {
      of: 'date',
      into: 'timestamp',
      values: "(1, '2026-05-01'), (2, '2026-05-01')",
      slice: '2026-05-01T00',
      size: 'hour',
    },
  ] as const
  for (const { of, into, values, slice, size } of columns) {
    test(`${of} read into ${into}, slice ${slice}, ${how}`, async () => {
      await using db = await bench(
        server,
        `create table s (id int, x ${of}); insert into s values ${values};
         create table t (id int primary key, x ${into})`,
      )
      const pipeline = pipelineOf(db, { by: 'x', size, key: ['id'] })
      expect((await run(pipeline, { slice })).counts).toMatchObject({ read: 2, inserted: 2 })
      expect((await run(pipeline, { slice })).counts).toMatchObject({ read: 2, unchanged: 2 })
    })
  }

  test(`a key in another normal form is read, ${how}`, async () => {
    await using db = await bench(
      server,
      `create table s (city text, n int); insert into s values (U&'Malmo\\0308', 1); create table t (city text primary key, n int)`,
    )
    const pipeline = pipelineOf(db, { by: 'city', size: 'value', key: ['city'], normalizeKey: 'nfc' })
    expect((await run(pipeline, { slice: 'Malmö' })).counts).toMatchObject({ read: 1, inserted: 1 })
  })

  test(`rows that the slice has nothing to do with are left at the server, ${how}`, async () => {
    await using db = await bench(
      server,
      `create table s as select n as id, date '2026-05-01' + n as d from generate_series(0, 99) as n;
       create table t (id int primary key, d date)`,
    )
    const pipeline = pipelineOf(db, { by: 'd', size: 'day', key: ['id'] })
    expect((await run(pipeline, { slice: '2026-05-03' })).counts).toMatchObject({ read: 1, inserted: 1 })
  })
}
