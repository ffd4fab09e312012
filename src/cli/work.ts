import type { Plan, RunResult } from '../pipeline/types.ts'
import type { PipelineFailure } from './documents.ts'
import { exitStatusOf, type Failure, worstStatus } from './failure.ts'
import type { Job } from './jobs.ts'
import type { Reporter } from './reporter.ts'

/** What became of several runs. */
export interface Worked<T> {
  readonly done: readonly T[]
  readonly failures: readonly PipelineFailure[]
  /** The gravest error; null when all went well. */
  readonly error: Failure | null
  readonly status: number
}

/**
 * Runs one after another. One that fails does not keep the next from running; an interruption does. What `tell` throws is
 * a failure of a run that is done all the same.
 */
export async function runJobs(
  jobs: readonly Job[],
  reporter: Reporter,
  tell: (result: RunResult) => void,
): Promise<Worked<RunResult>> {
  const { run } = await import('../pipeline/run.ts')
  return workThrough(jobs, ({ pipeline, options }) => run(pipeline, options), reporter, tell)
}

/** Plans one after another. */
export async function planJobs(
  jobs: readonly Job[],
  reporter: Reporter,
  tell: (plan: Plan) => void,
): Promise<Worked<Plan>> {
  const { plan } = await import('../pipeline/plan.ts')
  return workThrough(jobs, ({ pipeline, options }) => plan(pipeline, options), reporter, tell)
}

async function workThrough<T>(
  jobs: readonly Job[],
  work: (job: Job) => Promise<T>,
  reporter: Reporter,
  tell: (outcome: T) => void,
): Promise<Worked<T>> {
  const done: T[] = []
  const failures: PipelineFailure[] = []
  for (const job of jobs) {
    try {
      const outcome = await work(job)
      done.push(outcome)
      tell(outcome)
    } catch (thrown) {
      const error = reporter.failure(thrown, job.label)
      failures.push({ pipeline: job.pipeline.name, slice: job.options.slice ?? null, error })
      if (error.code === 'STET_INTERRUPTED') break
    }
  }
  reporter.endProgress()
  return { done, failures, ...gravestOf(failures.map((failure) => failure.error)) }
}

/** The error that decides the exit status of several runs, and that status. */
export function gravestOf(errors: readonly Failure[]): {
  readonly error: Failure | null
  readonly status: number
} {
  const status = worstStatus(errors.map(exitStatusOf))
  return { error: errors.find((error) => exitStatusOf(error) === status) ?? null, status }
}
