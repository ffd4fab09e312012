import { expect, test } from 'vitest'
import type { Reject } from '../model/source.ts'
import { rowsToQuarantine } from './quarantine.ts'

const reject = (file: string | null, line: number | null, column: string, raw: string): Reject => ({
  file,
  line,
  column,
  value: 'x',
  reason: 'is bad',
  raw,
})

test('a row with two faults is one row (G9)', () => {
  const rows = [
    reject('a.csv', 2, 'a', 'x,y'),
    reject('a.csv', 2, 'b', 'x,y'),
    reject('b.csv', 2, 'a', 'x,y'),
  ]
  expect(rowsToQuarantine(rows)).toEqual([rows[0], rows[2]])
})

test('rows without a file are known by their content, in whatever order they come (G9)', () => {
  const rows = [reject(null, 1, 'a', 'x'), reject(null, 2, 'a', 'y'), reject(null, 3, 'a', 'x')]
  const keys = (order: readonly Reject[]) =>
    rowsToQuarantine(order)
      .map(({ raw, line }) => `${raw} ${line}`)
      .toSorted()
  expect(keys(rows)).toEqual(['x 1', 'x 2', 'y 1'])
  expect(keys(rows.toReversed().map((row, n) => ({ ...row, line: n + 7 })))).toEqual(keys(rows))
})
