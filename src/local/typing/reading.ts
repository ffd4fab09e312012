import { formatColumnType } from '../../model/column-type.ts'
import type { ColumnType } from '../../model/columns.ts'
import { readJson } from '../canonical-json.ts'
import {
  fitsNumeric,
  integerDigits,
  normalized,
  parseDecimal,
  parseDecimalWord,
  plainText,
} from './decimal.ts'
import { shortestFloat } from './float.ts'
import { readMoment, readTime } from './moment.ts'

/**
 * What a text says in a column of a type: the same value in the target's own form, or why it cannot be read without
 * losing something, in words that follow the value and do not repeat it.
 */
export type Reading =
  | {
      readonly text: string
      /** A value of the type that the local engine's type cannot hold. */
      readonly wide: boolean
    }
  | { readonly reason: string }

/** Greatest precision of the local engine's DECIMAL. */
const LOCAL_PRECISION_MAX = 38

const LIMITS = {
  smallint: { least: -(2n ** 15n), greatest: 2n ** 15n - 1n },
  integer: { least: -(2n ** 31n), greatest: 2n ** 31n - 1n },
  bigint: { least: -(2n ** 63n), greatest: 2n ** 63n - 1n },
}

/** Spellings of true and false; the reader takes them in any case. */
export const TRUE_WORDS = ['true', 't', 'yes', 'y', 'on', '1'] as const
export const FALSE_WORDS = ['false', 'f', 'no', 'n', 'off', '0'] as const

const HAS_BLANKS_AROUND = /^\s|\s$/
const IN_BRACES = /^\{(.*)\}$/s
const UUID = /^(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}$/i
const HEX_BYTES = /^\\x(?:[0-9a-f]{2})*$/i

/**
 * The one definition of how text becomes a value. The SQL of `typing.ts` decides the common spellings by itself, only
 * because that is faster, and asks here for all others.
 */
export function readText(type: ColumnType, text: string): Reading {
  switch (type.kind) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return readInteger(type.kind, text)
    case 'numeric':
      return readNumeric(type, text)
    case 'real':
    case 'double':
      return readFloat(type.kind, text)
    case 'boolean':
      return readBoolean(text)
    case 'date':
      return withoutBlanks(text, readMoment(text, type.kind, undefined))
    case 'timestamp':
    case 'timestamptz':
      return withoutBlanks(text, readMoment(text, type.kind, type.precision))
    case 'time':
      return withoutBlanks(text, readTime(text, type.precision))
    case 'uuid':
      return readUuid(text)
    case 'bytea':
      return HEX_BYTES.test(text)
        ? held(text.toLowerCase())
        : { reason: String.raw`is not \x followed by pairs of hex digits, as bytea is written` }
    case 'json':
    case 'jsonb': {
      const reading = text.includes('\0') ? { reason: NUL } : readJson(text)
      return 'text' in reading ? held(reading.text) : reading
    }
    case 'text':
    case 'other':
      return readCharacters(text, text, undefined, type)
    case 'varchar':
      return readCharacters(text, text, type.length, type)
    case 'char':
      // Blanks at the end of a char(n) are filling, so that none of the value is lost with them.
      return readCharacters(text, text.replace(/ +$/, ''), type.length, type)
  }
}

/** Whether the local engine has a type for it; otherwise such a column is text there. */
export function isLocalDecimal(
  type: ColumnType,
): type is { readonly kind: 'numeric'; readonly precision: number; readonly scale: number } {
  if (type.kind !== 'numeric' || type.precision === undefined) return false
  const { precision, scale = 0 } = type
  return precision <= LOCAL_PRECISION_MAX && scale >= 0 && scale <= precision
}

const NUL = 'holds a NUL character, which no database text can hold'

function held(text: string): Reading {
  return { text, wide: false }
}

/** The first thing to say of a value with blanks around it is that: they cannot be seen. */
function withoutBlanks(text: string, reading: Reading): Reading {
  if ('text' in reading) return reading
  if (text === '') return { reason: 'is an empty text, which is a value of text columns only' }
  return HAS_BLANKS_AROUND.test(text) ? { reason: 'has blanks before or after it' } : reading
}

function readInteger(kind: keyof typeof LIMITS, text: string): Reading {
  const match = /^([+-]?)0*(\d+)(?:\.0+)?$/.exec(text)
  if (match === null) {
    const decimals = parseDecimal(text)?.scale ?? 0
    return withoutBlanks(text, {
      reason: decimals > 0 ? `has decimals; ${kind} keeps whole numbers` : 'is not a whole number in digits',
    })
  }
  const [, sign, digits = ''] = match
  const { least, greatest } = LIMITS[kind]
  const value = digits.length > 19 ? null : BigInt(digits) * (sign === '-' ? -1n : 1n)
  if (value === null || value < least || value > greatest) return { reason: `is out of range of ${kind}` }
  return held(String(value))
}

function readNumeric(type: Extract<ColumnType, { kind: 'numeric' }>, text: string): Reading {
  const { precision, scale = 0 } = type
  const name = formatColumnType(type)
  const word = parseDecimalWord(text)
  if (word === 'NaN') return { text: word, wide: isLocalDecimal(type) }
  if (word !== null) {
    return precision === undefined ? held(word) : { reason: `is infinite, which ${name} cannot hold` }
  }
  const decimal = parseDecimal(text)
  if (decimal === null) return withoutBlanks(text, { reason: `is not a number that ${name} can hold` })
  if (precision === undefined) {
    return fitsNumeric(decimal)
      ? held(plainText(decimal, decimal.scale))
      : { reason: 'is out of range of numeric (131072 digits before the point, 16383 after it)' }
  }
  const least = normalized(decimal)
  if (-least.exponent > scale && least.digits !== '') {
    return { reason: tooFine(least.scale, scale, name) }
  }
  if (least.digits !== '' && integerDigits(least) > precision - scale) {
    return { reason: `is out of range of ${name}` }
  }
  return held(plainText(least, Math.max(0, scale)))
}

function tooFine(decimals: number, scale: number, name: string): string {
  if (scale < 0) return `would be rounded: ${name} keeps multiples of ${plainText(powerOfTen(-scale), 0)}`
  return `has ${decimals} ${decimals === 1 ? 'decimal' : 'decimals'}, ${name} keeps ${scale}`
}

function powerOfTen(exponent: number): Parameters<typeof plainText>[0] {
  return { negative: false, digits: '1', exponent, scale: 0 }
}

function readFloat(kind: 'real' | 'double', text: string): Reading {
  const name = formatColumnType({ kind })
  const word = parseDecimalWord(text)
  if (word !== null) return held(word)
  const reading = shortestFloat(text, kind)
  if (reading === null) return withoutBlanks(text, { reason: 'is not a number' })
  switch (reading.kind) {
    case 'value':
      return held(reading.text)
    case 'overflow':
      return { reason: `is out of range of ${name}` }
    case 'underflow':
      return { reason: `is too close to 0 for ${name}, which would make it 0` }
  }
}

function readBoolean(text: string): Reading {
  const word = text.toLowerCase()
  if (TRUE_WORDS.some((candidate) => candidate === word)) return held('true')
  if (FALSE_WORDS.some((candidate) => candidate === word)) return held('false')
  return withoutBlanks(text, {
    reason: 'is not true or false (t/f, yes/no, y/n, on/off and 1/0 are known too)',
  })
}

function readUuid(text: string): Reading {
  const grouped = IN_BRACES.exec(text)?.[1] ?? text
  if (!UUID.test(grouped)) {
    return withoutBlanks(text, { reason: 'is not a UUID (32 hex digits, in groups or not)' })
  }
  const digits = grouped.replaceAll('-', '').toLowerCase()
  return held(digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'))
}

function readCharacters(
  text: string,
  counted: string,
  length: number | undefined,
  type: ColumnType,
): Reading {
  if (text.includes('\0')) return { reason: NUL }
  // Characters, not UTF-16 units: an emoji is one, as the database counts.
  if (length === undefined || counted.length <= length || [...counted].length <= length) return held(text)
  return { reason: `is longer than ${formatColumnType(type)}` }
}
