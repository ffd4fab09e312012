import { StetError } from '../errors.ts'
import type { Columns } from '../model/columns.ts'

/** `a,b` as names. A name that holds a comma, a colon or a quote is written in double quotes: `"a,b",c`. */
export function parseNames(text: string, option: string): string[] {
  return splitList(text).map((part) => unquoteName(part.trim(), option))
}

/** `order_ref:text,amount:numeric(12,2)` as declared columns. */
export function parseColumns(text: string): Columns {
  const columns = new Map<string, string>()
  for (const part of splitList(text)) {
    const [, name, type] = /^\s*("(?:[^"]|"")*"|[^":]+?)\s*:\s*(.+?)\s*$/s.exec(part) ?? []
    if (name === undefined || type === undefined) {
      throw new StetError('STET_USAGE', `--columns: cannot read "${part.trim()}" as name:type`, {
        hint: "Write --columns 'order_ref:text,amount:numeric(12,2)'; a name with a comma or a colon in double quotes",
      })
    }
    const column = unquoteName(name, '--columns')
    if (columns.has(column)) throw new StetError('STET_USAGE', `--columns names "${column}" twice`)
    columns.set(column, type)
  }
  return Object.fromEntries(columns)
}

/** Each `mag=properties.mag` as a column and where it is found. */
export function parseFields(
  given: readonly string[] | undefined,
): Readonly<Record<string, string>> | undefined {
  if (given === undefined) return undefined
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=')
      if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
      throw new StetError('STET_USAGE', `--field: cannot read "${text}" as name=path`, {
        hint: 'Write --field mag=properties.mag',
      })
    }),
  )
}

/** The text that {@link parseColumns} reads as these columns. */
export function formatColumns(columns: readonly { readonly name: string; readonly type: string }[]): string {
  return columns.map(({ name, type }) => `${quoteName(name)}:${type}`).join(',')
}

/** A word as a POSIX shell has to be given it. */
export function quoteForShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/** Splits at commas that stand in neither double quotes nor parentheses. */
function splitList(text: string): string[] {
  const parts: string[] = []
  let part = ''
  let depth = 0
  let quoted = false
  for (const character of text) {
    if (character === '"') quoted = !quoted
    else if (!quoted && character === '(') depth++
    else if (!quoted && character === ')') depth--
    if (character === ',' && !quoted && depth <= 0) {
      parts.push(part)
      part = ''
    } else part += character
  }
  return [...parts, part]
}

function unquoteName(text: string, option: string): string {
  const name =
    text.length >= 2 && text.startsWith('"') && text.endsWith('"')
      ? text.slice(1, -1).replaceAll('""', '"')
      : text
  if (name === '') throw new StetError('STET_USAGE', `${option} holds an empty column name`)
  return name
}

function quoteName(name: string): string {
  return /^[^",:()\s]+$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}
