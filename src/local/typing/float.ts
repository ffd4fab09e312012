import { type Decimal, normalized, parseDecimal, plainText } from './decimal.ts'

/** An IEEE 754 binary format: bits of the significand, and the exponents of its last bit. */
interface FloatFormat {
  readonly bits: number
  readonly exponentMin: number
  readonly exponentMax: number
}

const FORMATS: Record<'real' | 'double', FloatFormat> = {
  real: { bits: 24, exponentMin: -149, exponentMax: 104 },
  double: { bits: 53, exponentMin: -1074, exponentMax: 971 },
}

/** `significand × 2^exponent` */
interface Binary {
  readonly significand: bigint
  readonly exponent: number
}

/**
 * More digits than any point half-way between two doubles has (767); what comes after them can only say that the number
 * is above the half.
 */
const DIGITS_THAT_MATTER = 800

/** What a decimal text becomes as a binary floating-point number. */
export type FloatReading =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'overflow' }
  | { readonly kind: 'underflow' }

/**
 * The shortest decimal that reads back as the same float, in plain digits: `0.1`, `100`, `-0`. Of several shortest ones
 * the closest, of two that are as close the even one. Null when the text is no decimal number. In integers throughout, so
 * that a `real` is not rounded twice.
 */
export function shortestFloat(text: string, kind: FloatKind): FloatReading | null {
  return read(text, kind, kind)
}

/** A `real` as the double of the same value: 0.1 is 0.10000000149011612, in every database and language. */
export function widenedReal(text: string): FloatReading | null {
  return read(text, 'real', 'double')
}

type FloatKind = keyof typeof FORMATS

function read(text: string, kind: FloatKind, printedAs: FloatKind): FloatReading | null {
  const decimal = parseDecimal(text)
  if (decimal === null) return null
  const sign = decimal.negative ? '-' : ''
  if (decimal.digits === '') return { kind: 'value', text: `${sign}0` }
  const size = decimal.digits.length + decimal.exponent
  if (size > 400) return { kind: 'overflow' }
  if (size < -400) return { kind: 'underflow' }
  const binary = nearest(decimal, FORMATS[kind])
  if (binary.significand === 0n) return { kind: 'underflow' }
  if (binary.exponent > FORMATS[kind].exponentMax) return { kind: 'overflow' }
  const least = normalized(shortestDigits(inFormat(binary, FORMATS[printedAs]), FORMATS[printedAs]))
  return { kind: 'value', text: sign + plainText(least, least.scale) }
}

/** Rounds to the nearest float, ties to even. */
function nearest({ digits, exponent }: Decimal, { bits, exponentMin }: FloatFormat): Binary {
  const cut = digits.length - DIGITS_THAT_MATTER
  // A dropped tail that is not zero puts the number above any half: one more 1 says the same.
  const kept =
    cut > 0
      ? digits.slice(0, DIGITS_THAT_MATTER) + (/[1-9]/.test(digits.slice(DIGITS_THAT_MATTER)) ? '1' : '0')
      : digits
  const power = cut > 0 ? exponent + cut - 1 : exponent
  const numerator = BigInt(kept) * (power > 0 ? 10n ** BigInt(power) : 1n)
  const denominator = power < 0 ? 10n ** BigInt(-power) : 1n
  let scale = Math.max(exponentMin, bitLength(numerator) - bitLength(denominator) - bits)
  for (;;) {
    const top = scale < 0 ? numerator << BigInt(-scale) : numerator
    const bottom = scale > 0 ? denominator << BigInt(scale) : denominator
    let significand = top / bottom
    const twice = (top % bottom) * 2n
    if (twice > bottom || (twice === bottom && significand % 2n === 1n)) significand += 1n
    if (bitLength(significand) <= bits) return { significand, exponent: scale }
    // Too coarse a guess, or rounded up to the next power of two: one bit less, and from the exact value again.
    scale += 1
  }
}

/** The same value with all the bits that the format has for it. */
function inFormat({ significand, exponent }: Binary, { bits, exponentMin }: FloatFormat): Binary {
  const more = Math.max(0, Math.min(bits - bitLength(significand), exponent - exponentMin))
  return { significand: significand << BigInt(more), exponent: exponent - more }
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length
}

/** Digit generation by Steele and White in the form of Burger and Dybvig: stops as soon as no other float is as near. */
function shortestDigits({ significand, exponent }: Binary, { bits, exponentMin }: FloatFormat): Decimal {
  // Below a power of two the floats lie twice as dense, so the gap downwards is half the one upwards.
  const denseBelow = significand === 1n << BigInt(bits - 1) && exponent > exponentMin
  const unit = exponent > 0 ? 1n << BigInt(exponent) : 1n
  const double = denseBelow ? 4n : 2n
  let rest = significand * unit * double
  let scale = (exponent < 0 ? 1n << BigInt(-exponent) : 1n) * double
  let below = unit
  let above = denseBelow ? unit * 2n : unit
  const inclusive = significand % 2n === 0n
  const reaches = (sum: bigint, limit: bigint) => (inclusive ? sum >= limit : sum > limit)
  let position = 0
  while (reaches(rest + above, scale)) {
    scale *= 10n
    position += 1
  }
  while (!reaches((rest + above) * 10n, scale)) {
    rest *= 10n
    below *= 10n
    above *= 10n
    position -= 1
  }
  let digits = ''
  for (;;) {
    rest *= 10n
    below *= 10n
    above *= 10n
    const digit = rest / scale
    rest %= scale
    const lowEnough = inclusive ? rest <= below : rest < below
    const highEnough = reaches(rest + above, scale)
    if (!lowEnough && !highEnough) {
      digits += String(digit)
      continue
    }
    const isHalf = rest * 2n === scale
    const isNearerAbove = isHalf ? digit % 2n === 1n : rest * 2n > scale
    const up = lowEnough && highEnough ? isNearerAbove : highEnough
    digits += String(up ? digit + 1n : digit)
    return { negative: false, digits, exponent: position - digits.length, scale: 0 }
  }
}
