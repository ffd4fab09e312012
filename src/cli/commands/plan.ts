import { StetError } from '../../errors.ts'
import type { DefinedPipeline } from '../../pipeline/types.ts'
import { type Invocation, type MakeCommand, addCommonOptions, newCommand } from '../command.ts'
import { addLoadOptions, type LoadOptions, pipelineOf } from '../load-options.ts'
import { collect } from '../option-values.ts'
import { isPipelineFile, onlyNamed, pipelinesOf } from '../pipeline-files.ts'
import { addPlanOptions, type PlanOptions, planAndShow } from '../planning.ts'
import type { OutputOptions, Reporter } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'

interface Options extends OutputOptions, LoadOptions, RunningOptions, PlanOptions {
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
    .option('--only <name>', 'of pipeline files: only this pipeline; may be repeated', collect)
  addPlanOptions(command)
  addLoadOptions(command)
  addRunningOptions(command)
  return addCommonOptions(command)
    .addHelpText(
      'after',
      [
        '',
        'Examples:',
        '  stet plan pipeline.ts --sql',
        '  stet plan orders.csv --key order_ref --detailed-exitcode',
      ].join('\n'),
    )
    .action(act(planFiles))
}

async function planFiles({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const pipelines = await pipelinesToPlan(args, options, context.cwd, reporter)
  return planAndShow(pipelines, options, runOptionsOf(options, context, reporter), context, reporter)
}

async function pipelinesToPlan(
  files: readonly string[],
  options: Options,
  cwd: string,
  reporter: Reporter,
): Promise<readonly DefinedPipeline[]> {
  const code = files.filter(isPipelineFile)
  if (code.length === files.length) return onlyNamed(await pipelinesOf(files, cwd), options.only)
  if (code.length > 0) {
    throw new StetError(
      'STET_USAGE',
      `Cannot plan pipeline files and data files by one command: "${code[0]}" is a pipeline file`,
    )
  }
  const { pipeline, notices } = await pipelineOf(files, options, cwd)
  for (const notice of notices) reporter.notice(notice)
  return [pipeline]
}
