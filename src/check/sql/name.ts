/** Names of tables and lists of columns. */
import type { Draft } from './draft.ts'
import type { Name } from './statement.ts'
import { columnOf, insideBracket, isSymbol, isWord, splitByComma, type Tokens, tokenAt } from './tokens.ts'

interface ReadName {
  readonly name: Name
  readonly next: number
}

/** A dotted name; parts may be holes, or glued out of holes and words: `{schema}.stage_{table}`. */
export function readName(tokens: Tokens, from: number): ReadName | undefined {
  const parts: string[] = []
  let part = ''
  let onlyHole = true
  let index = from
  let end = -1
  // `identifier($name)` of Snowflake and `table(...)` wrap the name.
  const first = tokenAt(tokens, from)
  if (isWord(tokens, from, 'identifier') && isSymbol(tokens, from + 1, '(')) {
    const inner = readName(tokens, from + 2)
    return inner === undefined ? undefined : { name: inner.name, next: inner.next + 1 }
  }
  for (; index < tokens.length; index += 1) {
    const token = tokenAt(tokens, index)
    const glued = token.start === end
    if (token.kind === 'symbol' && token.value === '.') {
      // The depth of `...` in a text that is no SQL stops the name.
      parts.push(part)
      part = ''
      onlyHole = true
      end = token.end
      continue
    }
    const closing = isSymbol(tokens, index, '[') && part === '' ? closingBracket(tokens, index) : -1
    if (end >= 0 && !glued && part !== '') break
    if (closing > 0) {
      // As written in Transact-SQL: `[odd name]`.
      part = textBetween(tokens, index + 1, closing)
      onlyHole = false
      index = closing
      end = tokenAt(tokens, index).end
      continue
    }
    if (token.kind === 'word' || token.kind === 'number' || (token.kind === 'string' && index === from)) {
      part += token.value
      onlyHole = false
    } else if (token.kind === 'quoted') {
      const pieces = token.value.toLowerCase().split('.')
      const last = pieces.pop() ?? ''
      parts.push(...pieces)
      part += last
      onlyHole = onlyHole && /^(?:\{[^{}]*\}|⟦[^⟧]*⟧|\$\{[^{}]*\})$/.test(last)
    } else if (token.kind === 'hole') {
      part += `{${token.value.replace(/\s+/g, '')}}`
    } else if (glued && part !== '' && (token.value === '-' || token.value === '$' || token.value === '@')) {
      part += token.value
    } else if (token.value === '#' && part === '') {
      part += '#'
      if (isSymbol(tokens, index + 1, '#')) index += 1
      end = tokenAt(tokens, index).end
      continue
    } else break
    end = token.end
  }
  if (part === '' && parts.length === 0) return undefined
  if (part !== '') parts.push(part)
  const last = parts.at(-1) ?? ''
  return {
    name: {
      text: parts.join('.'),
      parts,
      start: first.start,
      end: end < 0 ? first.end : end,
      unknown: onlyHole && /^[{⟦]/.test(last) && !/^\{\{?(?:this|ref\(|source\()/.test(last),
    },
    next: index,
  }
}

/** The `]` of a quoted name: near, and with nothing but words before it. */
function closingBracket(tokens: Tokens, open: number): number {
  for (let index = open + 1; index < Math.min(tokens.length, open + 8); index += 1) {
    const { kind, value } = tokenAt(tokens, index)
    if (value === ']' && kind === 'symbol') return index > open + 1 ? index : -1
    if (kind === 'symbol' && value !== '-' && value !== '.') return -1
  }
  return -1
}

function textBetween(tokens: Tokens, from: number, to: number): string {
  let text = ''
  for (let index = from; index < to; index += 1) {
    const { value, start } = tokenAt(tokens, index)
    if (index > from && start > tokenAt(tokens, index - 1).end) text += ' '
    text += value.toLowerCase()
  }
  return text
}

export function listOfNames(tokens: Tokens, from: number): Pick<Draft, 'target' | 'moreTargets'> {
  const names: Name[] = []
  for (let at = from; ; ) {
    const named = readName(tokens, at)
    if (named === undefined) break
    names.push(named.name)
    at = isSymbol(tokens, named.next, '*') ? named.next + 1 : named.next
    if (!isSymbol(tokens, at, ',')) break
    at += 1
  }
  return { target: names[0], moreTargets: names.slice(1) }
}

export function readColumns(tokens: Tokens, open: number): string[] | undefined {
  const inside = insideBracket(tokens, open)
  if (inside.length === 0) return undefined
  if (isWord(inside, 0, 'select', 'with')) return undefined
  return splitByComma(inside).map((part) => columnOf(part) ?? part.map((token) => token.value).join(''))
}

/** A name that stands outside of SQL, as that of a model or of a migration. */
export function nameFromText(text: string): Name {
  return { text, parts: text.toLowerCase().split('.'), start: 0, end: 0, unknown: false }
}

/** Whether two names can mean the same table: equal, or one is the other without its schema. */
export function sameTable(left: Name | undefined, right: Name | undefined): boolean {
  if (left === undefined || right === undefined) return false
  const shorter = Math.min(left.parts.length, right.parts.length)
  if (shorter === 0) return false
  for (let index = 1; index <= shorter; index += 1) {
    if (left.parts.at(-index) !== right.parts.at(-index)) return false
  }
  return true
}
