import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { changeWatermark, definePipeline, run, thaw } from '../src/index.ts'
import { rerunOptions } from '../src/pipeline/rerun.ts'
import { csv } from '../src/sources/csv/index.ts'
import { type DuckdbPlace, duckdbPlace } from './support/duckdb-place.ts'
import { runCli } from './support/run-cli.ts'

let place: DuckdbPlace
let cwd: string
beforeEach(async () => {
  place = await duckdbPlace()
  cwd = await mkdtemp(join(tmpdir(), 'stet-guards-'))
})
afterEach(async () => {
  await place[Symbol.asyncDispose]()
  await rm(cwd, { recursive: true, force: true })
})

const file = (name: string, text: string) => writeFile(join(cwd, name), text)

test('a protected pipeline reads no whole table again, by whatever door (G1)', async () => {
  await file('a.csv', 'id,at\n1,2026-05-01T00:00:00Z\n')
  const pipeline = definePipeline({
    name: 't',
    source: csv({ files: 'a.csv', columns: { id: 'bigint', at: 'timestamptz' } }),
    target: place.target,
    table: 't',
    write: { strategy: 'upsert', key: ['id'] },
    incremental: { cursor: 'at' },
    protect: true,
  })
  const now = () => new Date('2026-06-01T00:00:00Z')
  await run(pipeline, { cwd, now })
  const refusal = expect.objectContaining({ code: 'STET_PROTECTED' })
  await expect(run(pipeline, { cwd, now, full: true })).rejects.toEqual(refusal)
  await expect(run(pipeline, { cwd, now, window: { from: null, to: null } })).rejects.toEqual(refusal)
  await expect(changeWatermark(pipeline, { kind: 'forget' }, { by: 'somebody' })).rejects.toEqual(refusal)
  // A part may be read again.
  const window = { from: '2026-05-01', to: null }
  expect((await run(pipeline, { cwd, now, window })).counts.unchanged).toBe(1)
})

test('a table that is frozen without slices is thawed by its one name, or by none (G12)', async () => {
  await file('a.csv', 'id,v\n1,x\n')
  const pipeline = definePipeline({
    name: 't',
    source: csv({ files: 'a.csv', columns: { id: 'bigint', v: 'text' } }),
    target: place.target,
    table: 't',
    write: { strategy: 'upsert', key: ['id'] },
    truth: 'snapshot',
  })
  await run(pipeline, { cwd })
  expect((await thaw(pipeline, ['all'], { by: 'somebody' })).slices).toEqual([{ slice: 'all', thawed: true }])
  expect((await thaw(pipeline, [], { by: 'somebody' })).slices).toEqual([{ slice: 'all', thawed: false }])
  await expect(thaw(pipeline, ['2026-05-01'], { by: 'somebody' })).rejects.toThrow('not cut into slices')
})

test('a slice of the value "all" is repeated as itself', async () => {
  await file('a.csv', 'id,region\n1,all\n')
  const pipeline = definePipeline({
    name: 't',
    source: csv({ files: 'a.csv', columns: { id: 'bigint', region: 'text' } }),
    target: place.target,
    table: 't',
    write: { strategy: 'replace-partition', by: 'region', size: 'value', key: ['id'] },
  })
  await run(pipeline, { cwd, slice: 'all' })
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const [entry] = await log.list({})
  if (entry === undefined) throw new Error('the log is empty')
  const again = await run(pipeline, { cwd, ...rerunOptions(pipeline, entry) })
  expect(again).toMatchObject({ slice: 'all', counts: { unchanged: 1 } })
})

test('a first run whose every row was rejected freezes nothing (G12)', async () => {
  const pipeline = definePipeline({
    name: 't',
    source: csv({ files: 'a.csv', columns: { id: 'bigint', day: 'date' } }),
    target: place.target,
    table: 't',
    write: { strategy: 'replace-partition', by: 'day', size: 'day' },
    truth: 'snapshot',
    maxRejects: 5,
  })
  await file('a.csv', 'id,day\none,2026-05-01\n')
  expect((await run(pipeline, { cwd, slice: '2026-05-01' })).counts).toMatchObject({
    rejected: 1,
    inserted: 0,
  })
  await file('a.csv', 'id,day\n1,2026-05-01\n')
  expect((await run(pipeline, { cwd, slice: '2026-05-01' })).counts).toMatchObject({ inserted: 1, frozen: 0 })
})

test('rows that a transform makes and the table refuses are quarantined whole, each day its own (G9)', async () => {
  const pipeline = (name: string) =>
    definePipeline({
      name: 't',
      source: csv({ files: name, columns: { id: 'bigint', a: 'bigint' } }),
      target: place.target,
      table: 't',
      transform: {
        row: (row) => ({ ...row, v: row.a === '2' || row.a === 2n ? 'bad' : '1' }),
        adds: { v: 'bigint' },
      },
      write: { strategy: 'upsert', key: ['id'] },
      maxRejects: 1,
      onReject: 'quarantine',
    })
  await file('d1.csv', 'id,a\n1,1\n9,2\n')
  await file('d2.csv', 'id,a\n2,1\n50,2\n')
  for (const name of ['d1.csv', 'd2.csv', 'd1.csv', 'd2.csv']) {
    expect((await run(pipeline(name), { cwd })).counts).toMatchObject({ rejected: 1 })
  }
  const kept = (await place.rows('stet.quarantine')).map((row) => (JSON.parse(row) as { raw: string }).raw)
  expect(kept).toHaveLength(2)
  expect(kept.filter((raw) => raw.includes('50'))).toHaveLength(1)
  expect(kept.filter((raw) => raw.includes('9'))).toHaveLength(1)
})

test('a load by a cursor goes on with the file of the next day, whatever it is called (G4)', async () => {
  await file('ev.csv', 'id,at\n1,2026-05-01T00:00:00Z\n')
  await file('ev-2026-05-02.csv', 'id,at\n2,2026-05-02T00:00:00Z\n')
  for (const name of ['ev.csv', 'ev-2026-05-02.csv']) {
    const argv = ['load', name, '--key', 'id', '--cursor', 'at', '--table', 't', '--into', place.file]
    const { status, stdout, stderr } = await runCli(argv, { cwd })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    expect(stdout).toContain('1 inserted')
  }
})

test('a cursor and a snapshot rule each other out, and the way out is named', () => {
  const define = () =>
    definePipeline({
      name: 't',
      source: csv({ files: 'a.csv' }),
      target: place.target,
      table: 't',
      write: { strategy: 'upsert', key: ['id'] },
      incremental: { cursor: 'at' },
      truth: 'snapshot',
    })
  expect(define).toThrow(expect.objectContaining({ hint: expect.stringContaining('insert-once') }))
})

test('a table that is lost voids the watermark for a run that goes by it, and for no other (G4)', async () => {
  await file('a.csv', 'id,at\n1,2026-05-01T12:00:00Z\n2,2026-05-02T12:00:00Z\n')
  const shape = {
    name: 't',
    source: csv({ files: 'a.csv', columns: { id: 'bigint', at: 'timestamptz' } }),
    target: place.target,
    table: 't',
    write: { strategy: 'upsert', key: ['id'] },
  } as const
  const byCursor = definePipeline({ ...shape, incremental: { cursor: 'at', grace: '0s' } })
  await run(byCursor, { cwd })
  const afterLoss = async (
    pipeline: Parameters<typeof run>[0],
    options: { readonly slice?: string } = {},
  ) => {
    await place.execute('drop table t')
    const { counts, notices } = await run(pipeline, { cwd, ...options })
    return { inserted: counts.inserted, isVoid: notices.some((text) => text.includes('counts for nothing')) }
  }
  expect(await afterLoss(byCursor, { slice: '2026-05-01' })).toEqual({ inserted: 1, isVoid: false })
  expect(await afterLoss(byCursor)).toEqual({ inserted: 2, isVoid: true })
  expect(await afterLoss(definePipeline(shape))).toEqual({ inserted: 2, isVoid: false })
})
