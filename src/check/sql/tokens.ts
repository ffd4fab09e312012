/** Small questions about a run of tokens, shared by the shape recogniser and the rules. */
import type { Token } from './lexer.ts'

const NOTHING: Token = {
  kind: 'symbol',
  text: '',
  value: '',
  start: 0,
  end: 0,
  depth: 0,
  startsLine: false,
}

export type Tokens = readonly Token[]

/** The token there, or an empty one behind either end. */
export function tokenAt(tokens: Tokens, index: number): Token {
  return tokens[index] ?? NOTHING
}

export function isWord(tokens: Tokens, index: number, ...words: readonly string[]): boolean {
  const token = tokenAt(tokens, index)
  return token.kind === 'word' && words.includes(token.value)
}

export function isSymbol(tokens: Tokens, index: number, symbol: string): boolean {
  const token = tokenAt(tokens, index)
  return token.kind === 'symbol' && token.value === symbol
}

/** Whether these words stand one after the other from this index on. */
export function areWords(tokens: Tokens, index: number, words: readonly string[]): boolean {
  return words.every((word, offset) => isWord(tokens, index + offset, word))
}

/** The first index at which the words stand, at this bracket depth if one is given; -1 if nowhere. */
export function findWords(
  tokens: Tokens,
  words: readonly string[],
  from = 0,
  depth: number | undefined = undefined,
): number {
  for (let index = from; index < tokens.length; index += 1) {
    if (depth !== undefined && tokenAt(tokens, index).depth !== depth) continue
    if (areWords(tokens, index, words)) return index
  }
  return -1
}

export function hasWords(tokens: Tokens, ...words: readonly string[]): boolean {
  return findWords(tokens, words) >= 0
}

/** Behind the bracket that closes the one at `open`. */
export function afterBracket(tokens: Tokens, open: number): number {
  const depth = tokenAt(tokens, open).depth
  for (let index = open + 1; index < tokens.length; index += 1) {
    const token = tokenAt(tokens, index)
    if (token.depth === depth && (token.value === ')' || token.value === ']') && token.kind === 'symbol') {
      return index + 1
    }
  }
  return tokens.length
}

/** What stands inside the brackets that open at `open`. */
export function insideBracket(tokens: Tokens, open: number): Tokens {
  return tokens.slice(open + 1, Math.max(open + 1, afterBracket(tokens, open) - 1))
}

/** The parts between commas of the outermost level. */
export function splitByComma(tokens: Tokens): Tokens[] {
  const parts: Tokens[] = []
  const depth = tokenAt(tokens, 0).depth
  let part: Token[] = []
  for (const token of tokens) {
    if (token.kind === 'symbol' && token.value === ',' && token.depth <= depth) {
      parts.push(part)
      part = []
    } else part.push(token)
  }
  if (part.length > 0) parts.push(part)
  return parts
}

/** The parts that `and` joins on the outermost level; the `and` of a `between` splits nothing. */
export function conjuncts(tokens: Tokens): Tokens[] {
  const depth = Math.min(...tokens.map((token) => token.depth))
  const parts: Token[][] = [[]]
  let between = false
  for (const token of tokens) {
    const isOuter = token.kind === 'word' && token.depth === depth
    if (isOuter && token.value === 'between') between = true
    if (isOuter && token.value === 'and') {
      if (!between) {
        parts.push([])
        continue
      }
      between = false
    }
    parts.at(-1)?.push(token)
  }
  return parts
}

/** The tokens as one line of lower-case text, to compare two places. */
export function plainText(tokens: Tokens): string {
  return tokens.map((token) => (token.kind === 'string' ? `'${token.value}'` : token.value)).join(' ')
}

/** The name of a column that is all there is to an expression (`a`, `t.a`, `"a"`), or undefined. */
export function columnOf(tokens: Tokens): string | undefined {
  const last = tokens.at(-1)
  if (last === undefined || (last.kind !== 'word' && last.kind !== 'quoted')) return undefined
  for (let index = 0; index < tokens.length - 1; index += 1) {
    const token = tokenAt(tokens, index)
    const dot = token.kind === 'symbol' && token.value === '.'
    if (!dot && token.kind !== 'word' && token.kind !== 'quoted' && token.kind !== 'hole') return undefined
    if (index % 2 === 1 && !dot) return undefined
  }
  return last.value.toLowerCase()
}
