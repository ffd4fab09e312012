/**
 * Decimal numbers as text, of any length: no JavaScript number ever holds a value. PostgreSQL's `numeric` is the measure
 * of what is a number and how it is written.
 */

/** `digits × 10^exponent`; digits have no leading zero, and zero is `''`. `scale` counts the decimals as written. */
export interface Decimal {
  readonly negative: boolean
  readonly digits: string
  readonly exponent: number
  readonly scale: number
}

export type DecimalWord = 'NaN' | 'Infinity' | '-Infinity'

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/

/** PostgreSQL's numeric holds so many digits before the point … */
const INTEGER_DIGITS_MAX = 131_072
/** … and so many after it. */
const DECIMALS_MAX = 16_383
/** Exponents beyond this are out of range of every type, whatever digits stand before them. */
const EXPONENT_DIGITS_MAX = 7

const WORDS: ReadonlyMap<string, DecimalWord> = new Map([
  ['nan', 'NaN'],
  ['inf', 'Infinity'],
  ['+inf', 'Infinity'],
  ['-inf', '-Infinity'],
  ['infinity', 'Infinity'],
  ['+infinity', 'Infinity'],
  ['-infinity', '-Infinity'],
])

/** The number that a text spells, exactly; null when it is none. Hex, underscores and blanks are none. */
export function parseDecimal(text: string): Decimal | null {
  const match = DECIMAL.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = '', power = '0'] = match
  if (whole === '' && fraction === '') return null
  const digits = (whole + fraction).replace(/^0+/, '')
  const isHuge = power.replace(/^[+-]?0*/, '').length > EXPONENT_DIGITS_MAX
  // PostgreSQL takes no such exponent even of zero, where it would mean nothing.
  if (isHuge && digits === '') return null
  // Infinite in size either way: the sign is all that matters.
  const shift = isHuge ? (power.startsWith('-') ? -1e8 : 1e8) : Number(power)
  return {
    negative: sign === '-',
    digits,
    exponent: shift - fraction.length,
    scale: Math.max(0, fraction.length - shift),
  }
}

/** NaN and the infinities, in any case and with the short spelling; null for anything else. */
export function parseDecimalWord(text: string): DecimalWord | null {
  return text.length > 9 ? null : (WORDS.get(text.toLowerCase()) ?? null)
}

/** Without trailing zeros: `1.50` and `15e-1` become the same. */
export function normalized({ negative, digits, exponent }: Decimal): Decimal {
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return { negative: false, digits: '', exponent: 0, scale: 0 }
  const shifted = exponent + digits.length - significant.length
  return { negative, digits: significant, exponent: shifted, scale: Math.max(0, -shifted) }
}

/** How many digits stand before the point; 0 for 0.5, negative for 0.05. */
export function integerDigits({ digits, exponent }: Decimal): number {
  return digits.length + exponent
}

/** Whether PostgreSQL's numeric without a precision holds it. */
export function fitsNumeric(decimal: Decimal): boolean {
  if (decimal.scale > DECIMALS_MAX) return false
  return decimal.digits === '' || integerDigits(decimal) <= INTEGER_DIGITS_MAX
}

/** In plain digits with exactly so many decimals; surplus decimals must be zeros. */
export function plainText({ negative, digits, exponent }: Decimal, scale: number): string {
  const point = digits === '' ? 0 : digits.length + exponent
  const whole = point <= 0 ? '0' : digits.slice(0, point).padEnd(point, '0')
  const fraction = point < 0 ? '0'.repeat(Math.min(-point, scale)) + digits : digits.slice(Math.max(0, point))
  const decimals = fraction.slice(0, scale).padEnd(scale, '0')
  const text = scale > 0 ? `${whole}.${decimals}` : whole
  return negative && digits !== '' ? `-${text}` : text
}

/** One text for one number: `1.50`, `+1.5` and `15e-1` give `1.5`; `-0.0` gives `0`. Null when it is no number. */
export function decimalIdentity(text: string): string | null {
  const word = parseDecimalWord(text)
  if (word !== null) return word
  const decimal = parseDecimal(text)
  if (decimal === null) return null
  const least = normalized(decimal)
  return fitsNumeric(least) ? plainText(least, least.scale) : null
}

/** More than the exponent of any numeric, so that biased exponents have one width and no sign. */
const EXPONENT_BIAS = 500_000

/**
 * A text whose byte order is the order of the numbers, NaN last as in PostgreSQL. Sign class, then the position of the
 * first digit, then the digits; for negative numbers all of it complemented and closed by a byte above every digit, so
 * that the longer of two texts that begin alike is the smaller.
 */
export function decimalOrder(text: string): string | null {
  const word = parseDecimalWord(text)
  if (word !== null) return word === 'NaN' ? '5' : word === 'Infinity' ? '4' : '0'
  const decimal = parseDecimal(text)
  if (decimal === null) return null
  const { negative, digits, exponent } = normalized(decimal)
  if (digits === '') return '2'
  const size = String(digits.length + exponent + EXPONENT_BIAS).padStart(7, '0')
  return negative ? `1${complement(size + digits)}~` : `3${size}${digits}`
}

function complement(digits: string): string {
  return digits.replace(/\d/g, (digit) => String(9 - Number(digit)))
}
