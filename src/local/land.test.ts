import { expect, test } from 'vitest'
import type { Contract } from '../model/columns.ts'
import type { SourcePart } from '../model/source.ts'
import { openLocalEngine } from './engine.ts'
import { land } from './land.ts'

const CONTRACT: Contract = {
  columns: [
    {
      id: 'c0',
      name: 'id',
      type: { kind: 'integer' },
      origin: 'declared',
      key: true,
      newest: false,
      ignored: false,
      asText: false,
    },
  ],
  keep: { updatedAt: null, contentHash: null, gone: null },
}
const RULES = { nullKeys: 'reject', normalizeKey: undefined } as const

function part(rows: string, more: Partial<SourcePart>): SourcePart {
  return {
    file: { path: 'in.csv' },
    select: () => `select c0 from (values ${rows}) as v (c0)`,
    rejects: async () => [],
    locate: async (numbers) => numbers.map((line) => ({ line, raw: '' })),
    ...more,
  }
}

test('a reader whose threads lose a record is asked again, by one thread (G9)', async () => {
  await using local = await openLocalEngine()
  const lossy = part(`('1'), ('2')`, {
    records: 3,
    selectByOneThread: () => `select c0 from (values ('1'), ('2'), ('3')) as v (c0)`,
  })
  const landed = await land(local, [lossy], CONTRACT, RULES)
  expect(landed).toMatchObject({ read: 3, rejected: 0 })
  expect(await local.count(`select count(*) from ${landed.table}`)).toBe(3)
})

test('a record that neither lands nor is rejected fails the run (G9)', async () => {
  await using local = await openLocalEngine()
  const short = part(`('1'), ('2')`, { records: 3 })
  await expect(land(local, [short], CONTRACT, RULES)).rejects.toMatchObject({
    code: 'STET_INTERNAL',
    message: expect.stringContaining('in.csv holds 3 records, but 2 were read and 0 rejected'),
  })
})

test('rejects come in the order of the file, each with its reason (G9)', async () => {
  await using local = await openLocalEngine()
  const landed = await land(local, [part(`('1'), ('x'), (null), ('1.5')`, {})], CONTRACT, RULES)
  expect(landed).toMatchObject({ read: 4, rejected: 3 })
  expect(landed.rejects.map(({ line, value }) => [line, value])).toEqual([
    [2, 'x'],
    [3, null],
    [4, '1.5'],
  ])
})

test('rows at fault are told apart by their part, and wide values are looked for in these only', async () => {
  await using local = await openLocalEngine()
  const dates: Contract = {
    ...CONTRACT,
    columns: CONTRACT.columns.map((column) => ({ ...column, type: { kind: 'date' } as const })),
  }
  const clean = part(`('2024-01-01')`, { file: { path: 'clean.csv' } })
  const bad = part(`('2024-01-02'), ('2024-02-30')`, { file: { path: 'bad.csv' } })
  const wide = part(`('12000-01-01'), ('2024-01-03')`, { file: { path: 'wide.csv' } })
  const landed = await land(local, [clean, bad], dates, RULES)
  expect(landed).toMatchObject({ read: 3, rejected: 1, unheld: [] })
  expect(landed.rejects).toMatchObject([{ file: 'bad.csv', line: 2, value: '2024-02-30' }])
  expect(await local.rows(`select c0::varchar as d, part from ${landed.table} order by all`)).toEqual([
    { d: '2024-01-01', part: 0 },
    { d: '2024-01-02', part: 1 },
  ])
  expect(await land(local, [clean, bad, wide], dates, RULES)).toMatchObject({ unheld: ['c0'] })
})
