import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { columnOf, evaluate } from '../../test/support/local-texts.ts'
import { anyText, typedTexts } from '../../test/support/typed-texts.ts'
import { formatColumnType, parseColumnType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import { type LocalEngine, openLocalEngine } from './engine.ts'
import { callSql } from './functions.ts'
import { widenedReal } from './typing/float.ts'
import { readText } from './typing/reading.ts'
import {
  identitySql,
  isOrderable,
  localType,
  localTypeOf,
  orderSql,
  readSql,
  reasonSql,
  sameSql,
  textSql,
  wideSql,
} from './typing.ts'

let local: LocalEngine
beforeAll(async () => {
  local = await openLocalEngine({ threads: 2 })
})
afterAll(async () => {
  await local[Symbol.asyncDispose]()
})

/** What each text becomes in a column of the type, as PostgreSQL prints it. */
function read(type: string, texts: readonly (string | null)[], asText = false): Promise<(string | null)[]> {
  const column = columnOf(parseColumnType(type), { asText })
  return evaluate(local, texts, textSql(column, readSql(column, 't')))
}

async function reason(type: string, text: string): Promise<string | null> {
  const [answer = null] = await evaluate(local, [text], reasonSql(columnOf(parseColumnType(type)), 't'))
  return answer
}

/** A value's text; floats as the shortest double of their value, which DuckDB prints of doubles only. */
function textOf(column: ContractColumn, value: string): string {
  if (!isFloat(column.type) || column.asText) return textSql(column, value)
  const double = `(${value})::double`
  return `case when ${double} = 0 then replace(${double}::varchar, '.0', '') else ${callSql('decimal', `${double}::varchar`)} end`
}

function isFloat(type: ColumnType): boolean {
  return type.kind === 'real' || type.kind === 'double'
}

/** The reference's answer in the words of {@link read}. */
function expected(type: ColumnType, text: string, asText: boolean): string | null {
  const reading = readText(type, text)
  if ('reason' in reading) return null
  const widened = type.kind === 'real' && !asText ? widenedReal(text) : null
  if (widened?.kind === 'value') return widened.text
  return reading.wide && !asText ? null : reading.text
}

describe('local types', () => {
  test.each([
    ['smallint', 'SMALLINT'],
    ['bigint', 'BIGINT'],
    ['numeric(12,2)', 'DECIMAL(12,2)'],
    ['numeric(38,38)', 'DECIMAL(38,38)'],
    ['numeric(39,2)', 'VARCHAR'],
    ['numeric(5,-2)', 'VARCHAR'],
    ['numeric(2,5)', 'VARCHAR'],
    ['numeric', 'VARCHAR'],
    ['real', 'FLOAT'],
    ['double precision', 'DOUBLE'],
    ['timestamptz(3)', 'TIMESTAMPTZ'],
    ['uuid', 'UUID'],
    ['char(3)', 'VARCHAR'],
    ['jsonb', 'VARCHAR'],
    ['bytea', 'VARCHAR'],
    ['citext', 'VARCHAR'],
  ])('%s is held as %s', (type, expectedType) => {
    expect(localType(parseColumnType(type))).toBe(expectedType)
    expect(localTypeOf(columnOf(parseColumnType(type), { asText: true }))).toBe('VARCHAR')
  })

  test.each([
    ['numeric', true],
    ['bigint', true],
    ['real', true],
    ['date', true],
    ['timestamptz', true],
    ['time', false],
    ['text', false],
    ['uuid', false],
    ['citext', false],
  ])('whether %s can say which row is newer: %s', (type, orderable) => {
    expect(isOrderable(parseColumnType(type))).toBe(orderable)
  })
})

describe('reading (G9)', () => {
  test.each<[string, string, string]>([
    ['bigint', '+7', '7'],
    ['bigint', '007', '7'],
    ['bigint', '1.0', '1'],
    ['bigint', '-0', '0'],
    ['bigint', '-9223372036854775808', '-9223372036854775808'],
    ['bigint', '9223372036854775807.000', '9223372036854775807'],
    ['numeric(12,2)', '1.5', '1.50'],
    ['numeric(12,2)', '1.500000', '1.50'],
    ['numeric(12,2)', '1.005e1', '10.05'],
    ['numeric(12,2)', '-0.00', '0.00'],
    ['numeric(2,2)', '.5', '0.50'],
    ['numeric(38,0)', '9'.repeat(38), '9'.repeat(38)],
    ['numeric', '1.10', '1.10'],
    ['numeric', '1e3', '1000'],
    ['numeric', '-0.0', '0.0'],
    ['numeric', 'inf', 'Infinity'],
    ['numeric(40,2)', 'nan', 'NaN'],
    ['double precision', '0.1', '0.1'],
    ['double precision', '1e-320', '1e-320'],
    ['double precision', '-INFINITY', '-inf'],
    ['double precision', 'NaN', 'nan'],
    ['double precision', '-0', '-0.0'],
    ['real', '16777217', '16777216.0'],
    ['boolean', 'Yes', 'true'],
    ['boolean', 'OFF', 'false'],
    ['date', '2024-02-29T00:00:00.000', '2024-02-29'],
    ['date', '-Infinity', '-infinity'],
    ['timestamp', '2024-02-29T10:00', '2024-02-29 10:00:00'],
    ['timestamp', '2024-02-29', '2024-02-29 00:00:00'],
    ['timestamp', '2024-02-29 10:00:00.1234560', '2024-02-29 10:00:00.123456'],
    ['timestamp', '2024-02-29 24:00:00', '2024-03-01 00:00:00'],
    ['timestamp(3)', '2024-02-29 10:00:00.120000', '2024-02-29 10:00:00.12'],
    ['timestamptz', '2024-02-29T10:00:00Z', '2024-02-29 10:00:00+00'],
    ['timestamptz', '2024-02-29 10:00:00.5 +05:30', '2024-02-29 04:30:00.5+00'],
    ['timestamptz', '2024-02-29 10:00-0330', '2024-02-29 13:30:00+00'],
    ['timestamptz', 'infinity', 'infinity'],
    ['time', '24:00:00', '24:00:00'],
    ['time', '10:00', '10:00:00'],
    ['time(0)', '10:00:00.0', '10:00:00'],
    ['uuid', '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['varchar(3)', '😀é3', '😀é3'],
    ['bytea', '\\xAB', '\\xab'],
    ['jsonb', '{"b":1e2,"a":1.50,"a":1.5}', '{"a": 1.5, "b": 100}'],
    ['text', '', ''],
  ])('in a column of %s, %s is %s', async (type, text, value) => {
    expect(await read(type, [text])).toEqual([value])
    expect(await reason(type, text)).toBeNull()
  })

  test.each<[string, string, string]>([
    ['bigint', '1.5', 'has decimals; bigint keeps whole numbers'],
    ['bigint', '1e3', 'is not a whole number in digits'],
    ['bigint', '0x10', 'is not a whole number in digits'],
    ['bigint', '1_000', 'is not a whole number in digits'],
    ['bigint', ' 7', 'has blanks before or after it'],
    ['bigint', '9223372036854775808', 'is out of range of bigint'],
    ['bigint', '\u{FEFF}7', 'has blanks before or after it'],
    ['date', '\u{FEFF}2024-02-29', 'has blanks before or after it'],
    ['jsonb', '\u{FEFF}{}', 'is not valid JSON, from character 1 on'],
    ['smallint', '-32769', 'is out of range of smallint'],
    ['bigint', 'NaN', 'is not a whole number in digits'],
    ['bigint', '', 'is an empty text, which is a value of text columns only'],
    ['numeric(12,2)', '1.005', 'has 3 decimals, numeric(12,2) keeps 2'],
    ['numeric(12,2)', '-0.001', 'has 3 decimals, numeric(12,2) keeps 2'],
    ['numeric(12,2)', '99999999999', 'is out of range of numeric(12,2)'],
    ['numeric(12,2)', 'Infinity', 'is infinite, which numeric(12,2) cannot hold'],
    ['numeric(5,-2)', '12345', 'would be rounded: numeric(5,-2) keeps multiples of 100'],
    ['double precision', '1e400', 'is out of range of double precision'],
    ['double precision', '1e-400', 'is too close to 0 for double precision, which would make it 0'],
    ['double precision', '-nan', 'is not a number'],
    ['real', '1e39', 'is out of range of real'],
    ['date', '2024-02-30', 'is no day of the calendar'],
    ['date', '20240229', 'is not a date; write it as YYYY-MM-DD'],
    ['date', '2024-02-29 10:00:00', 'has a time of day, which date would drop'],
    ['date', '01/02/2024', 'could be 1 February or 2 January; write it as YYYY-MM-DD'],
    ['date', '13/02/2024', 'is not a date; write it as YYYY-MM-DD'],
    ['date', 'today', 'is a word that a database turns into the clock or a fixed time; write YYYY-MM-DD'],
    ['timestamp', '2024-01-01 10:00:00+02', 'has a time zone offset, which timestamp would drop'],
    ['timestamp', '2024-01-01 10:00:00.1234567', 'has more than 6 fraction digits'],
    [
      'timestamp',
      '2024-01-01 23:59:60',
      'has a second 60, a leap second that databases move into the next minute',
    ],
    ['timestamp(3)', '2024-01-01 10:00:00.1234', 'has 4 fraction digits, timestamp(3) keeps 3'],
    [
      'timestamptz',
      '2025-03-01T08:00:00',
      'has no time zone offset; timestamptz needs one such as Z or +02:00',
    ],
    [
      'timestamptz',
      '2024-01-01 10:00:00 Europe/Berlin',
      'names a time zone; write its offset, such as Z or +02:00',
    ],
    ['time', '10:00:00+02', 'has a time zone offset, which time would drop'],
    ['boolean', 'ja', 'is not true or false (t/f, yes/no, y/n, on/off and 1/0 are known too)'],
    ['varchar(3)', 'abcd', 'is longer than varchar(3)'],
    ['char(3)', 'abcd', 'is longer than char(3)'],
    ['text', 'a\0b', 'holds a NUL character, which no database text can hold'],
    ['jsonb', '{"a":"\\u0000"}', 'holds \\u0000, which no database text can hold'],
    ['jsonb', '{"a":', 'is not valid JSON, from character 6 on'],
  ])('in a column of %s, %j is refused: it %s', async (type, text, why) => {
    expect(await read(type, [text])).toEqual([null])
    expect(await reason(type, text)).toBe(why)
  })

  test('every text reads as the definition says, and has a reason exactly when it has no value', async () => {
    for (const type of typedTexts.map((entry) => entry.type)) {
      await fc.assert(
        fc.asyncProperty(fc.array(anyText(type), { minLength: 40, maxLength: 80 }), async (texts) => {
          for (const asText of [false, true]) {
            const column = columnOf(type, { asText })
            const values = await evaluate(local, texts, textOf(column, readSql(column, 't')))
            const reasons = await evaluate(local, texts, reasonSql(column, 't'))
            const wide = await evaluate(local, texts, wideSql(column, 't'))
            for (const [n, text] of texts.entries()) {
              const told = { type: formatColumnType(type), asText, text }
              expect({ ...told, value: values[n] }).toEqual({ ...told, value: expected(type, text, asText) })
              expect({ ...told, refused: reasons[n] !== null }).toEqual({
                ...told,
                refused: values[n] === null,
              })
              const reading = readText(type, text)
              expect({ ...told, wide: wide[n] }).toEqual({
                ...told,
                wide: String('wide' in reading && reading.wide && !asText),
              })
            }
          }
        }),
        { numRuns: 8 },
      )
    }
  })

  test('a value that a type prints is read back as itself', async () => {
    for (const { type, texts } of typedTexts) {
      await fc.assert(
        fc.asyncProperty(fc.array(texts, { minLength: 20, maxLength: 40 }), async (list) => {
          const column = columnOf(type, { asText: true })
          const once = await evaluate(local, list, textOf(column, readSql(column, 't')))
          expect(once).not.toContain(null)
          expect(await evaluate(local, once, textOf(column, readSql(column, 't')))).toEqual(once)
        }),
        { numRuns: 8 },
      )
    }
  })

  test('NULL stays NULL and is no reject', async () => {
    for (const { type } of typedTexts) {
      for (const asText of [false, true]) {
        const column = columnOf(type, { asText })
        expect(await evaluate(local, [null], readSql(column, 't'))).toEqual([null])
        expect(await evaluate(local, [null], reasonSql(column, 't'))).toEqual([null])
        expect(await evaluate(local, [null], wideSql(column, 't'))).toEqual(['false'])
      }
    }
  })

  test("a zone's name in one row does not change how another row is read", async () => {
    const zoned = '2024-07-01 10:00:00 Europe/Berlin'
    const rows = ['2024-07-01 10:00:00', zoned, '2024-07-01 10:00:00', '2024-07-01 10:00:00Z', zoned]
    expect(await read('timestamptz', rows)).toEqual([null, null, null, '2024-07-01 10:00:00+00', null])
    expect(await read('timestamptz', rows.toReversed())).toEqual([
      null,
      '2024-07-01 10:00:00+00',
      null,
      null,
      null,
    ])
  })

  test('the session zone does not matter', async () => {
    await using other = await openLocalEngine()
    await other.run(`set TimeZone = 'Asia/Tokyo'`)
    const column = columnOf({ kind: 'timestamptz' })
    const texts = ['2024-10-27T02:30:00+02:00', '1969-07-20T16:17:40.000-04:00', 'infinity']
    expect(await evaluate(other, texts, textSql(column, readSql(column, 't')))).toEqual([
      '2024-10-27 00:30:00+00',
      '1969-07-20 20:17:40+00',
      'infinity',
    ])
  })

  test('values beyond the local type are wide, and text in a column that is text', async () => {
    const cases: [string, string, string][] = [
      ['date', '0044-03-15 BC', '0044-03-15 BC'],
      ['date', '12000-01-01', '12000-01-01'],
      ['timestamptz', '0001-01-01T01:00:00+02:00', '0001-12-31 23:00:00+00 BC'],
      ['timestamptz', '9999-12-31 23:00:00-02', '10000-01-01 01:00:00+00'],
      ['timestamptz', '12000-01-01 00:00:00+00', '12000-01-01 00:00:00+00'],
      ['timestamp', '9999-12-31 24:00:00', '10000-01-01 00:00:00'],
      ['timestamp', '12000-01-01 00:00:00', '12000-01-01 00:00:00'],
      ['numeric(12,2)', 'NaN', 'NaN'],
    ]
    for (const [type, text, form] of cases) {
      expect(await read(type, [text])).toEqual([null])
      expect(await evaluate(local, [text], wideSql(columnOf(parseColumnType(type)), 't'))).toEqual(['true'])
      expect(await read(type, [text], true)).toEqual([form])
    }
  })

  test('texts of a megabyte and numbers of a hundred thousand digits do not break the reader', async () => {
    const digits = '9'.repeat(100_000)
    expect(await read('numeric', [`${digits}.50`])).toEqual([`${digits}.50`])
    expect(await read('text', ['é'.repeat(1_000_000)])).toEqual(['é'.repeat(1_000_000)])
    expect(await read('bigint', [`${'0'.repeat(100_000)}7`, digits])).toEqual(['7', null])
    expect(await read('double precision', [`0.${digits}`, `${digits}e-100000`])).toEqual(['1.0', '1.0'])
  })
})

describe('sameness', () => {
  async function same(
    type: string,
    pairs: readonly (readonly [string | null, string | null])[],
    asText = false,
  ) {
    const column = columnOf(parseColumnType(type), { asText })
    const flat = pairs.map((pair) => JSON.stringify(pair))
    const side = (n: number) => readSql(column, `(t::json->>${n})`)
    return (await evaluate(local, flat, sameSql(column, `(${side(0)})`, `(${side(1)})`))).map(
      (v) => v === 'true',
    )
  }

  test.each<[string, string | null, string | null, boolean]>([
    ['numeric', '1.10', '11e-1', true],
    ['numeric', '-0.00', '0', true],
    ['numeric', 'NaN', 'nan', true],
    ['numeric', 'Infinity', 'NaN', false],
    ['numeric', `${'9'.repeat(300)}.10`, `${'9'.repeat(300)}.1`, true],
    ['numeric', `${'9'.repeat(300)}.1`, `${'9'.repeat(299)}8.1`, false],
    ['numeric', '9007199254740993', '9007199254740992', false],
    ['numeric', null, null, true],
    ['numeric', null, '0', false],
    ['double precision', 'NaN', 'NaN', true],
    ['double precision', '-0', '0', true],
    ['text', 'a', 'A', false],
    ['text', 'Cão', 'Ca\u0303o', false],
    ['text', '', null, false],
    ['jsonb', '{"b":1,"a":[1.0,10]}', '{"a":[1.00,1e1],"b":1}', true],
    ['jsonb', '{"a":[1,2]}', '{"a":[2,1]}', false],
    ['jsonb', '{"v":1}', '{"v":"1"}', false],
    ['json', '{"t":"caf\\u00e9"}', '{"t":"café"}', true],
    ['timestamptz', '2025-03-01T10:00:00+02:00', '2025-03-01T08:00:00Z', true],
    ['timestamptz', '2025-03-01T08:00:00.000001Z', '2025-03-01T08:00:00Z', false],
    ['uuid', 'A0EEBC999C0B4EF8BB6D6BB9BD380A11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true],
  ])('as %s, %j and %j are the same: %s', async (type, a, b, answer) => {
    expect(await same(type, [[a, b]])).toEqual([answer])
  })

  test('what is the same groups together, and nothing else does', async () => {
    const texts = [
      '1.10',
      '1.1',
      '11e-1',
      '1.2',
      '-0',
      '0.0',
      'NaN',
      'nan',
      'Infinity',
      '1e400',
      `1${'0'.repeat(400)}`,
    ]
    const column = columnOf({ kind: 'numeric' })
    const identities = await evaluate(local, texts, identitySql(column, readSql(column, 't')))
    expect(new Set(identities).size).toBe(6)
    // An identity is the same whether its text has been read before or not.
    expect(await evaluate(local, texts, identitySql(column, 't'))).toEqual(identities)
  })

  test("what PostgreSQL's json holds and jsonb does not stands for itself", async () => {
    const column = columnOf({ kind: 'json' })
    const texts = ['"\\u0000"', '"\\ud800"', '"a"']
    expect(await evaluate(local, texts, identitySql(column, 't'))).toEqual(texts)
    expect(await evaluate(local, texts, sameSql(column, 't', `'"a"'`))).toEqual(['false', 'false', 'true'])
  })
})

describe('order', () => {
  test('numbers of any length are ordered by value', async () => {
    const ordered = [
      '-Infinity',
      `-1${'0'.repeat(300)}`,
      '-100',
      '-12.34',
      '-12.3',
      '-12',
      '-0.5',
      '-0.05',
      '0',
      '0.05',
      '0.5',
      '1',
      '9',
      '10',
      '12',
      '12.3',
      '12.34',
      '9007199254740992',
      '9007199254740993',
      `1${'0'.repeat(300)}`,
      'Infinity',
      'NaN',
    ]
    const keys = await evaluate(local, ordered, orderSql(columnOf({ kind: 'numeric' }), 't'))
    expect(keys.toSorted((a, b) => Buffer.compare(Buffer.from(a ?? ''), Buffer.from(b ?? '')))).toEqual(keys)
    expect(new Set(keys).size).toBe(ordered.length)
    expect(
      await evaluate(local, ['1.10', '11e-1', null], orderSql(columnOf({ kind: 'numeric' }), 't')),
    ).toEqual(await evaluate(local, ['1.1', '1.1', null], orderSql(columnOf({ kind: 'numeric' }), 't')))
  })

  test('times that are held as text are ordered in time', async () => {
    const ordered = [
      '-infinity',
      '4714-11-24 00:00:00+00 BC',
      '0044-03-14 23:59:59.999999+00 BC',
      '0044-03-15 10:00:00+00 BC',
      '0044-12-31 00:00:00+00 BC',
      '0001-12-31 23:00:00+00 BC',
      '0001-01-01 00:00:00+00',
      '2024-02-29 10:00:00+00',
      '2024-02-29 10:00:00.000001+00',
      '2024-02-29 10:00:00.1+00',
      '9999-12-31 23:59:59+00',
      '10000-01-01 00:00:00+00',
      '294276-12-31 23:59:59.999999+00',
      'infinity',
    ]
    const column = columnOf({ kind: 'timestamptz' }, { asText: true })
    const keys = await evaluate(local, ordered, orderSql(column, 't'))
    expect(keys).not.toContain(null)
    expect(keys.toSorted()).toEqual(keys)
    expect(new Set(keys).size).toBe(ordered.length)
  })
})
