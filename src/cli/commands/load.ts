import { StetError } from '../../errors.ts'
import type { DefinedPipeline, Plan } from '../../pipeline/types.ts'
import type { Invocation, MakeCommand } from '../command.ts'
import { addCommonOptions, newCommand } from '../command.ts'
import type { LoadDocument } from '../documents.ts'
import { refuseDrift } from '../drift.ts'
import { exitStatusOf } from '../failure.ts'
import {
  addRemovalOptions,
  addSliceOptions,
  allowedBy,
  type Job,
  jobsOf,
  type RemovalOptions,
  type SliceOptions,
} from '../jobs.ts'
import { addLoadOptions, type LoadOptions } from '../load-options.ts'
import { pipelineOf } from '../load-pipeline.ts'
import { addPlanOptions, type PlanOptions, planLoad, readPlans } from '../planning.ts'
import { renderRun } from '../render-run.ts'
import type { OutputOptions } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'

interface Options
  extends OutputOptions,
    LoadOptions,
    RunningOptions,
    PlanOptions,
    SliceOptions,
    RemovalOptions {
  readonly failOnDrift?: boolean
  readonly runId?: string
  readonly plan?: boolean
  readonly asPlanned?: string
}

export const makeLoadCommand: MakeCommand = (act) => {
  const command = newCommand(
    'load',
    'load files into a table, safe to run again',
    'Loads files into a table. The same command can be run any number of times, be stopped anywhere and be run again: the table ends the same, and rows that did not change are not touched.',
  ).argument(
    '<files...>',
    'paths, patterns in quotes, or - for standard input; .gz and .zst are read as they are',
  )
  addLoadOptions(command)
  addSliceOptions(command, { several: false })
  addRemovalOptions(command)
  addRunningOptions(command).option(
    '--run-id <id>',
    "groups attempts in the run log (default: an orchestrator's run id)",
  )
  addPlanOptions(
    command.optionsGroup('Planning:').option('--plan', 'show what would be done and change nothing'),
  )
  command.option(
    '--as-planned <file>',
    'a plan saved by --plan --out, or by stet plan: refuse a load whose outcome would differ',
  )
  return addCommonOptions(command)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet load orders.csv --key order_ref --newest load_seq',
        "  stet load 'inbox/orders-*.csv.gz' --key order_ref --into postgres://app@localhost/shop --table sales.orders",
        '  stet load orders-2026-08-07.csv --strategy replace-partition --partition-by day --slice 2026-08-07 --key order_ref',
        '  stet load zones.json --records features --key id --strategy replace-table --plan --out plan.json',
        '  stet load zones.json --records features --key id --strategy replace-table --as-planned plan.json',
      ].join('\n'),
    )
    .action(act(load))
}

async function load({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  refusePlanOptionsAlone(options)
  const { pipeline, notices } = await pipelineOf(args, options, context.cwd)
  for (const notice of notices) reporter.notice(notice)
  const common = { ...runOptionsOf(options, context, reporter), allow: allowedBy(options) }
  const job = theOne(await jobsOf([{ pipeline }], options, common, context.env, reporter.notice))
  if (options.plan === true) return planLoad(job, options, context, reporter)
  const { run } = await import('../../pipeline/run.ts')
  const result = await run(pipeline, { ...job.options, plan: await planFor(pipeline, options, context.cwd) })
  reporter.endProgress()
  reporter.account(renderRun(result, reporter.colors))
  reporter.document({ format: 'stet-load-1', ...result } satisfies LoadDocument)
  if (options.failOnDrift !== true) return 0
  try {
    refuseDrift(result)
    return 0
  } catch (drift) {
    return exitStatusOf(reporter.failure(drift))
  }
}

async function planFor(
  { name }: DefinedPipeline,
  { asPlanned }: Options,
  cwd: string,
): Promise<Plan | undefined> {
  if (asPlanned === undefined) return undefined
  const plans = await readPlans(asPlanned, cwd, 'Make it with the same load and --plan --out plan.json')
  const plan = plans.find(({ pipeline }) => pipeline === name)
  if (plan !== undefined) return plan
  throw new StetError('STET_USAGE', `"${asPlanned}" holds no plan of a load into "${name}"`, {
    hint: `It has ${plans.map(({ pipeline }) => pipeline).join(', ')}`,
  })
}

function theOne([job, another]: readonly Job[]): Job {
  if (job !== undefined && another === undefined) return job
  throw new StetError('STET_USAGE', 'One load is for one slice', {
    hint: 'Give one --slice, and load the others by commands of their own; a pipeline in a file can be backfilled',
  })
}

/** `--out` of a load that plans nothing would leave no file, and whoever reads it later an old one. */
function refusePlanOptionsAlone(options: Options): void {
  if (options.plan === true && options.asPlanned !== undefined) {
    throw new StetError(
      'STET_USAGE',
      '--plan makes a plan and --as-planned takes one: one load does one of them',
    )
  }
  if (options.plan === true) return
  const alone = [
    ...(options.sql === undefined ? [] : ['--sql']),
    ...(options.out === undefined ? [] : ['--out']),
    ...(options.detailedExitcode === undefined ? [] : ['--detailed-exitcode']),
  ]
  if (alone.length === 0) return
  throw new StetError('STET_USAGE', `${alone.join(', ')} has no meaning without --plan`)
}
