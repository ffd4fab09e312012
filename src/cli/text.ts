import picocolors from 'picocolors'

export type Colors = ReturnType<typeof picocolors.createColors>

/** Whether to colour: NO_COLOR wins, FORCE_COLOR comes next, else only a terminal that can show it. */
export function wantsColors(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  if (env.NO_COLOR) return false
  const forced = env.FORCE_COLOR
  if (forced !== undefined && forced !== '') return forced !== '0' && forced !== 'false'
  return isTerminal && env.TERM !== 'dumb'
}

export function colorsFor(enabled: boolean): Colors {
  return picocolors.createColors(enabled)
}

/**
 * Characters that act on a terminal or on the order of what is read: C0, DEL, C1, line separators, and the marks
 * that turn the direction of writing. A value of a file must not be able to clear the screen or to hide itself.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Surrogate}/gu

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** The text with every character that a terminal would obey written out instead. */
export function escapeForTerminal(text: string): string {
  return text.replaceAll(UNSAFE, (character) => {
    const short = SHORT_ESCAPES[character]
    if (short !== undefined) return short
    const code = character.codePointAt(0) ?? 0
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** As {@link escapeForTerminal}, for messages of several lines: line breaks stay. */
export function escapeLines(text: string): string {
  return text.split(/\r?\n/).map(escapeForTerminal).join('\n')
}

/** The first `length` characters, the last of them an ellipsis when something was cut. */
export function cut(text: string, length: number): string {
  const characters = Array.from(text)
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}

/** A value of a file or a table as people see it: NULL apart from text, blanks at the ends visible, cut. */
export function showValue(value: string | null, length = 60): string {
  if (value === null) return 'NULL'
  // Escaping first would let the cut fall into the middle of an escape.
  const shown = escapeForTerminal(cut(value, length))
  return shown === '' || shown === 'NULL' || shown.trim() !== shown ? `"${shown}"` : shown
}

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$|^\p{Emoji_Presentation}$/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour
const COLOR = /\u001b\[[0-9;]*m/g

/** Columns that the text takes on a terminal; colours take none. */
export function displayWidth(text: string): number {
  let width = 0
  for (const character of text.replaceAll(COLOR, '')) {
    if (ZERO_WIDTH.test(character)) continue
    width += WIDE.test(character) ? 2 : 1
  }
  return width
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)))
}

function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - displayWidth(text))) + text
}

export interface TableColumn {
  readonly title: string
  readonly align?: 'left' | 'right'
}

/** Cells in aligned columns, two blanks between; no blanks at the end of a line. */
export function layOut(columns: readonly TableColumn[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((column, index) =>
    Math.max(displayWidth(column.title), ...rows.map((row) => displayWidth(row[index] ?? ''))),
  )
  const line = (cells: readonly string[]) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? ''
        const width = widths[index] ?? 0
        return column.align === 'right' ? padStart(cell, width) : padEnd(cell, width)
      })
      .join('  ')
      .trimEnd()
  return [line(columns.map((column) => column.title)), ...rows.map(line)]
}
