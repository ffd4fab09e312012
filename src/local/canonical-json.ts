import { fitsNumeric, normalized, parseDecimal, plainText } from './typing/decimal.ts'

/** Deeper documents are refused: they are attacks or accidents, and PostgreSQL has a limit of its own. */
const DEPTH_MAX = 1000
/** How much longer a document may become by writing exponents out; `1e131071` alone is 131,072 digits. */
const GROWTH_MAX = 4_000_000

/** A JSON document in one form, or what is wrong with it, in words that follow the value. */
export type JsonReading = { readonly text: string } | { readonly reason: string }

/**
 * A JSON document as PostgreSQL's jsonb prints it: keys by length and then by bytes, of equal keys the last, numbers in
 * plain digits with their decimals kept (`1.50`, and `1e2` as `100`), one blank after `:` and `,`.
 *
 * @returns null when the text is not JSON, or holds what PostgreSQL refuses: a NUL, half of a surrogate pair, a number
 * beyond `numeric`.
 * @example
 * canonicalJson('{"b":1e2,"a":[1,2]}') // '{"a": [1, 2], "b": 100}'
 */
export function canonicalJson(text: string): string | null {
  const reading = readJson(text)
  return 'text' in reading ? reading.text : null
}

/** Like {@link canonicalJson} with numbers by value as well: documents are equal exactly when these texts are. */
export function jsonIdentity(text: string): string | null {
  const reading = scan(text, (decimal) => {
    const least = normalized(decimal)
    return plainText(least, least.scale)
  })
  return 'text' in reading ? reading.text : null
}

/** {@link canonicalJson} with the reason of a refusal. */
export function readJson(text: string): JsonReading {
  return scan(text, (decimal) => plainText(decimal, decimal.scale))
}

type NumberText = (decimal: NonNullable<ReturnType<typeof parseDecimal>>) => string

function scan(text: string, numberText: NumberText): JsonReading {
  try {
    return { text: new Scanner(text, numberText).document() }
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.message }
    throw error
  }
}

/** Ends a scan; never leaves this file. */
class Refusal extends Error {}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const MINUS = 0x2d
const DIGIT_0 = 0x30
const DIGIT_1 = 0x31
const DIGIT_9 = 0x39
const FIRST_PRINTABLE = 0x20

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** Longer ones are looked at, since a numeric does not hold all of them. */
const PLAIN_DIGITS_MAX = 1000
const HEX = /^[0-9a-fA-F]{4}$/
/** With the control characters that need no escape: a look at each decides. */
const MAY_NEED_ESCAPE = /["\\\p{Cc}]/u
const EACH_THAT_MAY = /["\\\p{Cc}]/gu
const ASCII = /^\p{ASCII}*$/u

const CHARACTER_BY_ESCAPE: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

const ESCAPE_BY_CHARACTER: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

type Entry = [key: string, printed: string]

class Scanner {
  readonly #text: string
  readonly #numberText: NumberText
  #at = 0
  #growth = 0

  constructor(text: string, numberText: NumberText) {
    this.#text = text
    this.#numberText = numberText
  }

  document(): string {
    const printed = this.#value(0)
    this.#skipBlanks()
    if (this.#at < this.#text.length) throw this.#notJson()
    return printed
  }

  #value(depth: number): string {
    this.#skipBlanks()
    if (depth > DEPTH_MAX) throw new Refusal(`is nested more than ${DEPTH_MAX} levels deep`)
    switch (this.#text.charCodeAt(this.#at)) {
      case QUOTE:
        return print(this.#string())
      case OPEN_BRACE:
        return this.#object(depth)
      case OPEN_BRACKET:
        return this.#array(depth)
      case LOWER_T:
        return this.#word('true')
      case LOWER_F:
        return this.#word('false')
      case LOWER_N:
        return this.#word('null')
      default:
        return this.#number()
    }
  }

  #word(word: string): string {
    if (!this.#text.startsWith(word, this.#at)) throw this.#notJson()
    this.#at += word.length
    return word
  }

  #object(depth: number): string {
    this.#at += 1
    this.#skipBlanks()
    if (this.#takes(CLOSE_BRACE)) return '{}'
    const entries: Entry[] = []
    let inOrder = true
    do {
      this.#skipBlanks()
      if (this.#text.charCodeAt(this.#at) !== QUOTE) throw this.#notJson()
      const key = this.#string()
      this.#skipBlanks()
      if (!this.#takes(COLON)) throw this.#notJson()
      const before = entries.at(-1)
      inOrder &&= before === undefined || compareKeys(before[0], key) < 0
      entries.push([key, this.#value(depth + 1)])
      this.#skipBlanks()
    } while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_BRACE)) throw this.#notJson()
    // A map keeps the last of equal keys.
    const sorted = inOrder ? entries : [...new Map(entries)].sort(([a], [b]) => compareKeys(a, b))
    let printed = ''
    for (const [key, value] of sorted) printed += `${printed === '' ? '{' : ', '}${print(key)}: ${value}`
    return `${printed}}`
  }

  #array(depth: number): string {
    this.#at += 1
    this.#skipBlanks()
    if (this.#takes(CLOSE_BRACKET)) return '[]'
    let printed = ''
    do {
      printed += `${printed === '' ? '[' : ', '}${this.#value(depth + 1)}`
      this.#skipBlanks()
    } while (this.#takes(COMMA))
    if (!this.#takes(CLOSE_BRACKET)) throw this.#notJson()
    return `${printed}]`
  }

  #number(): string {
    return this.#plainInteger() ?? this.#anyNumber()
  }

  /** An integer that is printed as it is written: the usual case, for which a pattern would be slow. */
  #plainInteger(): string | null {
    const text = this.#text
    let at = this.#at
    if (text.charCodeAt(at) === MINUS) at += 1
    const first = text.charCodeAt(at)
    if (!(first >= DIGIT_1 && first <= DIGIT_9)) return null
    const limit = at + PLAIN_DIGITS_MAX
    let code = first
    while (code >= DIGIT_0 && code <= DIGIT_9) code = text.charCodeAt(++at)
    if (at > limit || !isAfterInteger(code)) return null
    const printed = text.slice(this.#at, at)
    this.#at = at
    return printed
  }

  #anyNumber(): string {
    NUMBER.lastIndex = this.#at
    const spelled = NUMBER.exec(this.#text)?.[0]
    if (spelled === undefined) throw this.#notJson()
    this.#at += spelled.length
    const decimal = parseDecimal(spelled)
    if (decimal === null) throw this.#notJson()
    if (!fitsNumeric(decimal)) throw new Refusal('holds a number that is out of range of numeric')
    const printed = this.#numberText(decimal)
    this.#growth += printed.length - spelled.length
    if (this.#growth > GROWTH_MAX) {
      throw new Refusal(`holds exponents that would take more than ${GROWTH_MAX} digits`)
    }
    return printed
  }

  #string(): string {
    const start = this.#at + 1
    let at = start
    let value = ''
    let copied = start
    for (;;) {
      const code = this.#text.charCodeAt(at)
      if (code === QUOTE) break
      // Past the end there is no code, and no comparison with it holds.
      if (!(code >= FIRST_PRINTABLE)) throw this.#notJson(at)
      if (code !== BACKSLASH) {
        at += 1
        continue
      }
      value += this.#text.slice(copied, at)
      const { character, length } = this.#escape(at + 1)
      value += character
      at += 1 + length
      copied = at
    }
    this.#at = at + 1
    return copied === start ? this.#text.slice(start, at) : value + this.#text.slice(copied, at)
  }

  /** What stands after a backslash. */
  #escape(at: number): { readonly character: string; readonly length: number } {
    const letter = this.#text.charAt(at)
    if (letter !== 'u') {
      const character = CHARACTER_BY_ESCAPE[letter]
      if (character === undefined) throw this.#notJson(at)
      return { character, length: 1 }
    }
    const unit = this.#hex(at + 1)
    if (unit === 0) throw new Refusal('holds \\u0000, which no database text can hold')
    const isHigh = unit >= 0xd800 && unit < 0xdc00
    if (!isHigh && !(unit >= 0xdc00 && unit < 0xe000)) {
      return { character: String.fromCharCode(unit), length: 5 }
    }
    const low = isHigh && this.#text.startsWith('\\u', at + 5) ? this.#hex(at + 7) : 0
    if (low < 0xdc00 || low >= 0xe000)
      throw new Refusal('holds half of a surrogate pair, which is no character')
    return { character: String.fromCharCode(unit, low), length: 11 }
  }

  #hex(at: number): number {
    const digits = this.#text.slice(at, at + 4)
    if (!HEX.test(digits)) throw this.#notJson(at)
    return Number.parseInt(digits, 16)
  }

  #takes(code: number): boolean {
    if (this.#text.charCodeAt(this.#at) !== code) return false
    this.#at += 1
    return true
  }

  #skipBlanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at += 1
    }
  }

  #notJson(at: number = this.#at): Refusal {
    return new Refusal(
      this.#text.trim() === '' ? 'is empty, not JSON' : `is not valid JSON, from character ${at + 1} on`,
    )
  }
}

/** Whether a number ends before this character; NaN is the end of the text. */
function isAfterInteger(code: number): boolean {
  return (
    Number.isNaN(code) ||
    code === COMMA ||
    code === CLOSE_BRACKET ||
    code === CLOSE_BRACE ||
    code <= FIRST_PRINTABLE
  )
}

function print(value: string): string {
  return MAY_NEED_ESCAPE.test(value) ? `"${value.replace(EACH_THAT_MAY, escaped)}"` : `"${value}"`
}

function escaped(character: string): string {
  const code = character.charCodeAt(0)
  const plain = code >= FIRST_PRINTABLE ? character : `\\u${code.toString(16).padStart(4, '0')}`
  return ESCAPE_BY_CHARACTER[character] ?? plain
}

/** By length in bytes, then by bytes: jsonb's order. JavaScript's own order of strings is that of UTF-16, another one. */
function compareKeys(a: string, b: string): number {
  if (ASCII.test(a) && ASCII.test(b)) {
    if (a.length !== b.length) return a.length - b.length
    return a < b ? -1 : a > b ? 1 : 0
  }
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length - right.length || Buffer.compare(left, right)
}
