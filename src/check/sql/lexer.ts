/**
 * A SQL lexer for every dialect at once. Real pipeline SQL is full of template holes, and strict parsers lose the
 * whole file over one of them, so a hole is a token here and nothing is an error: what cannot be read becomes a
 * symbol and the next character is tried. Time is linear in the length of the text.
 */

type TokenKind = 'word' | 'quoted' | 'string' | 'number' | 'hole' | 'symbol' | 'meta'

export interface Token {
  readonly kind: TokenKind
  /** As written. */
  readonly text: string
  /** Words in lower case, symbols as they are, holes their trimmed expression; quoted names and strings without quotes. */
  readonly value: string
  readonly start: number
  readonly end: number
  /** How many brackets are open before this token. */
  readonly depth: number
  readonly startsLine: boolean
}

/** `{% ... %}`: kept beside the tokens, because both branches of a template condition are read as one text. */
export interface TemplateTag {
  readonly text: string
  readonly start: number
  readonly end: number
}

export interface SqlComment {
  readonly text: string
  readonly start: number
  readonly end: number
}

export interface LexedSql {
  readonly tokens: readonly Token[]
  readonly tags: readonly TemplateTag[]
  readonly comments: readonly SqlComment[]
  /** Quotes, comments and template tags that never end: the text after them is doubtful. */
  readonly unclosed: number
}

/** Around an expression of the host language that stands inside a SQL text. */
export const HOLE_OPEN = '⟦'
export const HOLE_CLOSE = '⟧'

const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy
const NUMBER = /(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)/iy
const DOLLAR_TAG = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy
const BRACE_HOLE = /\{[^{}\n'"]{0,200}\}/y
const DOLLAR_BRACE_HOLE = /\$\{[^{}\n]{0,400}\}/y
const PERCENT_HOLE = /%(?:\([^()\n]{1,80}\))?[sdifr](?![\p{L}\p{N}_])/uy
const NAMED_HOLE = /[:@$&][\p{L}_][\p{L}\p{N}_]*/uy
const NUMBERED_HOLE = /\$\d+/y
const WIDE_SYMBOL = /(?:<=>|->>|#>>|\|\||::|:=|<=|>=|<>|!=|->|=>|#>|==|@>|<@|&&|\*\*)/y
/** Tags that bound a text of their own: what stands inside is a statement apart. */
const BOUNDARY_TAG =
  /^\{%-?\s*(?:set\s+[\w.]+\s*-?%\}$|set\s+[\w.]+\s*\|[^=]*-?%\}$|endset|macro|endmacro|call|endcall|snapshot|endsnapshot|test|endtest)/

export function lexSql(text: string): LexedSql {
  const tokens: Token[] = []
  const tags: TemplateTag[] = []
  const comments: SqlComment[] = []
  const neverCloses = new Set<string>()
  let depth = 0
  let position = 0
  let startsLine = true

  const push = (kind: TokenKind, end: number, value: string): void => {
    tokens.push({ kind, text: text.slice(position, end), value, start: position, end, depth, startsLine })
    startsLine = false
    position = end
  }
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = position
    return pattern.test(text) ? pattern.lastIndex : -1
  }
  /** Searches once per kind of delimiter: after a miss there is none further on either, which keeps time linear. */
  const find = (needle: string, from: number): number => {
    // Every dollar tag is a delimiter of its own kind: after a hundred misses the text is not SQL.
    if (neverCloses.has(needle) || neverCloses.size > 100) return -1
    const found = text.indexOf(needle, from)
    if (found < 0) neverCloses.add(needle)
    return found
  }
  const comment = (end: number): void => {
    comments.push({ text: text.slice(position, end), start: position, end })
    position = end
  }
  const lineEnd = (): number => {
    const end = text.indexOf('\n', position)
    return end < 0 ? text.length : end
  }

  while (position < text.length) {
    const char = text.charAt(position)
    const next = text.charAt(position + 1)
    if (char === '\n') {
      startsLine = true
      position += 1
      continue
    }
    if (char === ' ' || char === '\t' || char === '\r' || char === '\uFEFF' || char === '\u00A0') {
      position += 1
      continue
    }
    if (char === '-' && next === '-') {
      comment(lineEnd())
      continue
    }
    if (char === '/' && next === '/' && startsLine) {
      comment(lineEnd())
      continue
    }
    // A hash opens a comment for MySQL and BigQuery and is an operator for PostgreSQL (`#>`, `#-`), where no line
    // starts with it.
    if (char === '#' && startsLine && next !== '>' && next !== '-') {
      comment(lineEnd())
      continue
    }
    if (char === '/' && next === '*') {
      const end = blockCommentEnd(text, position, find, neverCloses)
      if (end > 0) {
        comment(end)
        continue
      }
    }
    if (char === '{' && (next === '{' || next === '%' || next === '#')) {
      if (next === '#') {
        const end = find('#}', position + 2)
        if (end > 0) {
          comment(end + 2)
          continue
        }
      } else {
        const end = templateEnd(text, position, next === '{' ? '}}' : '%}', find)
        if (end > 0) {
          if (next === '{') push('hole', end, trimExpression(text.slice(position + 2, end - 2)))
          else {
            const tag = text.slice(position, end)
            tags.push({ text: tag, start: position, end })
            if (BOUNDARY_TAG.test(tag)) {
              tokens.push({
                kind: 'symbol',
                text: '',
                value: ';',
                start: position,
                end,
                depth: 0,
                startsLine,
              })
              depth = 0
            }
            position = end
          }
          continue
        }
      }
    }
    if (char === HOLE_OPEN) {
      const end = find(HOLE_CLOSE, position)
      if (end > 0) {
        push('hole', end + 1, text.slice(position + 1, end).trim())
        continue
      }
    }
    if (char === '{') {
      const end = match(BRACE_HOLE)
      if (end > 0) {
        push('hole', end, text.slice(position + 1, end - 1).trim())
        continue
      }
    }
    if (char === '$') {
      const brace = match(DOLLAR_BRACE_HOLE)
      if (brace > 0) {
        push('hole', brace, text.slice(position + 2, brace - 1).trim())
        continue
      }
      const numbered = match(NUMBERED_HOLE)
      if (numbered > 0) {
        push('hole', numbered, text.slice(position, numbered))
        continue
      }
      const opening = match(DOLLAR_TAG)
      if (opening > 0) {
        const close = find(text.slice(position, opening), opening)
        if (close > 0) {
          push('string', close + opening - position, text.slice(opening, close))
          continue
        }
      }
    }
    if (char === '%') {
      const end = match(PERCENT_HOLE)
      if (end > 0) {
        push('hole', end, text.slice(position, end))
        continue
      }
    }
    if (char === '?') {
      push('hole', position + 1, '?')
      continue
    }
    if (char === '\\' && startsLine && /[a-z!]/i.test(next)) {
      push('meta', lineEnd(), text.slice(position + 1, lineEnd()))
      continue
    }
    if (char === "'" || char === '"' || char === '`') {
      const tripled = char !== '`' && text.startsWith(char.repeat(3), position) ? char.repeat(3) : ''
      if (tripled !== '') {
        const close = find(tripled, position + 3)
        if (close > 0) {
          push('string', close + 3, text.slice(position + 3, close))
          continue
        }
      }
      const end = quoteEnd(text, position, char, find)
      if (end > 0) {
        push(char === "'" ? 'string' : 'quoted', end, text.slice(position + 1, end - 1))
        continue
      }
    }
    if (char >= '0' && char <= '9') {
      const end = match(NUMBER)
      push('number', end, text.slice(position, end))
      continue
    }
    const word = match(WORD)
    if (word > 0) {
      push('word', word, text.slice(position, word).toLowerCase())
      continue
    }
    if ((char === ':' || char === '@' || char === '$' || char === '&') && next !== ':') {
      const before = tokens.at(-1)
      // `data:field` is a path of Snowflake and `a::text` a cast; a parameter has something before it.
      const glued =
        before !== undefined &&
        before.end === position &&
        (before.kind === 'word' ||
          before.kind === 'quoted' ||
          before.value === ')' ||
          before.value === ']' ||
          before.value === ':')
      const end = glued ? -1 : match(NAMED_HOLE)
      if (end > 0) {
        push('hole', end, text.slice(position, end))
        continue
      }
    }
    const wide = match(WIDE_SYMBOL)
    if (wide > 0) {
      push('symbol', wide, text.slice(position, wide))
      continue
    }
    if (char === '(' || char === '[') {
      push('symbol', position + 1, char)
      depth += 1
      continue
    }
    if (char === ')' || char === ']') {
      depth = Math.max(0, depth - 1)
      push('symbol', position + 1, char)
      continue
    }
    if (char === ';') depth = 0
    push('symbol', position + 1, char)
  }
  return { tokens, tags, comments, unclosed: neverCloses.size }
}

type Find = (needle: string, from: number) => number

/** PostgreSQL nests comments, most others do not: nested if that closes, otherwise to the first end. */
function blockCommentEnd(text: string, start: number, find: Find, neverCloses: Set<string>): number {
  if (neverCloses.has('nested comment')) {
    const plain = find('*/', start + 2)
    return plain < 0 ? -1 : plain + 2
  }
  let open = 1
  let at = start + 2
  const mark = /\/\*|\*\//g
  mark.lastIndex = at
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    open += found[0] === '/*' ? 1 : -1
    at = mark.lastIndex
    if (open === 0) return at
  }
  neverCloses.add('nested comment')
  const plain = find('*/', start + 2)
  return plain < 0 ? -1 : plain + 2
}

/** The end of a Jinja expression or tag: strings inside may hold its closing mark, a dict may end in `}}`. */
function templateEnd(text: string, start: number, close: '}}' | '%}', find: Find): number {
  const first = find(close, start + 2)
  if (first < 0) return -1
  let braces = 0
  let at = start + 2
  // Bounded look for strings and dicts; a longer or broken expression ends at the first closing mark.
  const limit = Math.min(text.length, first + 4000)
  while (at < limit) {
    const char = text.charAt(at)
    if (char === "'" || char === '"') {
      const length = text.slice(at + 1, limit).indexOf(char)
      if (length < 0) break
      at += length + 2
      continue
    }
    if (braces === 0 && text.startsWith(close, at)) return at + 2
    if (char === '{') braces += 1
    if (char === '}') braces = Math.max(0, braces - 1)
    at += 1
  }
  return first + 2
}

/**
 * The end of a quoted text, or -1. Doubled quotes stay inside everywhere. A backslash before the quote escapes it for
 * MySQL, BigQuery, Snowflake and Spark and not for PostgreSQL: what follows decides, since the dialect is unknown.
 */
function quoteEnd(text: string, start: number, quote: string, find: Find): number {
  let at = start + 1
  for (;;) {
    const close = find(quote, at)
    if (close < 0) return -1
    if (text.charAt(close + 1) === quote) {
      at = close + 2
      continue
    }
    if (quote !== '`' && text.charAt(close - 1) === '\\' && isEscaped(text, start, close)) {
      at = close + 1
      continue
    }
    return close + 1
  }
}

function isEscaped(text: string, start: number, close: number): boolean {
  let slashes = 0
  for (let at = close - 1; at > start && text.charAt(at) === '\\'; at -= 1) slashes += 1
  if (slashes % 2 === 0) return false
  const before = text.charAt(start - 1).toLowerCase()
  if (before === 'e' || before === 'b' || before === 'r') return true
  return !/^\s*(?:[,);\n]|\|\||::|$|\s(?:and|or|as|from|then|else|when|end|in|like)\b)/i.test(
    text.slice(close + 1, close + 12),
  )
}

function trimExpression(expression: string): string {
  return expression.replace(/^-?\s*/, '').replace(/\s*-?$/, '')
}
