import { formatColumnType } from '../model/column-type.ts'
import type { Contract } from '../model/columns.ts'
import type { Comparison } from '../model/comparison.ts'
import type { RunCounts } from '../model/run.ts'
import { type Slice, WHOLE } from '../model/slice.ts'
import type { Applied } from '../model/target.ts'
import type { Found } from './found.ts'
import type { ReadyRows } from './rows.ts'
import type { DefinedPipeline, ReportedColumn, RunOptions, RunResult } from './types.ts'

// What runs and plans tell of themselves.

/** Where in slices and time a run is, for results and plans. */
export function whereaboutsOf(
  { rows, history, cursor }: Found,
  slice: Slice | null,
): Pick<RunResult, 'slice' | 'window' | 'watermark' | 'frozen'> {
  return {
    slice: slice?.name ?? WHOLE,
    window: rows.cursor?.window ?? null,
    watermark: cursor === null ? null : (rows.cursor?.watermark ?? history.watermark?.value ?? null),
    frozen: history.frozen,
  }
}

/** The terms of G6, from what the landing, the comparison and the target each counted. */
export function countsOf(rows: ReadyRows, comparison: Comparison, applied: Applied): RunCounts {
  const { read, outside, filtered, added, afterTransform, rejected, duplicate } = rows
  return {
    read,
    outside,
    filtered,
    added,
    afterTransform,
    rejected,
    duplicate,
    inserted: applied.inserted,
    updated: applied.updated,
    unchanged: comparison.unchanged + applied.unchanged,
    stale: comparison.stale + applied.stale,
    frozen: comparison.frozen + applied.frozen,
    deleted: applied.deleted,
    marked: applied.marked,
    restored: applied.restored,
    missing: comparison.missing,
  }
}

export function labelsOf(
  pipeline: DefinedPipeline,
): Pick<RunResult, 'pipeline' | 'target' | 'table' | 'source' | 'strategy' | 'truth'> {
  return {
    pipeline: pipeline.name,
    target: pipeline.target.description,
    table: pipeline.table,
    source: pipeline.source.description,
    strategy: pipeline.write.strategy,
    truth: pipeline.truth ?? 'source',
  }
}

export function reported(contract: Contract): ReportedColumn[] {
  return contract.columns.map(({ name, type, origin }) => ({ name, type: formatColumnType(type), origin }))
}

/** Collects notices for the result and passes them on as they come. */
export function noticesOf(options: RunOptions): {
  readonly all: string[]
  readonly add: (message: string) => void
} {
  const all: string[] = []
  const add = (message: string) => {
    all.push(message)
    options.onNotice?.(message)
  }
  return { all, add }
}
