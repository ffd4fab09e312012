import { expect, inject, test } from 'vitest'
import { definePipeline, plan, type RunOptions, run } from '../../src/index.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import { csv } from '../../src/sources/csv/index.ts'
import { postgres as query } from '../../src/sources/postgres/index.ts'
import { connect, freshDatabase } from '../support/databases.ts'
import { postgresPlace } from '../support/postgres-place.ts'
import { type CasePlace, caseFolder, caseText, eachTarget, table } from './harness.ts'

async function expected(name: string, file: string): Promise<string[][]> {
  const text = await caseText(name, file)
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(','))
    .sort()
}

async function watermarks(place: CasePlace): Promise<string[]> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  return (await log.watermarks()).map(({ value }) => value)
}

eachTarget((_, create) => {
  test('015: a cursor of microseconds goes on exactly where it stopped (G4)', async () => {
    const name = '015-microseconds-in-the-cursor'
    await using place = await create()
    const url = await freshDatabase(inject('postgresUrl'))
    await using source = await connect(url)
    const { client } = source
    await client.query(await caseText(name, 'source.sql'))
    const pipeline = definePipeline({
      name: 'src',
      source: query({ url, query: 'select * from src' }),
      target: place.target,
      table: 't',
      write: { strategy: 'upsert', key: ['id'] },
      incremental: { cursor: 'updated_at', grace: '0s' },
    })
    expect((await run(pipeline)).counts).toMatchObject({ read: 1, inserted: 1, updated: 0 })
    await client.query(await caseText(name, 'step2.sql'))
    expect((await run(pipeline)).counts).toMatchObject({ inserted: 1, updated: 0 })
    expect(await watermarks(place)).toEqual(['2025-04-02 05:00:02.856901'])
    // The database leaves out what was read before; what shares the boundary comes again.
    expect((await run(pipeline)).counts).toMatchObject({ read: 1, inserted: 0, updated: 0, unchanged: 1 })
    await client.query(await caseText(name, 'step3.sql'))
    expect((await run(pipeline)).counts).toMatchObject({ read: 2, inserted: 1, updated: 0 })
    expect(await table(place, 't', ['id'])).toEqual([['12'], ['13'], ['14']])
  })

  test('016: what a run reads and does not write does not move the watermark (G4)', async () => {
    await using place = await create()
    const pipeline = (rows: string) =>
      definePipeline({
        name: 'src',
        source: csv({ files: `${rows}.csv`, columns: { id: 'bigint', at: 'timestamptz', v: 'text' } }),
        target: place.target,
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
        incremental: { cursor: 'at', grace: '5m' },
      })
    const cwd = caseFolder('018-one-row-dated-2099')
    const now = () => new Date('2025-06-01T12:00:00Z')
    await expect(
      run(pipeline('d1'), { cwd, now, onProgress: ({ phase }) => phase === 'writing' && stop() }),
    ).rejects.toThrow('the process has died')
    expect(await watermarks(place)).toEqual([])
    expect(await place.count('t')).toBe(0)
    function stop(): never {
      throw new Error('the process has died')
    }
  })

  test('018: a row dated 2099 keeps nobody from loading the days after (G4)', async () => {
    const name = '018-one-row-dated-2099'
    await using place = await create()
    const pipeline = (file: string) =>
      definePipeline({
        name: 'readings',
        source: csv({ files: file, columns: { id: 'bigint', at: 'timestamptz', v: 'text' } }),
        target: place.target,
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
        incremental: { cursor: 'at', grace: '5m' },
      })
    const day = async (file: string, now: string) => {
      await run(pipeline(file), { cwd: caseFolder(name), now: () => new Date(now) })
      for (const value of await watermarks(place))
        expect(Date.parse(value)).toBeLessThanOrEqual(Date.parse(now))
    }
    await day('d1.csv', '2025-06-01T12:00:00Z')
    await day('d2.csv', '2025-06-02T12:00:00Z')
    expect(await table(place, 't', ['id'])).toEqual([['1'], ['3'], ['4']])
  })

  test('020: a slice whose source is empty now is emptied, and only that one (G3, G10)', async () => {
    const name = '020-partition-whose-source-is-empty-now'
    await using place = await create()
    const columns = { day: 'date', sale: 'text', amount: 'numeric(8,2)' }
    const write: WriteStrategy = { strategy: 'replace-partition', by: 'day', size: 'day', key: ['sale'] }
    const pipeline = (file: string, strategy: WriteStrategy) =>
      definePipeline({
        name: 'sales',
        source: csv({ files: file, columns }),
        target: place.target,
        table: 't',
        write: strategy as never,
      })
    const cwd = caseFolder(name)
    await run(pipeline('start.csv', { strategy: 'upsert', key: ['sale'] }), { cwd })
    const before = await place.versions('t')
    const options: RunOptions = { cwd, slice: '2025-05-02', allow: { empty: true } }
    expect((await plan(pipeline('empty.csv', write), options)).rows).toEqual({ before: 2, after: 0 })
    await expect(run(pipeline('empty.csv', write), { cwd, slice: '2025-05-02' })).rejects.toThrow('is empty')
    expect((await run(pipeline('empty.csv', write), options)).counts).toMatchObject({
      deleted: 2,
      inserted: 0,
    })
    expect((await run(pipeline('empty.csv', write), options)).counts).toMatchObject({
      deleted: 0,
      inserted: 0,
    })
    expect(await table(place, 't', ['day', 'sale', 'amount'])).toEqual(await expected(name, 'expected.csv'))
    for (const version of (await place.versions('t')) ?? []) expect(before).toContain(version)
  })

  test('022: the range is replaced, not the values that occur in the load (G3)', async () => {
    const name = '022-bucket-not-value-decides-what-is-replaced'
    await using place = await create()
    const pipeline = (file: string, strategy: WriteStrategy) =>
      definePipeline({
        name: 'points',
        source: csv({ files: file, columns: { customer: 'bigint', points: 'bigint' } }),
        target: place.target,
        table: 't',
        write: strategy as never,
      })
    const cwd = caseFolder(name)
    await run(pipeline('start.csv', { strategy: 'upsert', key: ['customer'] }), { cwd })
    for (const key of [['customer'], undefined]) {
      const write = { strategy: 'replace-partition', by: 'customer', size: { range: 1000 }, key } as const
      const result = await run(pipeline('redo.csv', write), { cwd, slice: '1000' })
      if (key !== undefined)
        expect(result.counts).toMatchObject({ deleted: 1, updated: 1, unchanged: 1, inserted: 0 })
      else expect(result.verdict).toBe('unchanged')
    }
    expect(await table(place, 't', ['customer', 'points'])).toEqual(await expected(name, 'expected.csv'))
  })

  for (const truth of ['source', 'snapshot'] as const) {
    test(`027: an old day rerun with today's rates, truth: ${truth} (G12)`, async () => {
      const name = '027-old-day-rerun-with-todays-rates'
      await using place = await create()
      const pipeline = (file: string, rate: string) =>
        definePipeline({
          name: 'invoices',
          source: csv({ files: file, columns: { invoice: 'text', amount: 'numeric(8,2)', text: 'text' } }),
          target: place.target,
          table: 't',
          transform: {
            sql: `select *, round(amount * ${rate}, 2) as value from landed`,
            adds: { value: 'numeric(8,2)' },
          },
          write: { strategy: 'upsert', key: ['invoice'] },
          truth,
        })
      const cwd = caseFolder(name)
      await run(pipeline('june.csv', '1.10'), { cwd })
      expect((await plan(pipeline('june_fixed.csv', '1.20'), { cwd })).truth).toBe(truth)
      const rerun = await run(pipeline('june_fixed.csv', '1.20'), { cwd })
      expect(rerun.counts).toMatchObject(
        truth === 'source' ? { inserted: 1, updated: 2, frozen: 0 } : { inserted: 1, updated: 0, frozen: 2 },
      )
      expect(await table(place, 't', ['invoice', 'amount', 'text', 'value'])).toEqual(
        await expected(name, `expected_${truth}_wins.csv`),
      )
    })
  }
})

test('025: rows of the month in the default partition are neither met twice nor missed (G3)', async () => {
  const name = '025-default-partition-already-holds-the-day'
  await using place = await postgresPlace(inject('postgresUrl'))
  await place.execute(await caseText(name, 'setup.sql'))
  const pipeline = definePipeline({
    name: 'orders',
    source: csv({ files: 'feb.csv' }),
    target: place.target,
    table: 'orders',
    write: { strategy: 'replace-partition', by: 'day', size: 'month' },
  })
  const options = { cwd: caseFolder(name), slice: '2025-02' }
  const first = await run(pipeline, options)
  expect(first.verdict).toBe('changed')
  expect((await run(pipeline, options)).verdict).toBe('unchanged')
  expect(await place.rows('orders')).toEqual([
    '{"id": "d1", "day": "2025-01-20", "amount": 3.00}',
    '{"id": "e1", "day": "2025-02-03", "amount": 1.50}',
    '{"id": "e2", "day": "2025-02-17", "amount": 2.00}',
  ])
  expect(await place.count('orders_rest')).toBe(0)
})
