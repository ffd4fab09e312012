/** A value as a program holds it. A `Date` is none of them: it has no microseconds and no zone. */
export type RowValue = string | number | bigint | boolean | null | undefined

/**
 * The exact text of a value, or undefined where it has none (see {@link whyRefused}). In a floating point column a
 * number keeps what only floating point has: the sign of zero, and exponents for what would be 300 digits.
 */
export function textOfValue(value: RowValue, floating: boolean): string | null | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? value : undefined
    case 'number':
      return textOfNumber(value, floating)
    case 'bigint':
      return String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    default:
      return value === null || value === undefined ? null : undefined
  }
}

function textOfNumber(value: number, floating: boolean): string | undefined {
  if (floating) return Object.is(value, -0) ? '-0' : String(value)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return undefined
  const text = String(value)
  return text.includes('e') ? withoutExponent(text) : text
}

/** `1.5e-7` as `0.00000015`. Whole numbers never come here: those that JavaScript prints with an exponent are unsafe. */
function withoutExponent(text: string): string {
  const [mantissa = '', exponent = '0'] = text.split('e-')
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace('-', '').replace('.', '')
  return `${sign}0.${'0'.repeat(Number(exponent) - 1)}${digits}`
}

/** Why a value has no exact text. */
export function whyRefused(value: string | number): string {
  return typeof value === 'string'
    ? 'is no Unicode text: it holds half of a surrogate pair'
    : 'is beyond 2^53 and has been rounded by JavaScript already: give a bigint or a string'
}
