import { createHash } from 'node:crypto'

// Alternatives in the order PostgreSQL reads them; what none of them takes is one character of an operator.
const TOKEN = new RegExp(
  [
    String.raw`(?<space>\s+|--[^\n]*)`,
    String.raw`(?<comment>\/\*)`,
    String.raw`(?<literal>(?:\b[eE]|\b[xXbBnN]|\b[uU]&)?'(?:[^']|'')*')`,
    String.raw`(?<dollar>\$(?:[A-Za-z_]\w*)?\$)`,
    '(?<quoted>"(?:[^"]|"")*")',
    String.raw`(?<number>\$?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)`,
    String.raw`(?<word>[\p{L}_][\p{L}\p{N}_$]*)`,
    String.raw`(?<operator>(?:(?!--|\/\*)[-+*/<>=~!@#%^&|?:])+)`,
    String.raw`(?<other>[\s\S])`,
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
    const found = match.groups ?? {}
    if (found.space !== undefined) continue
    if (found.comment !== undefined) TOKEN.lastIndex = endOfComment(sql, TOKEN.lastIndex)
    else if (found.dollar !== undefined) {
      const end = sql.indexOf(found.dollar, TOKEN.lastIndex)
      TOKEN.lastIndex = end < 0 ? sql.length : end + found.dollar.length
      tokens.push('?')
    } else if (found.literal !== undefined) {
      if (/^e/i.test(found.literal)) {
        ESCAPED_LITERAL.lastIndex = match.index + 1
        if (ESCAPED_LITERAL.test(sql)) TOKEN.lastIndex = ESCAPED_LITERAL.lastIndex
      }
      tokens.push('?')
    } else if (found.number !== undefined) tokens.push('?')
    else {
      const name = found.word?.toLowerCase() ?? match[0]
      tokens.push(foldDigits && name.length > 1 ? name.replace(/\d+/g, '#') : name)
    }
  }
  return shorten(foldLists(tokens))
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
function foldLists(tokens: readonly string[]): string {
  const text = tokens
    .join(' ')
    .replace(/ ?([(),.;]|::) ?/g, '$1')
    .replace(/;+$/, '')
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
