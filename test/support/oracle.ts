// What the guarantees say about slices, cursors, missing rows and truth, as a model of a few lines: a table is a map from
// key to row, and a finished run is a function from the table before to the table after. A run that did not finish is none.

export interface SourceRow {
  readonly id: string
  /** The slice: `2026-08-01` and so on. */
  readonly day: string
  readonly note: string
  /** Grows with every change of the row; cursor and order at once. */
  readonly seq: number
}

export interface Row extends SourceRow {
  readonly gone: boolean
}

export interface State {
  readonly rows: ReadonlyMap<string, Row>
  readonly watermark: number | null
  /** Slices whose first run has finished with rows (G12). */
  readonly frozen: ReadonlySet<string>
}

export const EMPTY: State = { rows: new Map(), watermark: null, frozen: new Set() }

/** `replace-partition`: the slice holds what the source has of it, and nothing else (G3). */
export function replaceSlice(state: State, source: readonly SourceRow[], day: string): State {
  const others = [...state.rows.values()].filter((row) => row.day !== day)
  const load = source.filter((row) => row.day === day)
  // A key that is in another slice refuses the run: nothing moves that the run does not own.
  if (load.some(({ id }) => others.some((row) => row.id === id))) return state
  return { ...state, rows: mapOf([...others, ...load.map(live)]) }
}

/** `truth: 'snapshot'`: of a frozen slice existing keys never change and none goes; new ones are inserted (G12). */
export function replaceFrozenSlice(state: State, source: readonly SourceRow[], day: string): State {
  if (!state.frozen.has(day)) {
    const after = replaceSlice(state, source, day)
    const wasRefused = after === state
    const isEmpty = !source.some((row) => row.day === day)
    return wasRefused || isEmpty ? after : { ...after, frozen: new Set([...state.frozen, day]) }
  }
  const load = source.filter((row) => row.day === day)
  const elsewhere = (id: string) => state.rows.has(id) && state.rows.get(id)?.day !== day
  if (load.some(({ id }) => elsewhere(id))) return state
  const added = load.filter(({ id }) => !state.rows.has(id))
  return { ...state, rows: mapOf([...state.rows.values(), ...added.map(live)]) }
}

/** `incremental`: what the cursor has passed since the watermark less the grace, newest wins (G4, G5). */
export function readOn(state: State, source: readonly SourceRow[], grace: number): State {
  const from = state.watermark === null ? -Infinity : state.watermark - grace
  const load = source.filter((row) => row.seq >= from)
  const rows = new Map(state.rows)
  for (const row of load) if ((rows.get(row.id)?.seq ?? -Infinity) <= row.seq) rows.set(row.id, live(row))
  const greatest = Math.max(state.watermark ?? -Infinity, ...load.map(({ seq }) => seq))
  return { ...state, rows, watermark: Number.isFinite(greatest) ? greatest : null }
}

/** A full extract, with `missing: 'mark'` or `'delete'` (G10). */
export function takeExtract(state: State, source: readonly SourceRow[], missing: 'mark' | 'delete'): State {
  // An empty extract takes nothing away, and is refused where it would.
  if (source.length === 0) return state
  const rows = new Map<string, Row>()
  const greatest = Math.max(...source.map(({ seq }) => seq))
  const isOld = greatest < Math.max(-Infinity, ...[...state.rows.values()].map(({ seq }) => seq))
  for (const row of state.rows.values()) {
    const isMissing = !source.some(({ id }) => id === row.id)
    // A row newer than the whole extract cannot be missing from it.
    if (!isMissing || row.seq > greatest) rows.set(row.id, row)
    else if (missing === 'mark') rows.set(row.id, { ...row, gone: true })
  }
  for (const row of source) {
    const there = rows.get(row.id)
    if (there === undefined || there.seq < row.seq) rows.set(row.id, live(row))
    else if (there.seq === row.seq) {
      // The same row as it was: what a newer extract has marked, an older one does not bring back.
      rows.set(row.id, { ...row, gone: there.gone && isOld && there.note === row.note })
    }
  }
  return { ...state, rows }
}

function live(row: SourceRow): Row {
  return { ...row, gone: false }
}

function mapOf(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.id, row]))
}

/** One line for each row, sorted, to be held against the table. */
export function linesOf(state: State): string[] {
  return [...state.rows.values()]
    .map(({ id, day, note, seq, gone }) => `${id} ${day} ${note} ${seq}${gone ? ' gone' : ''}`)
    .toSorted()
}
