import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatColumns, parseColumns, parseFields, parseNames, quoteForShell } from './columns-option.ts'

describe('--columns', () => {
  test('types may hold commas', () => {
    expect(parseColumns('order_ref:text, amount:numeric(12,2)')).toEqual({
      order_ref: 'text',
      amount: 'numeric(12,2)',
    })
  })

  test('a name with a comma, a colon or a quote is written in double quotes', () => {
    expect(parseColumns('"a,b:""c""":text,d:timestamp(3) with time zone')).toEqual({
      'a,b:"c"': 'text',
      d: 'timestamp(3) with time zone',
    })
  })

  test.each(['amount', 'amount:', ':text', 'a:text,,b:text', ''])('"%s" is refused', (text) => {
    expect(() => parseColumns(text)).toThrow(expect.objectContaining({ code: 'STET_USAGE' }))
  })

  test('a column that is named twice is refused', () => {
    expect(() => parseColumns('a:text,a:bigint')).toThrow('names "a" twice')
  })

  test('what a load prints is read back as the same columns, whatever their names', () => {
    const columns = fc.uniqueArray(
      fc.record({
        name: fc.string({ minLength: 1, unit: 'grapheme' }),
        type: fc.constantFrom('text', 'numeric(12,2)', 'bigint'),
      }),
      { selector: ({ name }) => name, minLength: 1 },
    )
    fc.assert(
      fc.property(columns, (list) => {
        const read = parseColumns(formatColumns(list))
        expect(new Map(Object.entries(read))).toEqual(new Map(list.map(({ name, type }) => [name, type])))
      }),
    )
  })
})

test('names are split at commas, and empty ones are refused', () => {
  expect(parseNames('region, "order,no"', '--key')).toEqual(['region', 'order,no'])
  expect(() => parseNames('a,,b', '--key')).toThrow('--key holds an empty column name')
})

test('a word is quoted for a shell only where it must be', () => {
  expect(quoteForShell('order_ref:text')).toBe('order_ref:text')
  expect(quoteForShell("it's (x)")).toBe("'it'\\''s (x)'")
})

test('a field is a name and a path', () => {
  expect(parseFields(['mag=properties.mag', 'a=b=c'])).toEqual({ mag: 'properties.mag', a: 'b=c' })
  expect(parseFields(undefined)).toBeUndefined()
  for (const text of ['mag', '=x', 'mag=']) expect(() => parseFields([text])).toThrow('as name=path')
})
