import { StetError } from '../../errors.ts'
import type { Invocation, MakeCommand } from '../command.ts'
import { addCommonOptions, newCommand } from '../command.ts'
import type { LoadDocument } from '../documents.ts'
import { addLoadOptions, type LoadOptions, pipelineOf } from '../load-options.ts'
import { addPlanOptions, type PlanOptions, planLoad } from '../planning.ts'
import { renderRun } from '../render-run.ts'
import type { OutputOptions } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'

interface Options extends OutputOptions, LoadOptions, RunningOptions, PlanOptions {
  readonly runId?: string
  readonly plan?: boolean
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
  addRunningOptions(command).option(
    '--run-id <id>',
    "groups attempts in the run log, such as an orchestrator's run id",
  )
  addPlanOptions(
    command.optionsGroup('Planning:').option('--plan', 'show what would be done and change nothing'),
  )
  return addCommonOptions(command)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet load orders.csv --key order_ref --newest load_seq',
        "  stet load 'inbox/orders-*.csv.gz' --key order_ref --into postgres://app@localhost/shop --table sales.orders",
        '  stet load zones.json --records features --key id --strategy replace-table --plan',
      ].join('\n'),
    )
    .action(act(load))
}

async function load({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  refusePlanOptionsAlone(options)
  const { pipeline, notices } = await pipelineOf(args, options, context.cwd)
  for (const notice of notices) reporter.notice(notice)
  const runOptions = runOptionsOf(options, context, reporter)
  if (options.plan === true) return planLoad(pipeline, options, runOptions, context, reporter)
  const { run } = await import('../../pipeline/run.ts')
  const result = await run(pipeline, { ...runOptions, runId: options.runId })
  reporter.endProgress()
  reporter.account(renderRun(result, reporter.colors))
  reporter.document({ format: 'stet-load-1', ...result } satisfies LoadDocument)
  return 0
}

/** `--out` of a load that plans nothing would leave no file, and whoever reads it later an old one. */
function refusePlanOptionsAlone(options: Options): void {
  if (options.plan === true) return
  const alone = [
    ...(options.sql === undefined ? [] : ['--sql']),
    ...(options.out === undefined ? [] : ['--out']),
    ...(options.detailedExitcode === undefined ? [] : ['--detailed-exitcode']),
  ]
  if (alone.length === 0) return
  throw new StetError('STET_USAGE', `${alone.join(', ')} has no meaning without --plan`)
}
