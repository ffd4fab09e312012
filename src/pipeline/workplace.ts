import { parseColumnType } from '../model/column-type.ts'
import type { ColumnType } from '../model/columns.ts'
import type { CompareRules } from '../model/comparison.ts'
import type { LocalConnection } from '../model/local.ts'
import type { RunRecord } from '../model/run.ts'
import type { Slice } from '../model/slice.ts'
import type { TargetSession, TargetTable } from '../model/target.ts'
import type { Compared } from './found.ts'
import type { ReadyRows } from './rows.ts'
import { isMadeAnew, tableColumn } from './table-column.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'
import type { CursorPlan } from './window.ts'

/** One attempt's surroundings. */
export interface Attempt {
  readonly pipeline: DefinedPipeline
  readonly options: RunOptions
  readonly slice: Slice | null
  readonly local: LocalConnection
  readonly session: TargetSession
  readonly signal: AbortSignal
  readonly notice: (message: string) => void
}

/** What is known when the source is opened. */
export interface Known {
  readonly table: TargetTable | null
  readonly cursor: CursorPlan | null
  /** Whether existing rows of the slice may not change (G12). */
  readonly frozen: boolean
}

/**
 * Where the rows of a run are made ready and compared: the local engine, or the target itself where the source is a query
 * there. Both tell the same story with the same counts.
 */
export interface Workplace extends AsyncDisposable {
  readonly files: RunRecord['files']
  readonly notices: readonly string[]
  /** Settles the contract, lands, takes the window of the cursor, checks, and keeps the newest row of each key. */
  ready(): Promise<ReadyRows>
  /** Compares with the target's rows in scope, after `begin` of the session. */
  compare(rows: ReadyRows, rules: CompareRules): Promise<Compared>
}

/** A backfill's window of the cursor chooses what is read, and replaces nothing. */
export function sliceToReplace({ write }: DefinedPipeline, slice: Slice | null): Slice | null {
  return write.strategy === 'replace-partition' ? slice : null
}

/** What becomes of rows that the load no longer has. */
export function missingOf({ write }: DefinedPipeline): 'keep' | 'delete' | 'mark' {
  if (write.strategy === 'insert-once') return 'keep'
  if (write.strategy === 'replace-table') return 'delete'
  return write.missing ?? (write.strategy === 'upsert' ? 'keep' : 'delete')
}

/** The type in which the table, or the declaration, holds a column. */
export function typeHeld(
  { source }: DefinedPipeline,
  table: TargetTable | null,
  column: string,
): ColumnType | undefined {
  const declared = source.columns?.[column]
  return tableColumn(table, column)?.type ?? (declared === undefined ? undefined : parseColumnType(declared))
}

/** Whether the values of a source's column are read as JSON: by its type in the table, or by the declared one. */
export function holdsJson(pipeline: DefinedPipeline, table: TargetTable | null, column: string): boolean {
  const type = typeHeld(pipeline, isMadeAnew(pipeline, column) ? null : table, column)
  return type?.kind === 'json' || type?.kind === 'jsonb'
}

/** Whether a source may leave out other slices by a column of this type: only by the very one by which the table is cut. */
export function mayNarrow(
  pipeline: DefinedPipeline,
  table: TargetTable | null,
  { by }: Pick<Slice, 'by'>,
  type: ColumnType,
): boolean {
  const { write, transform } = pipeline
  if (transform !== undefined) return false
  if (write.normalizeKey !== undefined && (write.key ?? []).includes(by)) return false
  const held = typeHeld(pipeline, table, by)
  return held === undefined || held.kind === type.kind
}

/** Above this share of the target's rows, pulling the whole table is cheaper than pushing keys (measured: 10-20 %). */
const WHOLE_TABLE_SHARE = 0.15

/** Below this many rows a table is looked at whole without a thought. */
const WHOLE_TABLE_ROWS = 10_000

/** Whether a run looks at all of the table, and not only at the rows whose keys the load has. */
export function looksAtWhole(
  pipeline: DefinedPipeline,
  table: Pick<TargetTable, 'rowsEstimate'>,
  { hasKey, rows }: { readonly hasKey: boolean; readonly rows: number },
): boolean {
  const isSmall = table.rowsEstimate <= WHOLE_TABLE_ROWS || rows > table.rowsEstimate * WHOLE_TABLE_SHARE
  // What is missing from a full extract can only be found by looking at all.
  const looksForMissing =
    missingOf(pipeline) !== 'keep' || (pipeline.truth === 'snapshot' && pipeline.incremental === undefined)
  return looksForMissing || !hasKey || isSmall
}
