/** An element of a file's schema: a column, or what lies within one. */
export interface StoredElement {
  readonly name: string
  readonly type: string
  readonly logical: string
  readonly children: number
  /** Digits of a decimal; 0 for anything else. */
  readonly precision: number
}

/** What would be lost of a column's values, in words that follow its name, and how to write it so that it is not. */
export interface Loss {
  readonly reason: string
  readonly cure: string
}

/** The local engine has no decimal of more digits, and makes a double of what is stored in more bytes. */
const DECIMAL_DIGITS_MAX = 38

/**
 * What the local engine's reader would change in the values of a column without a word, at whatever depth.
 *
 * @param stored The column's elements in depth-first order, as the file has them.
 */
export function lossOf(stored: readonly StoredElement[]): Loss | null {
  if (stored.some(({ logical }) => /isAdjustedToUTC=1.*NanoSeconds/.test(logical))) {
    return {
      reason: 'holds instants in nanoseconds, of which three digits would be lost (G9)',
      cure: "Write it with microseconds (in pandas and pyarrow: coerce_timestamps='us')",
    }
  }
  const decimal = stored.find(({ precision }) => precision > DECIMAL_DIGITS_MAX)
  if (decimal !== undefined) {
    return {
      reason: `holds decimals of ${decimal.precision} digits, of which no more than ${DECIMAL_DIGITS_MAX} can be read: they would become other numbers (G9)`,
      cure: `Write it as text, or as a decimal of up to ${DECIMAL_DIGITS_MAX} digits`,
    }
  }
  const twin = twinOf(stored)
  if (twin !== null) {
    return {
      reason: `holds the fields ${twin.map((name) => `"${name}"`).join(' and ')}, whose names differ in case only: one would be called otherwise (G9)`,
      cure: 'Write it with other names of its fields, or as JSON text',
    }
  }
  return null
}

/** Two fields of one group that the local engine takes for the same name; null where there are none. */
function twinOf(stored: readonly StoredElement[]): readonly [string, string] | null {
  const open: { readonly names: Map<string, string>; left: number }[] = []
  for (const { name, children } of stored) {
    const group = open.at(-1)
    if (group !== undefined) {
      const known = group.names.get(name.toLowerCase())
      if (known !== undefined) return [known, name]
      group.names.set(name.toLowerCase(), name)
      group.left--
    }
    if (children > 0) open.push({ names: new Map(), left: children })
    while (open.at(-1)?.left === 0) open.pop()
  }
  return null
}
