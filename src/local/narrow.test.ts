import { expect, test } from 'vitest'
import { parseColumnType } from '../model/column-type.ts'
import type { SliceBounds } from '../model/slice.ts'
import { narrowQuery } from './narrow.ts'

const QUERY = 'select * from s -- all'
const day: SliceBounds = {
  kind: 'time',
  from: { wall: '2026-08-07 00:00:00', instant: '2026-08-06 15:00:00+00' },
  to: { wall: '2026-08-08 00:00:00', instant: '2026-08-07 15:00:00+00' },
}

function conditionOf(type: string, bounds: SliceBounds): string | null {
  const slice = { slice: { name: 'x', by: 'd"d', bounds }, type: parseColumnType(type) }
  const narrowed = narrowQuery(QUERY, { window: null, slice })
  return narrowed === QUERY ? null : narrowed.slice(narrowed.indexOf(' where ') + 7)
}

test('a slice is cut by the ends that the type of the column reads', () => {
  expect(conditionOf('date', day)).toBe(`(q."d""d" >= '2026-08-07' and q."d""d" < '2026-08-08')`)
  expect(conditionOf('timestamp', day)).toContain(`>= '2026-08-07 00:00:00'`)
  expect(conditionOf('timestamptz', day)).toContain(`>= '2026-08-06 15:00:00+00'`)
  expect(conditionOf('text', { kind: 'value', value: "K'R" })).toBe(`q."d""d" = 'K''R'`)
})

test('a column whose order or spelling is another one is not cut by', () => {
  expect(conditionOf('text', day)).toBeNull()
  expect(conditionOf('timestamp', { kind: 'range', from: '0', to: '10' })).toBeNull()
  // 1.5 is 1.50, and t is true: one value has many texts.
  expect(conditionOf('numeric(10,2)', { kind: 'value', value: '1.5' })).toBeNull()
  expect(conditionOf('boolean', { kind: 'value', value: 't' })).toBeNull()
})

test('a window has both ends in it and keeps rows without a value; a comment at the end of the query ends there', () => {
  const window = { cursor: 'at', from: '2026-01-01', to: null, nulls: 'reject' } as const
  expect(narrowQuery(QUERY, { window, slice: null })).toBe(
    `select q.* from (${QUERY}\n) as q where ((q."at" >= '2026-01-01') or q."at" is null)`,
  )
  expect(narrowQuery(QUERY, { window: { ...window, from: null }, slice: null })).toBe(QUERY)
})
