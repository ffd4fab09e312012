import type { ContractColumn } from '../model/columns.ts'
import { localTypeOf, textSql } from './typing.ts'

/**
 * Rows as lines of text, on their way into JavaScript and back. The driver hands values over one by one, which for a row of
 * eight costs more than all that is done with it; a row that comes as one text, and a thousand that go as one, cost half.
 *
 * A line holds its values with {@link SEPARATOR} between them and {@link NONE} for NULL. Where a value holds one of these
 * characters itself, {@link ESCAPE} and a digit stand in its place.
 */
const ESCAPE = '\x1c'
const NONE = '\x1d'
const ROW = '\x1e'
const SEPARATOR = '\x1f'
const SPECIAL = new RegExp(`[${ESCAPE}-${SEPARATOR}]`, 'g')
// Without a place to go on from, so that asking leaves nothing behind.
const IS_SPECIAL = new RegExp(SPECIAL.source)
const ESCAPED = new RegExp(`${ESCAPE}([0-3])`, 'g')
const FIRST_CODE = 0x1c
const DIGITS = [0, 1, 2, 3]

const charSql = (character: string) => `chr(${character.charCodeAt(0)})`

/** Goes before every line: the driver takes a byte order mark off the beginning of what it hands over. */
const LEAD = '.'

/** SQL for the line of some columns of a landed table. */
export function lineSql(columns: readonly ContractColumn[]): string {
  const fields = columns.map((column) => {
    const { id } = column
    const isText = localTypeOf(column) === 'VARCHAR'
    // DuckDB's own text of a float is the shortest, too.
    const text = isText ? id : textSql(column, id)
    const escaped = DIGITS.reduce(
      (sql, digit) => `replace(${sql}, chr(${FIRST_CODE + digit}), ${charSql(ESCAPE)} || '${digit}')`,
      text,
    )
    const isSpecial = DIGITS.map((digit) => `contains(${text}, chr(${FIRST_CODE + digit}))`).join(' or ')
    const careful = isText ? `when ${isSpecial} then ${escaped} ` : ''
    return `case when ${id} is null then ${charSql(NONE)} ${careful}else ${text} end`
  })
  return `concat('${LEAD}', concat_ws(${charSql(SEPARATOR)}, ${fields.join(', ')}))`
}

/** The values of a line that {@link lineSql} made. */
export function splitLine(line: string): (string | null)[] {
  const fields: (string | null)[] = line.slice(LEAD.length).split(SEPARATOR)
  for (let i = 0; i < fields.length; i++) if (fields[i] === NONE) fields[i] = null
  if (!line.includes(ESCAPE)) return fields
  return fields.map(
    (field) =>
      field?.replace(ESCAPED, (_, digit: string) => String.fromCharCode(FIRST_CODE + Number(digit))) ?? null,
  )
}

/** The line of some values. */
export function joinLine(values: readonly (string | null)[]): string {
  let line = ''
  for (let i = 0; i < values.length; i++) {
    if (i > 0) line += SEPARATOR
    const value = values[i] ?? null
    line += value === null ? NONE : IS_SPECIAL.test(value) ? value.replace(SPECIAL, escapeOf) : value
  }
  return line
}

function escapeOf(character: string): string {
  return `${ESCAPE}${character.charCodeAt(0) - FIRST_CODE}`
}

/** Several lines as one text, for {@link splitSql}. */
export function joinLines(lines: readonly string[]): string {
  return lines.join(ROW)
}

/** A query over a table whose column `lines` holds what {@link joinLines} made: a list `fields` for each line. */
export function splitSql(table: string): string {
  return `select string_split(line, ${charSql(SEPARATOR)}) as fields
    from (select unnest(string_split(lines, ${charSql(ROW)})) as line from ${table})`
}

/** SQL for one value, from 0, of the list `fields`. */
export function fieldSql(position: number): string {
  const field = `fields[${position + 1}]`
  // The escape itself comes last: before, it would make new escapes.
  const text = DIGITS.toReversed().reduce(
    (sql, digit) => `replace(${sql}, ${charSql(ESCAPE)} || '${digit}', chr(${FIRST_CODE + digit}))`,
    field,
  )
  return `case when ${field} = ${charSql(NONE)} then null when contains(${field}, ${charSql(ESCAPE)}) then ${text} else ${field} end`
}
