import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { columnOf, evaluate, textTable } from '../../test/support/local-texts.ts'
import { formatColumnType } from '../model/column-type.ts'
import { type LocalEngine, openLocalEngine } from './engine.ts'
import { inferTypes } from './infer.ts'
import { readSql } from './typing.ts'

let local: LocalEngine
beforeAll(async () => {
  local = await openLocalEngine({ threads: 2 })
})
afterAll(async () => {
  await local[Symbol.asyncDispose]()
})

async function infer(texts: readonly (string | null)[], role: { key?: boolean; newest?: boolean } = {}) {
  const table = await textTable(local, texts)
  const [found] = await inferTypes(local, `select t as c0 from ${table}`, [
    { id: 'c0', name: 'v', key: role.key ?? false, newest: role.newest ?? false },
  ])
  if (found === undefined) throw new Error('nothing was inferred')
  return { type: formatColumnType(found.type), column: columnOf(found.type), why: found.why }
}

describe('a first load', () => {
  test.each<[string, readonly (string | null)[], string]>([
    ['whole numbers', ['1', '-7', '0', null], 'bigint'],
    ['up to 15 digits', ['123456789012345'], 'bigint'],
    ['a card number', ['4111111111111111'], 'text'],
    ['digits beyond bigint', ['9223372036854775808'], 'text'],
    ['leading zeros', ['1', '007'], 'text'],
    ['a telephone number', ['49301234', '+49301234'], 'text'],
    ['amounts', ['1.50', '-30994.72', '7'], 'numeric(18,2)'],
    ['one decimal, where tomorrow may have two', ['1.5', '2'], 'numeric(18,2)'],
    ['measured values', ['31.95376472', '32.8'], 'numeric(18,10)'],
    ['great numbers with decimals', ['123456789012345678.25'], 'numeric(38,2)'],
    ['38 digits and no room', ['12345678901234567890123456789012345.6789'], 'text'],
    ['leading zeros before a point', ['007.5'], 'text'],
    ['exponents', ['1e-7', '0.5', '3'], 'double precision'],
    ['exponents beside digits that a float loses', ['1e5', '12345678901234567'], 'text'],
    ['digits in a mantissa that a float loses', ['1.2345678901234567e5'], 'text'],
    ['an exponent beyond any float', ['1e400', '1e5'], 'text'],
    ['NaN beside numbers', ['1.5', 'NaN'], 'text'],
    ['true and false', ['true', 'False', null], 'boolean'],
    ['0 and 1', ['0', '1'], 'bigint'],
    ['t and f', ['t', 'f'], 'text'],
    ['yes and no', ['yes', 'no'], 'text'],
    ['dates', ['2024-02-29', '1999-12-31'], 'date'],
    ['a day that does not exist', ['2024-02-29', '2024-02-30'], 'text'],
    ['day and month in doubt', ['01/02/2024', '13/02/2024'], 'text'],
    ['compact dates', ['20240229'], 'bigint'],
    ['times with offsets', ['2024-01-01T10:00:00Z', '2024-01-01 10:00:00.5+05:30'], 'timestamptz'],
    ['times without', ['2024-01-01T10:00:00', '2024-01-01 10:00'], 'timestamp'],
    ['times of which one has an offset', ['2024-01-01T10:00:00', '2024-01-01T10:00:00Z'], 'text'],
    ['dates and times', ['2024-01-01', '2024-01-01 10:00:00'], 'text'],
    ['nanoseconds', ['2024-01-01 10:00:00.123456789'], 'text'],
    ['times of day', ['10:00:00'], 'text'],
    ['a date before year 1', ['0044-03-15 BC'], 'text'],
    ['UUIDs', ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'], 'text'],
    ['JSON', ['{"a":1}'], 'text'],
    ['words', ['paid', 'open'], 'text'],
    ['numbers and a word', ['1', '2', 'n/a'], 'text'],
    ['numbers and an empty text', ['1', ''], 'text'],
    ['a number with blanks', ['1', ' 2'], 'text'],
    ['nothing but NULL', [null, null], 'text'],
    ['no rows', [], 'text'],
  ])('takes %s %j as %s', async (_, texts, type) => {
    expect((await infer(texts)).type).toBe(type)
  })

  test('takes a key as text whatever it looks like', async () => {
    expect(await infer(['1', '2'], { key: true })).toMatchObject({
      type: 'text',
      why: 'it is part of the key, and identities are not computed with',
    })
  })

  test('takes an order column as a number up to bigint', async () => {
    expect((await infer(['9223372036854775807'], { newest: true })).type).toBe('bigint')
    expect((await infer(['9223372036854775808'], { newest: true })).type).toBe('text')
  })

  test('says why', async () => {
    expect((await infer(['1', '007'])).why).toContain('007')
    expect((await infer(['1.50'])).why).toBe('all values are numbers of at most 1 digit and 2 decimals')
    expect((await infer(['1', 'n/a'])).why).toBe('the values are of different kinds')
  })

  test('can read every value in the type that it chose, and one digit more', async () => {
    const columns: (string | null)[][] = [
      ['1.50', '-30994.72', '.5', null],
      ['31.95376472'],
      ['1e-7', '-0.5', '3', '1E5'],
      ['true', 'FALSE'],
      ['2024-01-01T10:00:00Z', '2024-01-01 10:00 +05:30'],
      ['123456789012345', '-1'],
    ]
    for (const texts of columns) {
      const { column } = await infer(texts)
      expect(column.type.kind).not.toBe('text')
      const more = texts.map((text) =>
        text !== null && /^-?[1-9]/.test(text) && column.type.kind === 'numeric'
          ? text.replace(/\d/, '9$&')
          : text,
      )
      const read = await evaluate(local, more, readSql(column, 't'))
      expect(read.map((value) => value === null)).toEqual(texts.map((text) => text === null))
    }
  })

  test('looks at many columns in one pass', async () => {
    const found = await inferTypes(
      local,
      `select '1' as c0, 'x' as c1, null::varchar as c2, '1.5' as c3 union all select '2', null, null, '2'`,
      ['c0', 'c1', 'c2', 'c3'].map((id) => ({ id, name: id, key: id === 'c1' })),
    )
    expect(found.map(({ id, type }) => `${id} ${formatColumnType(type)}`)).toEqual([
      'c0 bigint',
      'c1 text',
      'c2 text',
      'c3 numeric(18,2)',
    ])
  })
})

test('a first load of very many columns chooses what it chooses for few', async () => {
  const kinds = [
    ['1', '2'],
    ['1.5', '2'],
    ['2024-01-01', null],
    ['2024-01-01T10:00:00Z', null],
    ['2024-01-01T10:00:00', '2024-01-02T10:00:00'],
    ['1e-7', '0.5'],
    ['1E5', '7'],
    ['true', 'false'],
    ['007', '1'],
    [null, '2024-02-30'],
    ['Eve', '1'],
    [null, null],
  ] as const
  const ids = Array.from({ length: 360 }, (_, column) => `c${column}`)
  const row = (at: 0 | 1) =>
    ids.map((id, column) => {
      const text = kinds[column % kinds.length]?.[at] ?? null
      return `${text === null ? 'null' : `'${text}'`}::varchar as ${id}`
    })
  const select = `select ${row(0).join(', ')} union all select ${row(1).join(', ')}`
  const fields = ids.map((id) => ({ id, name: id, key: false }))
  const many = await inferTypes(local, select, fields)
  const few = await inferTypes(local, select, fields.slice(0, kinds.length))
  expect(many.map(({ type, why }) => [formatColumnType(type), why])).toEqual(
    ids.map((_, column) => {
      const found = few[column % kinds.length]
      return [found === undefined ? '' : formatColumnType(found.type), found?.why]
    }),
  )
})
