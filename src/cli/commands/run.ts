import { StetError } from '../../errors.ts'
import { WHOLE } from '../../model/slice.ts'
import type { Plan } from '../../pipeline/types.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import type { RunDocument } from '../documents.ts'
import { refuseDrift } from '../drift.ts'
import {
  addRemovalOptions,
  addSliceOptions,
  allowedBy,
  type Job,
  jobsOf,
  type RemovalOptions,
  type SliceOptions,
} from '../jobs.ts'
import { collect } from '../option-values.ts'
import { namesOf, onlyNamed, onlyOption, pipelinesOf } from '../pipeline-files.ts'
import { readPlans } from '../planning.ts'
import { renderRun } from '../render-run.ts'
import type { OutputOptions } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'
import { runJobs } from '../work.ts'

interface Options extends OutputOptions, RunningOptions, SliceOptions, RemovalOptions {
  readonly pipeline?: string[]
  readonly only?: string[]
  readonly runId?: string
  readonly plan?: string
}

export const makeRunCommand: MakeCommand = (act) => {
  const command = newCommand(
    'run',
    'run pipelines written in TypeScript',
    "Runs the pipelines that files export, one after another. One that fails does not keep the next from running; the exit status is that of the gravest failure. A pipeline that replaces partitions loads the slice that --slice or --at names, or that Airflow or Dagster name by the environment; never one of the clock's choosing.",
  )
    .argument('<files...>', 'pipeline.ts: its default export, or any named exports, made by definePipeline')
    .optionsGroup('What runs:')
    .option('--pipeline <name>', 'only this pipeline; may be repeated', collect)
    .addOption(onlyOption())
    .option('--run-id <id>', "groups attempts in the run log (default: an orchestrator's run id)")
    .option('--plan <file>', 'a plan saved by stet plan --out: refuse a run whose outcome would differ')
  addSliceOptions(command, { several: true })
  addRemovalOptions(command)
  return addCommonOptions(addRunningOptions(command))
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet run pipeline.ts',
        '  stet run pipelines/*.ts --pipeline orders',
        '  stet run pipeline.ts --slice 2026-08-07 --slice 2026-08-08',
      ].join('\n'),
    )
    .action(act(runFiles))
}

async function runFiles({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const pipelines = onlyNamed(await pipelinesOf(args, context.cwd), namesOf(options))
  const plans = options.plan === undefined ? null : await readPlans(options.plan, context.cwd)
  const common = { ...runOptionsOf(options, context, reporter), allow: allowedBy(options) }
  const jobs = await jobsOf(pipelines, options, common, context.env, reporter.notice)
  // Looked up before anything runs: a plan for half of the pipelines is a plan for something else.
  const planned = plans === null ? jobs : await Promise.all(jobs.map((job) => withPlan(job, plans)))
  const { done, failures, error, status } = await runJobs(planned, reporter, (result) => {
    reporter.account(renderRun(result, reporter.colors))
    if (options.failOnDrift === true) refuseDrift(result)
  })
  reporter.document({ format: 'stet-run-1', results: done, failures, error } satisfies RunDocument)
  return status
}

async function withPlan(job: Job, plans: readonly Plan[]): Promise<Job> {
  const { sliceOfRun } = await import('../../pipeline/selection.ts')
  const { name } = job.pipeline
  const slice = sliceOfRun(job.pipeline, job.options)?.name ?? WHOLE
  const plan = plans.find((candidate) => candidate.pipeline === name && candidate.slice === slice)
  if (plan !== undefined) return { ...job, options: { ...job.options, plan } }
  const of = slice === WHOLE ? '' : `slice ${slice} of `
  throw new StetError('STET_USAGE', `The saved plan has none for ${of}the pipeline "${name}"`, {
    hint: `It has ${plans.map(describePlan).join(', ')}; --pipeline runs some of them`,
  })
}

function describePlan({ pipeline, slice }: Plan): string {
  return slice === WHOLE ? pipeline : `${pipeline} ${slice}`
}
