import type { RunLogEntry } from '../model/run.ts'
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
  readonly error: Failure
}

/** `stet run`: `schemas/run.json`. */
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
