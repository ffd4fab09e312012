import type { Watermark } from './slice.ts'
import type { Reject, SourceFile } from './source.ts'
import type { WriteStrategy } from './write.ts'

/**
 * Which side wins when a source has changed since the last run (G12): with `source` the target follows it, with `snapshot`
 * what the first finished run of a slice wrote is frozen.
 */
export type Truth = 'source' | 'snapshot'

/**
 * What became of the rows (G6):
 * `afterTransform = rejected + duplicate + inserted + updated + unchanged + stale + frozen`.
 */
export interface RunCounts {
  readonly read: number
  /** Outside the window of the cursor that the run reads. */
  readonly outside: number
  /** Dropped by the transform. */
  readonly filtered: number
  /** Made by the transform beyond one for each row read. */
  readonly added: number
  readonly afterTransform: number
  readonly rejected: number
  readonly duplicate: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly stale: number
  readonly frozen: number
  readonly deleted: number
  /** Marked as gone at the source. */
  readonly marked: number
  /** Of the updated rows, those that had been marked as gone and came back. */
  readonly restored: number
  /** Rows of a frozen slice that the load no longer has; they stay. */
  readonly missing: number
}

/** `running` in the record means: started, and nothing heard of its end yet. */
export type RunStatus = 'running' | 'succeeded' | 'failed' | 'interrupted'

/** A run in one word, for people. */
export type RunVerdict = 'changed' | 'unchanged' | 'nothing read' | 'failed' | 'interrupted' | 'running'

/** What is known of a run when it starts. */
export interface RunStart {
  /** Of this process start; the only thing that answers "did my lost commit arrive?". */
  readonly attemptId: string
  /** A label that groups attempts: given by the caller (an orchestrator's run id), else made. */
  readonly runId: string
  readonly pipeline: string
  readonly source: string
  readonly slice: string
  readonly strategy: WriteStrategy['strategy']
  readonly truth: Truth
  /** The logical time that the run was given (ISO 8601), or null. Never the clock. */
  readonly logicalTime: string | null
  /** sha256 of the pipeline's definition as data, and of its file where it came from one; null where neither is known. */
  readonly code: string | null
  /** The run that this one repeats (`stet rerun`), or null. */
  readonly rerunOf: string | null
  /** `host:pid`, so that a message can name who holds a lease. */
  readonly holder: string
  readonly stetVersion: string
}

/** How a run ended, as it goes into the record. */
export interface RunRecord {
  readonly attemptId: string
  readonly status: Exclude<RunStatus, 'running'>
  readonly counts: RunCounts
  /** What was read of the source by its cursor; null where no cursor is used or nothing has been read yet. */
  readonly window: { readonly from: string | null; readonly to: string | null } | null
  readonly files: readonly SourceFile[]
  readonly rejects: readonly Reject[]
  readonly error: { readonly code: string; readonly message: string } | null
}

/** One line of the run log. Times by the target's clock, ISO 8601 in UTC with microseconds. */
export interface RunLogEntry extends RunStart {
  readonly table: string
  readonly status: RunStatus
  readonly verdict: RunVerdict
  readonly startedAt: string
  readonly finishedAt: string | null
  readonly durationMs: number | null
  readonly counts: RunCounts | null
  readonly window: { readonly from: string | null; readonly to: string | null } | null
  readonly files: readonly SourceFile[]
  readonly rejects: readonly Reject[]
  readonly error: { readonly code: string; readonly message: string } | null
}

export interface RunLogFilter {
  readonly pipeline?: string | undefined
  readonly table?: string | undefined
  /** The newest so many. */
  readonly last?: number | undefined
}

/** Something that a person did to the record (`stet thaw`, `stet watermark set`, `stet slices --forget`). */
export interface RecordEvent {
  /** By the target's clock, ISO 8601 in UTC with microseconds. */
  readonly at: string
  readonly kind: 'thaw' | 'watermark' | 'forget'
  readonly pipeline: string | null
  readonly table: string
  readonly slice: string | null
  /** What was done, for people. */
  readonly detail: string
  /** `user@host`, as told by the caller. */
  readonly by: string
}

/** The record of runs, read only. */
export interface RunLog extends AsyncDisposable {
  /** Newest first. */
  list(filter: RunLogFilter): Promise<readonly RunLogEntry[]>
  /** By run id, attempt id or the beginning of one that only one run has. Newest attempt first. */
  find(id: string): Promise<readonly RunLogEntry[]>
  watermarks(): Promise<readonly Watermark[]>
  /** Newest first. */
  events(): Promise<readonly RecordEvent[]>
}

export const NO_COUNTS: RunCounts = {
  read: 0,
  outside: 0,
  filtered: 0,
  added: 0,
  afterTransform: 0,
  rejected: 0,
  duplicate: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  frozen: 0,
  deleted: 0,
  marked: 0,
  restored: 0,
  missing: 0,
}

/** The verdict of a finished run: an empty source and an unchanged one are different things. */
export function verdictOf(status: RunStatus, counts: RunCounts | null): RunVerdict {
  if (status !== 'succeeded') return status
  if (counts === null) return 'unchanged'
  if (counts.inserted + counts.updated + counts.deleted + counts.marked > 0) return 'changed'
  // What is outside of a window, or of a slice, was read on the way to it.
  return counts.read - counts.outside === 0 ? 'nothing read' : 'unchanged'
}
