import { expect, test } from 'vitest'
import { StetError } from '../../errors.ts'
import { parseTableName, requireIdentifierFits } from './table-name.ts'

test.each([
  ['orders', { schema: null, table: 'orders' }],
  ['Sales.Orders', { schema: 'sales', table: 'orders' }],
  ['"Sales"."Orders"', { schema: 'Sales', table: 'Orders' }],
  ['sales."orders 2025.csv"', { schema: 'sales', table: 'orders 2025.csv' }],
  ['"a ""b"" c"', { schema: null, table: 'a "b" c' }],
  ['größe', { schema: null, table: 'größe' }],
])('%s is read as SQL reads it', (text, expected) => {
  expect(parseTableName(text)).toEqual(expected)
})

test.each(['', '.', 'a.b.c', 'orders-2025', '"open', 'a b', '""', '1st', "x'; drop table y --"])(
  '%j is refused as a table name',
  (text) => {
    expect(() => parseTableName(text)).toThrow(expect.objectContaining({ code: 'STET_CONFIG' }))
  },
)

test('a name too long for the target is refused by its bytes, never cut', () => {
  requireIdentifierFits('a'.repeat(63), 63)
  expect(() => requireIdentifierFits('ö'.repeat(32), 63)).toThrow(StetError)
  expect(() => requireIdentifierFits('ö'.repeat(32), 63)).toThrow(/64 bytes/)
})
