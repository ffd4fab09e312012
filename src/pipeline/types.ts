import type { ColumnOf, Columns, TypeOrigin } from '../model/columns.ts'
import type { PlanSample } from '../model/comparison.ts'
import type { ProgressListener } from '../model/progress.ts'
import type { RunCounts, RunRecord, RunVerdict, Truth } from '../model/run.ts'
import type { SliceSize } from '../model/slice.ts'
import type { Reject, Source, SourceFile } from '../model/source.ts'
import type { Target } from '../model/target.ts'
import type { KeepColumns, Missing, WriteStrategy } from '../model/write.ts'

/** A value as a transform sees it: exact text for all that JavaScript cannot hold exactly. */
export type TransformValue = string | number | bigint | boolean | null
export type TransformRow = Readonly<Record<string, TransformValue>>

/**
 * A change of the landed rows before they are compared.
 *
 * @typeParam A Columns that it adds.
 * @typeParam C Columns of the source.
 */
export type Transform<A extends Columns = Columns, C extends Columns = Columns> =
  /** SQL of the local engine over the table `landed`, whose columns bear the source's names. */
  | {
      readonly sql: string
      readonly adds?: A | undefined
      readonly drops?: readonly ColumnOf<NoInfer<C>>[] | undefined
    }
  /** A function for each row, which has the declared columns, or any where none are: the row to load, several of them, or null to leave it out. */
  | {
      readonly row: (
        row: Readonly<Record<ColumnOf<NoInfer<C>>, TransformValue>>,
      ) => TransformRow | readonly TransformRow[] | null
      readonly adds?: A | undefined
      readonly drops?: readonly ColumnOf<NoInfer<C>>[] | undefined
    }

/**
 * Reads only what has changed since the last run, by a column of the source that grows: each run goes from the watermark
 * less the grace up to a bound that is fixed when it starts. Rows are matched by the key, so what is read again is not
 * written again (G2).
 */
export interface Incremental<Column extends string = string> {
  /** A timestamptz, timestamp, date or whole number that grows with every change of a row. */
  readonly cursor: Column
  /**
   * How far before the watermark each run begins, for rows that arrive late: `2h`, `3d`, `PT90M`; a number for a cursor of
   * numbers. Default `1h`, and 0 for numbers.
   */
  readonly grace?: string | number | undefined
  /** Where the first run begins, as text of the cursor's type. Default: at the beginning. */
  readonly start?: string | undefined
  /**
   * How far the upper bound stays behind the source's clock, for transactions that are still open: `5m`. Default `1m` for a
   * database, none for files. Not for numbers.
   */
  readonly settle?: string | undefined
  /** What becomes of rows without a cursor value. Default `reject`. */
  readonly nulls?: 'reject' | 'include' | undefined
  /** Size of the windows of a backfill. Default `day`, and none for numbers. */
  readonly size?: SliceSize | undefined
  /** IANA zone of the wall time in a timestamp or date cursor, and of a backfill's windows. Default `UTC`. */
  readonly zone?: string | undefined
}

/** A pipeline as {@link definePipeline} takes it. */
export interface Pipeline<C extends Columns = Columns, A extends Columns = Columns> {
  /** Names the pipeline in the run log. */
  readonly name: string
  readonly source: Source<C>
  readonly target: Target
  /** `orders`, `sales.orders`, `"Sales"."Orders"`. */
  readonly table: string
  readonly write: WriteStrategy<ColumnOf<NoInfer<C>> | ColumnOf<NoInfer<A>>>
  readonly keep?: KeepColumns | undefined
  readonly transform?: Transform<A, C> | undefined
  /** Rows that may be rejected before the run fails (G9). Default 0. */
  readonly maxRejects?: number | undefined
  /** `quarantine` keeps rejected rows whole in `stet.quarantine`, within `maxRejects`. Default `fail`: they are only reported. */
  readonly onReject?: 'fail' | 'quarantine' | undefined
  readonly incremental?: Incremental<ColumnOf<NoInfer<C>>> | undefined
  /** Which side wins when the source of a slice that was loaded has changed (G12). Default `source`. */
  readonly truth?: Truth | undefined
  /** Refuses whatever reloads the whole table: `replace-table`, and a run from the beginning. Default false. */
  readonly protect?: boolean | undefined
}

/** A pipeline whose columns are checked; what `run` and `plan` take. */
export interface DefinedPipeline extends Omit<Pipeline, 'write' | 'incremental' | 'transform'> {
  readonly transform?: Transform | undefined
  readonly write: WriteStrategy
  readonly incremental?: Incremental | undefined
}

export interface RunOptions {
  /** A label that groups attempts, such as an orchestrator's run id. Default: made from the attempt's id. */
  readonly runId?: string | undefined
  /** Folder against which relative paths are read. Default: the process's. */
  readonly cwd?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ProgressListener | undefined
  /** Sentences for people: types that were inferred, a lease that was waited for. */
  readonly onNotice?: ((message: string) => void) | undefined
  /** Whether the caller itself keeps the run waiting for its turn to write, as slices of a backfill do; then it is no news. */
  readonly waitsForCaller?: (() => boolean) | undefined
  /** DuckDB's memory limit for the local engine, such as `2GB`. */
  readonly memoryLimit?: string | undefined
  readonly threads?: number | undefined
  /** How long to wait for another attempt or another writer, in milliseconds. Default 30 000. */
  readonly lockTimeoutMs?: number | undefined
  /** Age in milliseconds at which a lease without a heartbeat is taken over. Default 15 000. */
  readonly leaseTimeoutMs?: number | undefined
  /** The slice to load, by name: `2026-08-07`. A pipeline that replaces partitions needs it, or a logical time. */
  readonly slice?: string | undefined
  /** The logical time of the run (ISO 8601 with an offset): chooses the slice that it falls into. Never the clock. */
  readonly at?: string | undefined
  /**
   * Reads exactly this window of the cursor and leaves the watermark where it is, as a rerun does. Ends as text of the
   * cursor's type, both included; null is open.
   */
  readonly window?: { readonly from: string | null; readonly to: string | null } | undefined
  /**
   * Begins at this value of the cursor, included, in place of the watermark less the grace. The watermark moves as in any
   * run, and belongs to the definition that the pipeline has now. Not after the watermark: rows between would be left out.
   */
  readonly from?: string | undefined
  /** Reads everything, as if there were no watermark. Default false. */
  readonly full?: boolean | undefined
  /** The caller's clock, for sources that have none of their own. Default: the process's. */
  readonly now?: (() => Date) | undefined
  /** The same as `allowEmpty` and `allowDeletes` of the pipeline, for this run alone (G10). */
  readonly allow?:
    | { readonly empty?: boolean | undefined; readonly deletes?: boolean | undefined }
    | undefined
  /** Of the pipeline's code; kept in the record so that a rerun can say that it has changed. */
  readonly code?: string | undefined
  /** The pipeline in a command line, for hints that hold one: `visits.ts`; null where no file has it. Default `pipeline.ts`. */
  readonly inCommands?: string | null | undefined
  /** The run that this one repeats. */
  readonly rerunOf?: string | undefined
  /** A saved plan: the run is refused when its outcome would differ. */
  readonly plan?: Plan | undefined
}

export interface ReportedColumn {
  readonly name: string
  /** In PostgreSQL's words, such as `numeric(12,2)`. */
  readonly type: string
  readonly origin: TypeOrigin
}

/** What a run did. */
export interface RunResult {
  readonly runId: string
  readonly attemptId: string
  readonly pipeline: string
  readonly target: string
  readonly table: string
  readonly source: string
  readonly strategy: WriteStrategy['strategy']
  readonly truth: Truth
  readonly verdict: RunVerdict
  /** Name of the slice; `all` for a pipeline that is not cut into any. */
  readonly slice: string
  /** What was read by the cursor; null without one. */
  readonly window: RunRecord['window']
  /** The watermark after the run; null without a cursor, or where nothing has been read yet. */
  readonly watermark: string | null
  /** Whether the slice was frozen before the run (G12); `counts.frozen` and `counts.missing` are then the drift. */
  readonly frozen: boolean
  /** Rows of a frozen slice that differ, a few of them. */
  readonly drift: readonly PlanSample[]
  readonly counts: RunCounts
  readonly columns: readonly ReportedColumn[]
  readonly files: readonly SourceFile[]
  readonly rejects: readonly Reject[]
  readonly notices: readonly string[]
  readonly durationMs: number
}

/** What a run would do (`stet plan`), made without changing the target or the record. */
export interface Plan {
  readonly format: 'stet-plan-1'
  readonly pipeline: string
  readonly target: string
  readonly table: string
  readonly source: string
  readonly strategy: WriteStrategy['strategy']
  readonly truth: Truth
  readonly slice: string
  readonly window: RunRecord['window']
  readonly watermark: string | null
  readonly frozen: boolean
  /** What becomes of rows that the load no longer has. */
  readonly missing: Missing
  /** Live rows of the slice (or table, where all of it is looked at) before and after; null where only some were looked at. */
  readonly rows: { readonly before: number; readonly after: number } | null
  /** Why a run would be refused as the table is now, where a plan can tell; null where it would not. */
  readonly obstacle: string | null
  /** Whether the table does not exist yet. */
  readonly creates: boolean
  readonly counts: RunCounts
  readonly samples: readonly PlanSample[]
  readonly columns: readonly ReportedColumn[]
  readonly statements: readonly string[]
  readonly files: readonly SourceFile[]
  readonly rejects: readonly Reject[]
  readonly notices: readonly string[]
  /** Of the whole difference, independent of row order: equal digests mean equal outcomes. */
  readonly digest: string
}
