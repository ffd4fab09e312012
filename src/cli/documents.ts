import type { RunLogEntry } from '../model/run.ts'
import type { Slicing, Watermark } from '../model/slice.ts'
import type { SliceOutcome, SlicePlan } from '../pipeline/backfill.ts'
import type { SliceStatus } from '../pipeline/calendar.ts'
import type { Thawed } from '../pipeline/thaw.ts'
import type { Plan, RunResult } from '../pipeline/types.ts'
import type { Failure } from './failure.ts'

/** The JSON documents of `--json`. Each has a schema in `schemas/`; a change here is a change of the public interface. */

/** `stet load`: `schemas/load.json`. */
export interface LoadDocument extends RunResult {
  readonly format: 'stet-load-1'
}

/** What failed among several pipelines. */
export interface PipelineFailure {
  readonly pipeline: string
  /** The slice that was named; null where none was. */
  readonly slice: string | null
  readonly error: Failure
}

/** `stet run`, `stet rerun`: `schemas/run.json`. */
export interface RunDocument {
  readonly format: 'stet-run-1'
  /** Of every pipeline that ended well, in the order they ran. */
  readonly results: readonly RunResult[]
  readonly failures: readonly PipelineFailure[]
  /** The error that decided the exit status; null when all went well. */
  readonly error: Failure | null
}

/** `stet plan`, and the file of its `--out`: `schemas/plans.json`. `stet load --plan` gives the one plan: `schemas/plan.json`. */
export interface PlansDocument {
  readonly format: 'stet-plans-1'
  readonly plans: readonly Plan[]
  readonly failures: readonly PipelineFailure[]
  readonly error: Failure | null
}

/** `stet runs`, `stet runs show`: `schemas/runs.json`. */
export interface RunLogDocument {
  readonly format: 'stet-runs-1'
  readonly target: string
  /** Newest first. */
  readonly runs: readonly RunLogEntry[]
}

/** `stet backfill`: `schemas/backfill.json`. */
export interface BackfillDocument {
  readonly format: 'stet-backfill-1'
  readonly pipeline: string
  readonly target: string
  readonly table: string
  /** Whether this is a plan: nothing was run. */
  readonly planned: boolean
  /** In the order in which they run. */
  readonly slices: readonly BackfilledSlice[]
  /** The command that runs the failed slices again; null when none failed. */
  readonly again: string | null
  readonly notices: readonly string[]
  readonly error: Failure | null
}

/** One slice of a backfill. */
export interface BackfilledSlice {
  readonly slice: string
  readonly status: SliceOutcome['status'] | SlicePlan['status']
  readonly reason: string | null
  readonly result: RunResult | null
  readonly plan: Plan | null
  readonly error: Failure | null
}

/** `stet slices`: `schemas/slices.json`. */
export interface SlicesDocument {
  readonly format: 'stet-slices-1'
  readonly pipeline: string
  readonly target: string
  /** The column that slices are made by, their size and zone. */
  readonly slicing: Slicing
  /** Oldest first. */
  readonly slices: readonly SliceStatus[]
  /** Names in the record that are no slices of the present size. */
  readonly others: readonly string[]
}

/** `stet thaw`: `schemas/thaw.json`. */
export interface ThawDocument {
  readonly format: 'stet-thaw-1'
  readonly pipeline: string
  readonly table: string
  readonly slices: readonly Thawed[]
}

/** `stet watermark`: `schemas/watermark.json`. */
export interface WatermarkDocument {
  readonly format: 'stet-watermark-1'
  readonly pipeline: string
  /** What it was; null where there was none, or where it was only shown. */
  readonly before: Watermark | null
  /** What it is; null where there is none. */
  readonly watermark: Watermark | null
}

/** `stet init`: `schemas/init.json`. */
export interface InitDocument {
  readonly format: 'stet-init-1'
  readonly files: readonly string[]
}

/** Any command that ended before it had something to show: `schemas/error.json`. */
export interface ErrorDocument {
  readonly format: 'stet-error-1'
  readonly error: Failure
}
