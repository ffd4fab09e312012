import type { Difference } from '../verdict.ts'
import { visible } from './visible.ts'

const SHOWN_ROWS = 4
const SHOWN_COLUMNS = 6
const CELL_WIDTH = 24

/** A few of the rows concerned. */
export interface RowTable {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** How many more there are. */
  readonly more: number
}

/** The rows to show for a difference; null where there are none to show. */
export function rowTable(difference: Difference): RowTable | null {
  const { examples, changes, count } = difference
  if (changes.length > 0 && (difference.class === 'different' || difference.note !== null)) {
    const shown = changes.slice(0, SHOWN_ROWS)
    const rows = shown.flatMap((row) => {
      const key = Object.entries(row.key).map(([name, value]) => `${name} ${cell(value)}`)
      return row.changes.map((change) => [
        key.join(', '),
        change.column,
        cell(change.clean),
        cell(change.here),
      ])
    })
    return { head: ['row', 'column', 'clean', 'here'], rows, more: Math.max(0, count - changes.length) }
  }
  const wanted = examples.filter((row) =>
    difference.class === 'lost' ? row.here < row.clean : row.here > row.clean,
  )
  const shown = (wanted.length > 0 ? wanted : examples).slice(0, SHOWN_ROWS)
  const [first] = shown
  if (first === undefined) return null
  const columns = Object.keys(first.values).slice(0, SHOWN_COLUMNS)
  const rows = shown.map((row) => [
    ...columns.map((column) => cell(row.values[column] ?? null)),
    String(row.clean),
    String(row.here),
  ])
  return { head: [...columns, 'clean', 'here'], rows, more: Math.max(0, count - shown.length) }
}

/** The rows in characters. */
export function rowLines(difference: Difference): readonly string[] {
  const table = rowTable(difference)
  if (table === null) return []
  const all = [table.head, ...table.rows]
  const widths = table.head.map((_, n) => Math.max(...all.map((row) => (row[n] ?? '').length)))
  const lines = all.map((row) =>
    row
      .map((text, n) => text.padEnd(widths[n] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return table.more > 0 ? [...lines, `… ${table.more} more`] : lines
}

function cell(value: string | null): string {
  if (value === null) return 'null'
  const line = visible(value)
  return line.length > CELL_WIDTH ? `${line.slice(0, CELL_WIDTH - 1)}…` : line
}
