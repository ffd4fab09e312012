import { describe, expect, test } from 'vitest'
import { formatOf, stemOf } from './formats.ts'
import { tableNameFor } from './table-name.ts'

describe('a table named after a file', () => {
  test.each([
    ['orders.csv', 'orders'],
    ['inbox/Orders.CSV.gz', 'orders'],
    ['orders-2024-05-01.csv', 'orders'],
    ['orders_20240501T0600Z.ndjson', 'orders'],
    ['orders.part-0003.parquet', 'orders'],
    ['orders (1).csv', 'orders'],
    ['inbox/orders-*.csv', 'orders'],
    ['orders-2024-{04,05}.csv', 'orders'],
    ['sp500.csv', 'sp500'],
    ['flights-3m.parquet', 'flights_3m'],
    ['3m flights.csv', 't_3m_flights'],
    ['Größe & Gewicht.csv', 'größe_gewicht'],
    ['Gro\u0308ße.csv', 'größe'],
    ['order.csv', 'order'],
    ['my.orders.csv', 'my_orders'],
  ])('%s → %s', (file, table) => {
    expect(tableNameFor([file]).name).toBe(table)
  })

  test('what was dropped is told', () => {
    expect(tableNameFor(['orders-2024-05-01.csv']).dropped).toBe('-2024-05-01')
    expect(tableNameFor(['orders.csv']).dropped).toBe('')
  })

  test('one file of a delivery, all of them, and a pattern for them go to one table', () => {
    const names = [['o-1.csv'], ['o-1.csv', 'o-2.csv'], ['o-*.csv']].map((files) => tableNameFor(files).name)
    expect(new Set(names)).toEqual(new Set(['o']))
  })

  test.each(['-', '2024-05-01.csv', '*.csv', 'a-*-b.csv', '***.csv'])(
    '"%s" gives no name and is refused',
    (file) => {
      expect(() => tableNameFor([file])).toThrow(expect.objectContaining({ code: 'STET_USAGE' }))
    },
  )

  test('files of different names need --table', () => {
    expect(() => tableNameFor(['orders.csv', 'refunds.csv'])).toThrow('"refunds.csv" gives "refunds"')
  })
})

describe('the format of a file', () => {
  test.each([
    ['a.csv', 'csv'],
    ['a.CSV.gz', 'csv'],
    ['a.tab.zst', 'tsv'],
    ['a.jsonl', 'ndjson'],
    ['a.geojson', 'json'],
    ['inbox/*.parquet', 'parquet'],
    ['-', 'csv'],
  ])('%s is %s', (file, format) => {
    expect(formatOf([file])).toBe(format)
  })

  test.each([['orders'], ['orders.xlsx'], ['a.csv', 'b.json']])('%s %s is refused', (...files) => {
    expect(() => formatOf(files)).toThrow(expect.objectContaining({ code: 'STET_USAGE' }))
  })

  test('only an ending that says the format is no part of the name', () => {
    expect(['a/b.csv.gz', 'my.data', '.csv'].map(stemOf)).toEqual(['b', 'my.data', '.csv'])
  })
})
