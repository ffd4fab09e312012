/** Filters against the highest value of the target: `x > (select max(x) from {{ this }})`. */
import type { Token } from '../sql/lexer.ts'
import {
  afterBracket,
  columnOf,
  findWords,
  insideBracket,
  isSymbol,
  isWord,
  type Tokens,
  tokenAt,
} from '../sql/tokens.ts'
import { readsClock } from './clock.ts'

export interface WatermarkFilter {
  readonly operator: Token
  readonly column: string | undefined
  /** The left side is the clock: `current_date > (select max(day) ...)` is a guard, not a cursor. */
  readonly leftIsClock: boolean
  readonly castToDate: boolean
  /** Something is taken off, or the empty table is provided for. */
  readonly lookback: boolean
  readonly coalesced: boolean
  /** The subquery or hole the maximum is read with. */
  readonly source: Tokens
  readonly start: number
  readonly end: number
  readonly orBranch: boolean
}

export function watermarkFilters(tokens: Tokens): WatermarkFilter[] {
  const found: WatermarkFilter[] = []
  for (let index = 1; index < tokens.length; index += 1) {
    const operator = tokenAt(tokens, index)
    if (operator.kind !== 'symbol' || (operator.value !== '>' && operator.value !== '>=')) continue
    const right = rightSide(tokens, index + 1)
    const max = findWords(right, ['max'])
    if (max < 0 || !isSymbol(right, max + 1, '(') || findWords(right, ['from']) < 0) continue
    const left = leftSide(tokens, index)
    const core = stripCast(left)
    found.push({
      operator,
      column: columnOf(core.tokens),
      leftIsClock: left.some((_, at) => readsClock(left, at)),
      castToDate: core.castToDate || isDateCast(right),
      lookback: takesOff(right) || takesOff(left),
      coalesced: right.some(
        (token) =>
          token.kind === 'word' &&
          ['coalesce', 'ifnull', 'nvl', 'zeroifnull', 'isnull'].includes(token.value),
      ),
      source: right,
      start: left[0]?.start ?? operator.start,
      end: right.at(-1)?.end ?? operator.end,
      orBranch: hasOr(tokens, index),
    })
  }
  return found
}

function rightSide(tokens: Tokens, from: number): Tokens {
  const first = tokenAt(tokens, from)
  const ends = ['and', 'or', 'group', 'order', 'qualify', 'union', 'having', 'limit', 'window']
  let to = from
  while (to < tokens.length) {
    const token = tokenAt(tokens, to)
    if (token.depth < first.depth) break
    if (
      token.depth === first.depth &&
      ((token.kind === 'word' && ends.includes(token.value)) || token.value === ';' || token.value === ',')
    )
      break
    to += 1
  }
  return tokens.slice(from, to)
}

function leftSide(tokens: Tokens, operator: number): Tokens {
  const { depth } = tokenAt(tokens, operator)
  let from = operator
  while (from > 0) {
    const token = tokenAt(tokens, from - 1)
    if (token.depth < depth) break
    if (
      token.depth === depth &&
      token.kind === 'word' &&
      ['where', 'and', 'or', 'on', 'not', 'when', 'having', 'qualify', 'between'].includes(token.value)
    )
      break
    if (token.depth === depth && (token.value === '(' || token.value === ',')) break
    from -= 1
  }
  return tokens.slice(from, operator)
}

function stripCast(left: Tokens): { tokens: Tokens; castToDate: boolean } {
  const cast = left.findIndex((token) => token.value === '::')
  if (cast > 0) return { tokens: left.slice(0, cast), castToDate: isWord(left, cast + 1, 'date') }
  if (left.length > 3 && isSymbol(left, 1, '(') && tokenAt(left, 0).kind === 'word') {
    const inside = insideBracket(left, 0 + 1)
    const as = findWords(inside, ['as'])
    const bare = as > 0 ? inside.slice(0, as) : inside
    const column = bare.filter((token) => token.kind === 'word' || token.kind === 'quoted')
    const castToDate =
      ['date', 'to_date', 'trunc', 'date_trunc', 'dt'].includes(tokenAt(left, 0).value) ||
      findWords(inside, ['date'], as) > 0
    if (afterBracket(left, 1) >= left.length && column.length === bare.length)
      return { tokens: bare, castToDate }
    return { tokens: column.slice(0, 1), castToDate }
  }
  return { tokens: left, castToDate: false }
}

function isDateCast(right: Tokens): boolean {
  return (
    right.some((token, index) => token.value === '::' && isWord(right, index + 1, 'date')) ||
    isWord(right, 1, 'date', 'to_date') ||
    isWord(right, 2, 'date') ||
    right.some(
      (token, index) =>
        token.value === 'max' &&
        isSymbol(right, index + 1, '(') &&
        isWord(right, index + 2, 'date', 'to_date', 'make_date', 'date_from_parts', 'date_trunc'),
    )
  )
}

function takesOff(tokens: Tokens): boolean {
  return tokens.some((token, index) => {
    if (token.kind === 'word') {
      return [
        'interval',
        'dateadd',
        'date_sub',
        'date_add',
        'timestamp_sub',
        'datetime_sub',
        'timestampadd',
        'subtractdays',
        'add_months',
        'days_sub',
        'datediff',
        'date_diff',
        'adddate',
        'subdate',
        'timestamp_add',
        'datetime_add',
      ].includes(token.value)
    }
    if (token.kind === 'hole')
      return /dateadd|lookback|look_back|interval|date_sub|days|window|overlap/i.test(token.value)
    return token.value === '-' && index > 0 && tokenAt(tokens, index + 1).kind !== 'symbol'
  })
}

/** `x > (...) or y is null` of the same level: late rows have another way in. */
function hasOr(tokens: Tokens, operator: number): boolean {
  const { depth } = tokenAt(tokens, operator)
  for (let index = operator; index < tokens.length; index += 1) {
    const token = tokenAt(tokens, index)
    if (token.depth < depth) break
    if (token.depth === depth && token.kind === 'word') {
      if (token.value === 'or') return true
      if (['group', 'order', 'union', 'qualify'].includes(token.value)) break
    }
  }
  for (let index = operator; index > 0; index -= 1) {
    const token = tokenAt(tokens, index)
    if (token.depth < depth) break
    if (token.depth === depth && token.kind === 'word') {
      if (token.value === 'or') return true
      if (token.value === 'where' || token.value === 'on') break
    }
  }
  return false
}
