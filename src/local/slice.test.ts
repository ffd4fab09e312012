import { expect, test } from 'vitest'
import { parseColumnType } from '../model/column-type.ts'
import type { ContractColumn } from '../model/columns.ts'
import type { SliceBounds } from '../model/slice.ts'
import { openLocalEngine } from './engine.ts'
import { quoteLiteral } from './quote.ts'
import { inSliceSql, requireSliceable } from './slice.ts'
import { readSql } from './typing.ts'

function column(type: string, asText = false): ContractColumn {
  return {
    id: 'c0',
    name: 'x',
    type: parseColumnType(type),
    origin: 'declared',
    key: false,
    newest: false,
    ignored: false,
    asText,
  }
}

const range = (from: string, to: string): SliceBounds => ({ kind: 'range', from, to })
const day: SliceBounds = {
  kind: 'time',
  from: { wall: '2026-08-07 00:00:00', instant: '2026-08-06 15:00:00+00' },
  to: { wall: '2026-08-08 00:00:00', instant: '2026-08-07 15:00:00+00' },
}

test.each<[string, string, SliceBounds, boolean]>([
  ['bigint', '1000', range('1000', '2000'), true],
  ['bigint', '1999', range('1000', '2000'), true],
  ['bigint', '2000', range('1000', '2000'), false],
  ['bigint', '-1', range('-1000', '0'), true],
  ['smallint', '32001', range('32000', '33000'), true],
  ['numeric(4,0)', '9500', range('9000', '10000'), true],
  ['numeric(6,2)', '1999.99', range('1000', '2000'), true],
  ['numeric', '1999.9999999999999999999', range('1000', '2000'), true],
  ['numeric', '2000', range('1000', '2000'), false],
  ['date', '2026-08-07', day, true],
  ['date', '2026-08-08', day, false],
  ['timestamp', '2026-08-07 23:59:59.999999', day, true],
  ['timestamp', '2026-08-08 00:00:00', day, false],
  ['timestamptz', '2026-08-06 15:00:00+00', day, true],
  ['timestamptz', '2026-08-07 23:59:59+09', day, true],
  ['timestamptz', '2026-08-07 15:00:00+00', day, false],
  ['text', "K'R", { kind: 'value', value: "K'R" }, true],
  ['text', 'KR ', { kind: 'value', value: 'KR' }, false],
  ['numeric', '1.50', { kind: 'value', value: '1.5' }, true],
  ['integer', '7', { kind: 'value', value: 'seven' }, false],
])('%s %s in %j: %s (G3)', async (type, text, bounds, wanted) => {
  await using local = await openLocalEngine({ threads: 1 })
  // Whole numbers are always held as such; all else may have to go as text.
  const ways = /int$|integer/.test(type) ? [false] : [false, true]
  for (const asText of ways) {
    const of = column(type, asText)
    const value = readSql(of, quoteLiteral(text))
    const [row] = await local.rows(`select ${inSliceSql(of, value, bounds)} as found`)
    expect(row?.found, asText ? 'as text' : 'as a value').toBe(wanted)
  }
  const [none] = await local.rows(`select ${inSliceSql(column(type), `null`, bounds)} as found`)
  expect(none?.found).toBe(false)
})

test('what cannot be cut so is refused by name', () => {
  expect(() => requireSliceable(column('text'), day, false)).toThrow('"x" is text: it cannot be cut by time')
  expect(() => requireSliceable(column('date'), day, true)).toThrow('it has no hours')
  expect(() => requireSliceable(column('date'), range('0', '1'), false)).toThrow('ranges of numbers')
  expect(() => requireSliceable(column('text'), { kind: 'value', value: 'a' }, false)).not.toThrow()
})
