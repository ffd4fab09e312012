import { StetError } from '../../errors.ts'
import type { Plan } from '../../pipeline/types.ts'
import { type Invocation, type MakeCommand, addCommonOptions, newCommand } from '../command.ts'
import type { RunDocument } from '../documents.ts'
import { collect } from '../option-values.ts'
import { onlyNamed, pipelinesOf } from '../pipeline-files.ts'
import { readPlans } from '../planning.ts'
import { renderRun } from '../render-run.ts'
import type { OutputOptions } from '../reporter.ts'
import { addRunningOptions, type RunningOptions, runOptionsOf } from '../run-options.ts'
import { runPipelines } from '../work.ts'

interface Options extends OutputOptions, RunningOptions {
  readonly only?: string[]
  readonly runId?: string
  readonly plan?: string
}

export const makeRunCommand: MakeCommand = (act) => {
  const command = newCommand(
    'run',
    'run pipelines written in TypeScript',
    'Runs the pipelines that files export, one after another. One that fails does not keep the next from running; the exit status is that of the gravest failure.',
  )
    .argument('<files...>', 'pipeline.ts: its default export, or any named exports, made by definePipeline')
    .optionsGroup('What runs:')
    .option('--only <name>', 'only this pipeline; may be repeated', collect)
    .option('--run-id <id>', "groups attempts in the run log, such as an orchestrator's run id")
    .option('--plan <file>', 'a plan saved by stet plan --out: refuse a run whose outcome would differ')
  return addCommonOptions(addRunningOptions(command))
    .addHelpText(
      'after',
      ['', 'Examples:', '  stet run pipeline.ts', '  stet run pipelines/*.ts --only orders'].join('\n'),
    )
    .action(act(runFiles))
}

async function runFiles({ context, reporter, args, options }: Invocation<Options>): Promise<number> {
  const pipelines = onlyNamed(await pipelinesOf(args, context.cwd), options.only)
  const plans = options.plan === undefined ? null : await readPlans(options.plan, context.cwd)
  const runOptions = runOptionsOf(options, context, reporter)
  // Looked up before anything runs: a plan for half of the pipelines is a plan for something else.
  const planned = new Map(
    pipelines.map(({ name }) => [name, plans === null ? undefined : planFor(name, plans)]),
  )
  const { done, failures, error, status } = await runPipelines(
    pipelines,
    ({ name }) => ({ ...runOptions, runId: options.runId, plan: planned.get(name) }),
    reporter,
    (result) => reporter.account(renderRun(result, reporter.colors)),
  )
  reporter.document({ format: 'stet-run-1', results: done, failures, error } satisfies RunDocument)
  return status
}

function planFor(name: string, plans: ReadonlyMap<string, Plan>): Plan {
  const plan = plans.get(name)
  if (plan !== undefined) return plan
  throw new StetError('STET_USAGE', `The saved plan has none for the pipeline "${name}"`, {
    hint: `It has ${[...plans.keys()].join(', ')}; --only runs some of the pipelines`,
  })
}
