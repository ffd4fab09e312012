import { createHash } from 'node:crypto'

// Alternatives in the order PostgreSQL reads them; what none of them takes is one character of an operator. Their groups
// have numbers because names cost half of the time, and this runs once for each statement of a loop.
const TOKEN = new RegExp(
  [
    String.raw`(\s+|--[^\n]*)`,
    String.raw`(\/\*)`,
    String.raw`((?:\b[eE]|\b[xXbBnN]|\b[uU]&)?'(?:[^']|'')*')`,
    String.raw`(\$(?:[A-Za-z_]\w*)?\$)`,
    '"(?:[^"]|"")*"',
    String.raw`(\$?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)`,
    String.raw`([\p{L}_][\p{L}\p{N}_$]*)`,
    String.raw`(?:(?!--|\/\*)[-+*/<>=~!@#%^&|?:])+`,
    String.raw`[\s\S]`,
  ].join('|'),
  'gyu',
)
const ESCAPED_LITERAL = /'(?:[^'\\]|''|\\[\s\S])*'/y
const LONGEST = 400

export interface LabelOptions {
  /** Digits inside names become `#`, so that `stg_1709` and `stg_1710` are one name. */
  readonly foldDigits?: boolean
}

/**
 * The shape of a statement: comments gone, literals and parameters as `?`, lists of them as one, words in lower case.
 * Two executions of one line of a program have the same label, whatever they load.
 */
export function labelOf(sql: string, { foldDigits = false }: LabelOptions = {}): string {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(sql); match !== null; match = TOKEN.exec(sql)) {
    const [, space, comment, literal, dollar, number, word] = match
    if (space !== undefined) continue
    if (comment !== undefined) TOKEN.lastIndex = endOfComment(sql, TOKEN.lastIndex)
    else if (dollar !== undefined) {
      const end = sql.indexOf(dollar, TOKEN.lastIndex)
      TOKEN.lastIndex = end < 0 ? sql.length : end + dollar.length
      tokens.push('?')
    } else if (literal !== undefined) {
      if (/^e/i.test(literal)) {
        ESCAPED_LITERAL.lastIndex = match.index + 1
        if (ESCAPED_LITERAL.test(sql)) TOKEN.lastIndex = ESCAPED_LITERAL.lastIndex
      }
      tokens.push('?')
    } else if (number !== undefined) tokens.push('?')
    else {
      const name = word?.toLowerCase() ?? match[0]
      tokens.push(foldDigits && name.length > 1 ? name.replace(/\d+/g, '#') : name)
    }
  }
  return labelOfTokens(tokens.join(' '))
}

/** Of statements that differ in their values only the tokens are the same already. */
const folded = new Map<string, string>()
const LABELS_KEPT = 1000

function labelOfTokens(tokens: string): string {
  const known = folded.get(tokens)
  if (known !== undefined) return known
  const label = shorten(foldLists(tokens))
  if (folded.size >= LABELS_KEPT) folded.clear()
  if (tokens.length < 10_000) folded.set(tokens, label)
  return label
}

/** PostgreSQL's block comments nest. */
function endOfComment(sql: string, from: number): number {
  let depth = 1
  const mark = /\/\*|\*\//g
  mark.lastIndex = from
  for (let match = mark.exec(sql); match !== null; match = mark.exec(sql)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth === 0) return mark.lastIndex
  }
  return sql.length
}

/** `(?, ?), (?, ?)` becomes `(?)`: a batch of 500 rows and one of 13 are the same line of a program. */
function foldLists(tokens: string): string {
  const text = tokens.replace(/ ?([(),.;]|::) ?/g, '$1').replace(/;+$/, '')
  return text
    .replace(/([(,])- \?/g, '$1?')
    .replace(/\?(?:,\?)+/g, '?')
    .replace(/\(\?\)(?:,\(\?\))+/g, '(?)')
    .replace(/,/g, ', ')
    .replace(/;/g, '; ')
    .replace(/([^( ])\(/g, '$1 (')
    .replace(/\)([^).,:; ])/g, ') $1')
}

function shorten(label: string): string {
  if (label.length <= LONGEST) return label
  const rest = createHash('sha1').update(label).digest('hex').slice(0, 8)
  return `${label.slice(0, LONGEST)} … ${rest}`
}
