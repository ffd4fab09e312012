import type { ColumnOf, Columns, TypeOrigin } from '../model/columns.ts'
import type { ProgressListener } from '../model/progress.ts'
import type { RunCounts, RunVerdict, Truth } from '../model/run.ts'
import type { Reject, Source, SourceFile } from '../model/source.ts'
import type { Target } from '../model/target.ts'
import type { KeepColumns, WriteStrategy } from '../model/write.ts'

/** A value as a transform sees it: exact text for all that JavaScript cannot hold exactly. */
export type TransformValue = string | number | bigint | boolean | null
export type TransformRow = Readonly<Record<string, TransformValue>>

/** A change of the landed rows before they are compared. */
export type Transform<A extends Columns = Columns> =
  /** SQL of the local engine over the table `landed`, whose columns bear the source's names. */
  | {
      readonly sql: string
      readonly adds?: A | undefined
      readonly drops?: readonly string[] | undefined
    }
  /** A function for each row: the row to load, several of them, or null to leave it out. */
  | {
      readonly row: (row: TransformRow) => TransformRow | readonly TransformRow[] | null
      readonly adds?: A | undefined
      readonly drops?: readonly string[] | undefined
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
  readonly transform?: Transform<A> | undefined
  /** Rows that may be rejected before the run fails (G9). Default 0. */
  readonly maxRejects?: number | undefined
}

/** A pipeline whose columns are checked; what `run` and `plan` take. */
export interface DefinedPipeline extends Omit<Pipeline, 'write'> {
  readonly write: WriteStrategy
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
  /** DuckDB's memory limit for the local engine, such as `2GB`. */
  readonly memoryLimit?: string | undefined
  readonly threads?: number | undefined
  /** How long to wait for another attempt or another writer, in milliseconds. Default 30 000. */
  readonly lockTimeoutMs?: number | undefined
  /** Age in milliseconds at which a lease without a heartbeat is taken over. Default 15 000. */
  readonly leaseTimeoutMs?: number | undefined
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
  readonly counts: RunCounts
  readonly columns: readonly ReportedColumn[]
  readonly files: readonly SourceFile[]
  readonly rejects: readonly Reject[]
  readonly notices: readonly string[]
  readonly durationMs: number
}

/** One row that a plan shows: which key, and what would change. */
export interface PlanSample {
  readonly op: 'insert' | 'update' | 'delete'
  readonly key: Readonly<Record<string, string | null>>
  /** The columns that change: `from` is null for an insert, `to` is null for a delete. */
  readonly changes: readonly {
    readonly column: string
    readonly from: string | null
    readonly to: string | null
  }[]
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
