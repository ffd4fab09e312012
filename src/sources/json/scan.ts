/**
 * JSON, read by its characters. A parser would make numbers of numbers and lose digits; here every value stays the text
 * that it is.
 */

/** Why scanning stopped: `cut` is a text that ends too early, `broken` one that is no JSON. */
export class JsonFault extends Error {
  override readonly name = 'JsonFault'
  readonly kind: 'cut' | 'broken'
  /** Where in the text. */
  readonly at: number

  constructor(kind: 'cut' | 'broken', at: number, message: string) {
    super(message)
    this.kind = kind
    this.at = at
  }
}

/** What was found beside the end of a value. */
export interface Findings {
  /** Why this is JSON, but cannot be loaded. */
  refusal: string | null
  /** Whether the last string has escapes. */
  escaped: boolean
}

export const QUOTE = 0x22
export const COMMA = 0x2c
const COLON = 0x3a
export const BRACKET = 0x5b
export const BRACKET_END = 0x5d
export const BRACE = 0x7b
export const BRACE_END = 0x7d
const BACKSLASH = 0x5c
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39

/** Deeper values are refused: PostgreSQL's own parser gives up at some thousands of levels, and fails the whole run. */
const DEPTH_MAX = 1000

/** Throws for the character at `at`, or for its absence. */
export function unexpected(text: string, at: number, wanted: string): never {
  if (at >= text.length) throw new JsonFault('cut', at, `it ends where ${wanted} should follow`)
  const found = JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))
  throw new JsonFault('broken', at, `${found} stands where ${wanted} should`)
}

export function skipSpace(text: string, from: number): number {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

/** From an opening quote to behind the closing one. */
export function skipString(text: string, from: number, findings: Findings): number {
  let at = from + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) {
      findings.escaped = true
      at = skipEscape(text, at, findings)
    } else if (code >= 0x20) at++
    else if (at >= text.length) throw new JsonFault('cut', at, 'it ends within a string')
    else throw new JsonFault('broken', at, 'a control character stands bare within a string')
  }
}

function skipEscape(text: string, at: number, findings: Findings): number {
  const letter = text.charAt(at + 1)
  if (letter !== 'u') {
    if (letter === '' || !'"\\/bfnrt'.includes(letter)) unexpected(text, at + 1, 'the letter of an escape')
    return at + 2
  }
  const unit = hexUnit(text, at + 2)
  if (unit < 0xd800 || unit > 0xdfff) return at + 6
  const isPair =
    unit < 0xdc00 &&
    text.charCodeAt(at + 6) === BACKSLASH &&
    text.charAt(at + 7) === 'u' &&
    (hexUnit(text, at + 8) & 0xfc00) === 0xdc00
  if (isPair) return at + 12
  findings.refusal ??= `holds half of a surrogate pair (${text.slice(at, at + 6)}), which is no Unicode text`
  return at + 6
}

function hexUnit(text: string, at: number): number {
  let unit = 0
  for (let i = at; i < at + 4; i++) {
    const digit = Number.parseInt(text.charAt(i), 16)
    if (Number.isNaN(digit)) unexpected(text, i, 'a hexadecimal digit')
    unit = unit * 16 + digit
  }
  return unit
}

const ESCAPED = /\\(?:u([0-9a-fA-F]{4})|(.))/g
const BY_LETTER: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** What a string's characters between its quotes stand for. */
export function unescaped(raw: string): string {
  return raw.replace(ESCAPED, (_, unit: string | undefined, letter: string) =>
    unit === undefined ? (BY_LETTER[letter] ?? letter) : String.fromCharCode(Number.parseInt(unit, 16)),
  )
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

function skipDigits(text: string, from: number): number {
  if (!isDigit(text.charCodeAt(from))) unexpected(text, from, 'a digit')
  let at = from + 1
  while (isDigit(text.charCodeAt(at))) at++
  return at
}

function skipNumber(text: string, from: number): number {
  let at = text.charCodeAt(from) === MINUS ? from + 1 : from
  at = text.charCodeAt(at) === ZERO ? at + 1 : skipDigits(text, at)
  if (text.charCodeAt(at) === POINT) at = skipDigits(text, at + 1)
  const exponent = text.charAt(at)
  if (exponent !== 'e' && exponent !== 'E') return at
  const sign = text.charCodeAt(at + 1)
  return skipDigits(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1)
}

function skipWord(text: string, from: number): number {
  for (const word of ['true', 'false', 'null']) {
    if (text.startsWith(word, from)) return from + word.length
    if (from + word.length > text.length && from < text.length && word.startsWith(text.slice(from))) {
      throw new JsonFault('cut', text.length, 'it ends within a word')
    }
  }
  return unexpected(text, from, 'a value')
}

/** A string, number or word. */
export function skipScalar(text: string, from: number, findings: Findings): number {
  const code = text.charCodeAt(from)
  if (code === QUOTE) return skipString(text, from, findings)
  if (code === MINUS || isDigit(code)) return skipNumber(text, from)
  return skipWord(text, from)
}

/** From the first character of a value to behind its last. Without recursion: files may nest as deep as they like. */
export function skipValue(text: string, from: number, findings: Findings): number {
  const ends: number[] = []
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === BRACE || code === BRACKET) {
      ends.push(code + 2)
      if (ends.length > DEPTH_MAX) findings.refusal ??= `is nested deeper than ${DEPTH_MAX} levels`
      at = skipSpace(text, at + 1)
      if (text.charCodeAt(at) !== code + 2) {
        if (code === BRACE) at = skipKey(text, at, findings)
        continue
      }
    } else at = skipScalar(text, at, findings)
    // A value has ended, or an empty object or array is about to; so may those that it is the last of.
    for (;;) {
      const end = ends.at(-1)
      if (end === undefined) return at
      at = skipSpace(text, at)
      const next = text.charCodeAt(at)
      if (next === end) {
        ends.pop()
        at++
        continue
      }
      if (next !== COMMA) unexpected(text, at, end === BRACE_END ? '"," or "}"' : '"," or "]"')
      at = skipSpace(text, at + 1)
      if (end === BRACE_END) at = skipKey(text, at, findings)
      break
    }
  }
}

/** From a key to the first character of its value. */
function skipKey(text: string, from: number, findings: Findings): number {
  if (text.charCodeAt(from) !== QUOTE) unexpected(text, from, 'a key in quotes')
  return skipColon(text, skipString(text, from, findings))
}

/** From behind a key to the first character of its value. */
export function skipColon(text: string, from: number): number {
  const at = skipSpace(text, from)
  if (text.charCodeAt(at) !== COLON) unexpected(text, at, '":"')
  return skipSpace(text, at + 1)
}
