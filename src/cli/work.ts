import type { DefinedPipeline, Plan, RunOptions, RunResult } from '../pipeline/types.ts'
import type { PipelineFailure } from './documents.ts'
import { exitStatusOf, type Failure, worstStatus } from './failure.ts'
import type { Reporter } from './reporter.ts'

/** What became of several pipelines. */
export interface Worked<T> {
  readonly done: readonly T[]
  readonly failures: readonly PipelineFailure[]
  /** The gravest error; null when all went well. */
  readonly error: Failure | null
  readonly status: number
}

/** Runs pipelines one after another. One that fails does not keep the next from running; an interruption does. */
export async function runPipelines(
  pipelines: readonly DefinedPipeline[],
  optionsOf: (pipeline: DefinedPipeline) => RunOptions,
  reporter: Reporter,
  tell: (result: RunResult) => void,
): Promise<Worked<RunResult>> {
  const { run } = await import('../pipeline/run.ts')
  return workThrough(pipelines, (pipeline) => run(pipeline, optionsOf(pipeline)), reporter, tell)
}

/** Plans pipelines one after another. */
export async function planPipelines(
  pipelines: readonly DefinedPipeline[],
  options: RunOptions,
  reporter: Reporter,
  tell: (plan: Plan) => void,
): Promise<Worked<Plan>> {
  const { plan } = await import('../pipeline/plan.ts')
  return workThrough(pipelines, (pipeline) => plan(pipeline, options), reporter, tell)
}

async function workThrough<T>(
  pipelines: readonly DefinedPipeline[],
  work: (pipeline: DefinedPipeline) => Promise<T>,
  reporter: Reporter,
  tell: (outcome: T) => void,
): Promise<Worked<T>> {
  const done: T[] = []
  const failures: PipelineFailure[] = []
  for (const pipeline of pipelines) {
    try {
      const outcome = await work(pipeline)
      done.push(outcome)
      tell(outcome)
    } catch (thrown) {
      const error = reporter.failure(thrown, pipelines.length > 1 ? pipeline.name : undefined)
      failures.push({ pipeline: pipeline.name, error })
      if (error.code === 'STET_INTERRUPTED') break
    }
  }
  reporter.endProgress()
  const status = worstStatus(failures.map((failure) => exitStatusOf(failure.error)))
  const gravest = failures.find((failure) => exitStatusOf(failure.error) === status)
  return { done, failures, error: gravest?.error ?? null, status }
}
