import { StetError } from '../../errors.ts'
import { addCommonOptions, type Invocation, type MakeCommand, newCommand } from '../command.ts'
import {
  addRemovalOptions,
  addSliceOptions,
  allowedBy,
  jobsOf,
  type PipelineWithCode,
  type RemovalOptions,
  type SliceOptions,
} from '../jobs.ts'
import { addLoadOptions, type LoadOptions, loadOptionFlags } from '../load-options.ts'
import { pipelineOf } from '../load-pipeline.ts'
import { collect } from '../option-values.ts'
import { isPipelineFile, namesOf, onlyNamed, onlyOption, pipelinesOf } from '../pipeline-files.ts'
import { addPlanOptions, type PlanOptions, planAndShow } from '../planning.ts'
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
  readonly pipeline?: string[]
  readonly only?: string[]
}

export const makePlanCommand: MakeCommand = (act) => {
  const command = newCommand(
    'plan',
    'show what a run would do, without changing anything',
    'Reads, checks and compares as a run does, and shows what it would write: every count, some of the rows with old and new values, the strategy. Changes neither the table nor the run log.',
  )
    .argument('<files...>', 'pipeline.ts, or data files with the options of stet load')
    .optionsGroup('What is planned:')
    .option('--pipeline <name>', 'of pipeline files: only this pipeline; may be repeated', collect)
    .addOption(onlyOption())
  addPlanOptions(command)
  addSliceOptions(command, { several: true })
  addRemovalOptions(command)
  addLoadOptions(command)
  addRunningOptions(command)
  return addCommonOptions(command)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet plan pipeline.ts --sql',
        '  stet plan pipeline.ts --slice 2026-08-07',
        '  stet plan orders.csv --key order_ref --detailed-exitcode',
      ].join('\n'),
    )
    .action(act(planFiles))
}

async function planFiles(invocation: Invocation<Options>): Promise<number> {
  const { context, reporter, options } = invocation
  const pipelines = await pipelinesToPlan(invocation)
  const common = { ...runOptionsOf(options, context, reporter), allow: allowedBy(options) }
  const jobs = await jobsOf(pipelines, options, common, context.env, reporter.notice)
  return planAndShow(jobs, options, context, reporter)
}

async function pipelinesToPlan({
  context: { cwd },
  reporter,
  args,
  options,
  given,
}: Invocation<Options>): Promise<readonly PipelineWithCode[]> {
  const code = args.filter(isPipelineFile)
  const [first] = code
  if (first === undefined) {
    refuse(given, ['--pipeline', '--only'], 'data files')
    const { pipeline, notices } = await pipelineOf(args, options, cwd)
    for (const notice of notices) reporter.notice(notice)
    return [{ pipeline }]
  }
  if (code.length < args.length) {
    throw new StetError(
      'STET_USAGE',
      `Cannot plan pipeline files and data files by one command: "${first}" is a pipeline file`,
    )
  }
  refuse(given, loadOptionFlags(), 'pipeline files')
  return onlyNamed(await pipelinesOf(args, cwd), namesOf(options))
}

/** An option that would be passed over in silence is refused: the user thinks that it does something. */
function refuse(given: readonly string[], foreign: readonly string[], files: string): void {
  const meaningless = given.filter((flag) => foreign.includes(flag))
  if (meaningless.length === 0) return
  throw new StetError('STET_USAGE', `${meaningless.join(', ')} has no meaning for ${files}`)
}
