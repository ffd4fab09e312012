import type { Difference } from '../verdict.ts'

const SHOWN_ROWS = 4
const SHOWN_COLUMNS = 6
const CELL_WIDTH = 24

/** A few of the rows concerned, as a table. */
export function rowLines(difference: Difference): readonly string[] {
  const { examples, changes, count } = difference
  if (changes.length > 0 && (difference.class === 'different' || difference.note !== null)) {
    const rows = changes.slice(0, SHOWN_ROWS).flatMap((row) => {
      const key = Object.entries(row.key).map(([name, value]) => `${name} ${cell(value)}`)
      return row.changes.map((change) => [
        key.join(', '),
        change.column,
        cell(change.clean),
        cell(change.here),
      ])
    })
    return [...table(['row', 'column', 'clean', 'here'], rows), ...more(changes.length, count)]
  }
  const wanted = examples.filter((row) =>
    difference.class === 'lost' ? row.here < row.clean : row.here > row.clean,
  )
  const shown = (wanted.length > 0 ? wanted : examples).slice(0, SHOWN_ROWS)
  const [first] = shown
  if (first === undefined) return []
  const columns = Object.keys(first.values).slice(0, SHOWN_COLUMNS)
  const rows = shown.map((row) => [
    ...columns.map((column) => cell(row.values[column] ?? null)),
    String(row.clean),
    String(row.here),
  ])
  return [...table([...columns, 'clean', 'here'], rows), ...more(shown.length, count)]
}

function more(shown: number, count: number): readonly string[] {
  return count > shown ? [`… ${count - shown} more`] : []
}

function cell(value: string | null): string {
  if (value === null) return 'null'
  // A value must not be able to clear the screen of whoever reads the report.
  const line = value.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�')
  return line.length > CELL_WIDTH ? `${line.slice(0, CELL_WIDTH - 1)}…` : line
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [head, ...rows]
  const widths = head.map((_, n) => Math.max(...all.map((row) => (row[n] ?? '').length)))
  return all.map((row) =>
    row
      .map((text, n) => text.padEnd(widths[n] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
