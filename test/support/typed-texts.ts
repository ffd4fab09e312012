import fc from 'fast-check'
import { parseColumnType } from '../../src/model/column-type.ts'
import type { ColumnType } from '../../src/model/columns.ts'

/** Arbitrary texts for fast-check, by the type in whose column they stand. */

const digits = (min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: min, maxLength: max })
const oneOf = (...texts: string[]) => fc.constantFrom(...texts)
const joined = (...parts: fc.Arbitrary<string>[]) => fc.tuple(...parts).map((list) => list.join(''))
const maybe = (part: fc.Arbitrary<string>) => fc.oneof(fc.constant(''), part)
const padded = (max: number, width: number, min = 0) =>
  fc.integer({ min, max }).map((value) => String(value).padStart(width, '0'))

/** A whole number between two bounds, with the spellings that mean the same. */
function wholeNumbers(bits: number): fc.Arbitrary<string> {
  const limit = 2n ** BigInt(bits - 1)
  return fc
    .tuple(fc.bigInt({ min: -limit, max: limit - 1n }), oneOf('', '0', '00'), oneOf('', '.0', '.000'))
    .map(([value, zeros, fraction]) => {
      const sign = value < 0n ? '-' : zeros === '0' ? '+' : ''
      return `${sign}${zeros}${value < 0n ? -value : value}${fraction}`
    })
}

/** A decimal that fits numeric(precision, scale), moved about by an exponent or not. */
function decimals(precision: number, scale: number): fc.Arbitrary<string> {
  return fc
    .tuple(
      oneOf('', '-', '+'),
      digits(1, Math.max(1, precision - scale)),
      digits(0, scale),
      oneOf('', '0', '000'),
      fc.integer({ min: -3, max: 3 }),
    )
    .map(([sign, whole, fraction, zeros, shift]) => {
      const fits = precision > scale ? whole : '0'
      const point = fraction + zeros === '' ? '' : '.'
      // 12.34 = 1.234e1: the exponent gives back what the point was moved by.
      if (shift <= 0 || fits.length <= shift) return `${sign}${fits}${point}${fraction}${zeros}`
      return `${sign}${fits.slice(0, -shift)}.${fits.slice(-shift)}${fraction}${zeros}e${shift}`
    })
}

const floats = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value.toExponential(20)),
  oneOf(
    'NaN',
    'nan',
    'Infinity',
    '-inf',
    '+Infinity',
    '-0',
    '0',
    '-0.0',
    '5e-324',
    '1.7976931348623157e308',
    '.5',
    '1.',
  ),
  decimals(30, 15),
)

const reals = fc.oneof(
  fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
  oneOf('NaN', 'Infinity', '-Infinity', '-0', '0', '1e-45', '3.4028235e38', '16777217', '0.1', '8388609.5'),
)

const days = fc
  .tuple(fc.oneof(padded(9999, 4, 1), padded(2030, 4, 1990)), padded(12, 2, 1), padded(28, 2, 1))
  .map((parts) => parts.join('-'))
const wideDays = fc.oneof(
  fc.tuple(padded(4713, 4, 1), padded(12, 2, 1), padded(28, 2, 1)).map((parts) => parts.join('-')),
  fc.tuple(padded(294_275, 5, 10_000), padded(12, 2, 1), padded(28, 2, 1)).map((parts) => parts.join('-')),
)
const clock = (fractionMax: number) =>
  joined(
    padded(23, 2),
    fc.constant(':'),
    padded(59, 2),
    maybe(joined(fc.constant(':'), padded(59, 2), maybe(joined(fc.constant('.'), fractionOf(fractionMax))))),
  )
const fractionOf = (max: number) =>
  max === 0 ? oneOf('0', '000', '0000000') : joined(digits(1, max), oneOf('', '0', '0000'))
const offsets = fc.oneof(
  oneOf('Z', 'z', '+00', '-00', ' +02:00', '+15:59', '-12:34:56'),
  joined(oneOf('+', '-'), padded(15, 2), maybe(joined(oneOf(':', ''), padded(59, 2)))),
)
const moments = (fraction: number, zone: fc.Arbitrary<string>) =>
  fc.oneof(
    joined(days, oneOf(' ', 'T'), clock(fraction), zone),
    joined(days, fc.constant(' 24:00:00'), zone),
    joined(wideDays, fc.constant(' '), clock(fraction), zone).map((text) =>
      /^\d{5}/.test(text) ? text : `${text} BC`,
    ),
    oneOf('infinity', '-infinity', 'Infinity'),
  )

const anyString = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => !text.includes('\0'))
const jsons = fc
  .oneof(
    fc.json({ maxDepth: 4, stringUnit: 'grapheme' }),
    fc.json({ maxDepth: 2 }).map((text) => JSON.stringify(JSON.parse(text), null, 2)),
    decimals(20, 5)
      .filter((text) => /^-?(0|[1-9]\d*)(\.\d+)?(e\d+)?$/.test(text))
      .map((number) => `{"n": [${number}], "é": "${number}", "zz": null}`),
  )
  .filter((text) => !text.includes('\\u0000'))

const uuids = fc
  .uuid()
  .chain((uuid) => oneOf(uuid, uuid.toUpperCase(), uuid.replaceAll('-', ''), `{${uuid}}`))

/** A type with texts that can be read in it. */
interface TypedTexts {
  readonly type: ColumnType
  readonly texts: fc.Arbitrary<string>
}

/** Every kind of type, each with and without its parameters. */
export const typedTexts: readonly TypedTexts[] = (
  [
    ['smallint', wholeNumbers(16)],
    ['integer', wholeNumbers(32)],
    ['bigint', wholeNumbers(64)],
    [
      'numeric',
      fc.oneof(decimals(60, 30), oneOf('NaN', 'Infinity', '-inf', '1e400', '0e5', '-0.00', '1e-50')),
    ],
    ['numeric(12,2)', fc.oneof(decimals(12, 2), oneOf('NaN'))],
    ['numeric(5,0)', decimals(5, 0)],
    ['numeric(38,38)', decimals(38, 38)],
    ['numeric(38,10)', decimals(38, 10)],
    ['numeric(45,5)', fc.oneof(decimals(45, 5), oneOf('NaN'))],
    ['numeric(5,-2)', wholeNumbers(17).map((text) => `${text.replace(/\..*/, '')}00`)],
    ['real', reals],
    ['double precision', floats],
    ['boolean', oneOf('true', 'FALSE', 't', 'F', 'yes', 'No', 'on', 'off', '1', '0', 'y', 'n')],
    [
      'date',
      fc.oneof(
        days,
        joined(days, oneOf(' 00:00:00', 'T00:00', ' 00:00:00.000')),
        oneOf('infinity', '0044-03-15 BC', '5874897-12-31'),
      ),
    ],
    ['timestamp', moments(6, fc.constant(''))],
    ['timestamp(3)', moments(3, fc.constant(''))],
    ['timestamp(0)', moments(0, fc.constant(''))],
    ['timestamptz', moments(6, offsets)],
    ['timestamptz(2)', moments(2, offsets)],
    ['time', fc.oneof(clock(6), oneOf('24:00:00', '24:00'))],
    ['time(1)', clock(1)],
    ['uuid', uuids],
    ['text', anyString],
    ['varchar(3)', anyString.map((text) => [...text].slice(0, 3).join(''))],
    ['char(3)', anyString.map((text) => [...text].slice(0, 3).join(''))],
    ['jsonb', jsons],
    ['json', jsons],
    ['bytea', fc.uint8Array({ maxLength: 8 }).map((bytes) => `\\x${Buffer.from(bytes).toString('hex')}`)],
    ['citext', anyString],
  ] as const
).map(([type, texts]) => ({ type: parseColumnType(type), texts }))

/** Texts that have fooled one reader or another. */
const traps = oneOf(
  '\u{FEFF}7',
  '\u{FEFF}2024-01-02',
  '\u{FEFF}{}',
  '',
  ' ',
  '0',
  '-',
  '+',
  '.',
  'e5',
  '1e',
  '007',
  '+7',
  ' 7',
  '7 ',
  '7\n',
  '1_000',
  '0x10',
  '0b1',
  '1,5',
  '1.005',
  '-0.001',
  '1e400',
  '-1e400',
  '1e-400',
  '1e99999999999',
  '9223372036854775808',
  '-9223372036854775809',
  '32768',
  '2147483648',
  '1d',
  '1f',
  'nan',
  '-nan',
  '+NaN',
  'infinit',
  'INF',
  'now',
  'today',
  'epoch',
  'allballs',
  'current_date',
  '2024-02-30',
  '2023-02-29',
  '1900-02-29',
  '0000-01-01',
  '01/02/2024',
  '2024-1-2',
  '20240102',
  '2024-01-02x',
  '2024-01-02 25:00:00',
  '2024-01-02 24:00:01',
  '2024-01-02 10:00:60',
  '2024-01-02 10:00:00.1234567',
  '2024-01-02 10:00:00 Europe/Berlin',
  '2024-01-02 10:00:00 UTC',
  '2024-01-02 10:00:00 BC',
  '2024-01-02T10:00:00+16:00',
  '2024-01-02T10:00:00+02:60',
  '0001-01-01 00:00:00+01',
  '9999-12-31 23:59:59-01',
  '9999-12-31 24:00:00',
  '0044-03-15 (BC)',
  '-0044-03-15',
  '294277-01-01 00:00:00',
  '4714-11-23 BC',
  '10:00:00+02',
  '1:2:3',
  '23:59:60',
  'tr',
  'ja',
  'a\0b',
  '{"a":1',
  '{"a":"\\u0000"}',
  '"\\ud800"',
  '{"a":1,"a":2}',
  '[1,]',
  '01',
  'NULL',
  '\\xAB',
  '\\x1',
  '\\N',
  '\u{1F600}',
  '1\u0663',
  'Cafe\u0301',
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1',
  '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  'a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11',
)

const mutated = (texts: fc.Arbitrary<string>) =>
  fc
    .tuple(texts, fc.nat(), oneOf('delete', 'double', 'replace'), oneOf(...'0159+-.:eETZ xB_,(/\n'.split('')))
    .map(([text, place, how, character]) => {
      const at = place % (text.length + 1)
      if (how === 'delete') return text.slice(0, at) + text.slice(at + 1)
      if (how === 'double') return text.slice(0, at) + text.slice(Math.max(0, at - 1))
      return text.slice(0, at) + character + text.slice(at + 1)
    })
    // Cutting an emoji in two leaves what is no text at all.
    .filter((text) => text.isWellFormed())

/** Any text that might stand in a column of the type: good, nearly good, good in another column, or nothing at all. */
export function anyText(type: ColumnType): fc.Arbitrary<string> {
  const own = typedTexts.find((entry) => entry.type === type)?.texts ?? anyString
  const others = fc.oneof(...typedTexts.map((entry) => entry.texts))
  return fc.oneof(
    { weight: 3, arbitrary: own },
    { weight: 4, arbitrary: mutated(own) },
    { weight: 3, arbitrary: traps },
    { weight: 1, arbitrary: others },
    { weight: 1, arbitrary: anyString },
  )
}
