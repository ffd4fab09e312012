import { expect, inject, test } from 'vitest'
import { definePipeline, plan, run, type TransformRow, thaw } from '../../src/index.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import { rows } from '../../src/sources/rows/index.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { connect, freshDatabase } from '../support/databases.ts'
import { duckdbPlace } from '../support/duckdb-place.ts'
import { casePipeline, eachTarget, table, withFiles } from './harness.ts'

/** What plans, thaws and empty documents have in common with the cases. */

const upsert: WriteStrategy = { strategy: 'upsert', key: ['id'] }

eachTarget((_target, create) => {
  test('036: a column that a transform makes anew is read by the source alone, on every run (G1, G2)', async () => {
    await using place = await create()
    await withFiles({ 'a.jsonl': '{"id":"1","note":"abc"}\n' }, async (folder) => {
      const transform = {
        row: (row: TransformRow) => ({ ...row, note: JSON.stringify(row.note) }),
        adds: { note: 'jsonb' },
      }
      const pipeline = casePipeline({ place, file: 'a.jsonl', table: 't', write: upsert, transform })
      expect((await run(pipeline, { cwd: folder })).counts).toMatchObject({ inserted: 1 })
      expect((await run(pipeline, { cwd: folder })).counts).toMatchObject({ unchanged: 1 })
    })
    await place.execute('create view shown as select id, cast(note as varchar) as note from t')
    expect(await table(place, 'shown', ['id', 'note'])).toEqual([['1', '"abc"']])
  })

  test('075: a document without records is an empty source to a row transform as well (G10)', async () => {
    await using place = await create()
    await place.execute('create table t (id varchar primary key, v varchar not null)')
    await withFiles({ 'none.json': '[]' }, async (folder) => {
      const transform = { row: (row: TransformRow) => row }
      const pipeline = casePipeline({ place, file: 'none.json', table: 't', write: upsert, transform })
      expect(await run(pipeline, { cwd: folder })).toMatchObject({ verdict: 'nothing read' })
    })
  })

  test('004: a tie among very many equal rows is told at once', async () => {
    await using place = await create()
    const many = `id,v\n${'1,a\n'.repeat(100_000)}1,b\n`
    await withFiles({ 'a.csv': many }, async (folder) => {
      const pipeline = casePipeline({ place, file: 'a.csv', table: 't', write: upsert })
      await expect(run(pipeline, { cwd: folder })).rejects.toMatchObject({ code: 'STET_TIE' })
    })
  }, 20_000)
})

test('075: an empty document and a key in another case than the table has it (DuckDB)', async () => {
  await using place = await duckdbPlace()
  await place.execute('create table t (id bigint not null, v varchar not null)')
  await withFiles({ 'none.json': '[]' }, async (folder) => {
    const write: WriteStrategy = { strategy: 'upsert', key: ['ID'] }
    const pipeline = casePipeline({ place, file: 'none.json', table: 't', write })
    expect(await run(pipeline, { cwd: folder })).toMatchObject({ verdict: 'nothing read' })
  })
})

test('022: a row with NULL in its key is no key of the load in another slice (PostgreSQL)', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  await using db = await connect(url)
  await db.client.query(
    `create table t (id bigint unique, day date); insert into t values (null, '2025-01-01'), (5, '2025-01-01'), (6, null)`,
  )
  const day = (id: number) =>
    definePipeline({
      name: 't',
      source: rows({ columns: { id: 'bigint', day: 'date' }, rows: () => [{ id, day: '2025-05-01' }] }),
      target: postgres({ url }),
      table: 't',
      write: { strategy: 'replace-partition', by: 'day', size: 'day', key: ['id'] },
    })
  expect((await plan(day(1), { slice: '2025-05-01' })).obstacle).toBeNull()
  expect((await plan(day(5), { slice: '2025-05-01' })).obstacle).toContain(
    '1 key of this load is in another slice, such as id=5 with day=2025-01-01',
  )
  expect((await plan(day(6), { slice: '2025-05-01' })).obstacle).toContain('in no slice, such as id=6')
  expect((await run(day(1), { slice: '2025-05-01' })).counts).toMatchObject({ inserted: 1 })
})

test('069: a thaw does not take the lease of a run that beats as seldom as it said it would (PostgreSQL)', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  await using db = await connect(url)
  const gate = deferred()
  const begun = deferred()
  let isHeld = false
  const pipeline = definePipeline({
    name: 't',
    source: rows({
      columns: { id: 'text' },
      rows: async function* () {
        yield { id: '1' }
        if (!isHeld) return
        begun.resolve(undefined)
        await gate.promise
      },
    }),
    target: postgres({ url }),
    table: 't',
    write: { strategy: 'upsert', key: ['id'] },
    truth: 'snapshot',
  })
  await run(pipeline)
  isHeld = true
  const slow = run(pipeline, { leaseTimeoutMs: 600_000 })
  await begun.promise
  // So long since it has been heard of: more than a run beats by default, less than this one has said.
  await db.client.query(`update stet.lease set heartbeat_at = heartbeat_at - interval '60 seconds'`)
  await expect(thaw(pipeline, [], { by: 'somebody@here' })).rejects.toMatchObject({ code: 'STET_LOCKED' })
  gate.resolve(undefined)
  expect((await slow).counts).toMatchObject({ unchanged: 1 })
}, 60_000)

function deferred(): { readonly promise: Promise<unknown>; readonly resolve: (value: unknown) => void } {
  let resolve: (value: unknown) => void = () => undefined
  const promise = new Promise<unknown>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
