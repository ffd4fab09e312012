import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { StetError } from '../errors.ts'
import type { DefinedPipeline, Plan, RunOptions } from '../pipeline/types.ts'
import type { CliContext } from './context.ts'
import type { PlansDocument } from './documents.ts'
import { hasChanges, renderPlan } from './render-plan.ts'
import type { Reporter } from './reporter.ts'
import { planPipelines } from './work.ts'

/** `plan --detailed-exitcode`: changes are pending. */
const PENDING_STATUS = 5

export interface PlanOptions {
  readonly sql?: boolean
  readonly out?: string
  readonly detailedExitcode?: boolean
}

export function addPlanOptions(command: Command): Command {
  return command
    .optionsGroup('Planning:')
    .option('--sql', 'also show the statements')
    .option('--out <file>', 'save the plan; stet run --plan refuses a run whose outcome would differ')
    .option('--detailed-exitcode', 'end with status 5 when a run would change something, else with 0')
}

/** Plans the pipelines, shows what would be done, and saves it where asked. */
export async function planAndShow(
  pipelines: readonly DefinedPipeline[],
  options: PlanOptions,
  runOptions: RunOptions,
  context: CliContext,
  reporter: Reporter,
): Promise<number> {
  const { done, failures, error, status } = await planPipelines(pipelines, runOptions, reporter, (plan) =>
    reporter.print(renderPlan(plan, reporter.colors, { sql: options.sql === true })),
  )
  const document: PlansDocument = { format: 'stet-plans-1', plans: done, failures, error }
  reporter.document(document)
  if (status !== 0) return status
  await savePlan(document, options, context)
  return statusOfPlans(done, options)
}

/** As {@link planAndShow} for the one pipeline of `stet load`. */
export async function planLoad(
  pipeline: DefinedPipeline,
  options: PlanOptions,
  runOptions: RunOptions,
  context: CliContext,
  reporter: Reporter,
): Promise<number> {
  const { plan } = await import('../pipeline/plan.ts')
  const planned = await plan(pipeline, runOptions)
  reporter.endProgress()
  reporter.print(renderPlan(planned, reporter.colors, { sql: options.sql === true }))
  await savePlan(planned, options, context)
  reporter.document(planned)
  return statusOfPlans([planned], options)
}

async function savePlan(
  document: Plan | PlansDocument,
  options: PlanOptions,
  context: CliContext,
): Promise<void> {
  if (options.out === undefined) return
  await writeFile(resolve(context.cwd, options.out), `${JSON.stringify(document, null, 2)}\n`)
}

function statusOfPlans(plans: readonly Plan[], options: PlanOptions): number {
  return options.detailedExitcode === true && plans.some(hasChanges) ? PENDING_STATUS : 0
}

/** The plan of each pipeline, by its name, as `--out` saved them. */
export async function readPlans(file: string, cwd: string): Promise<ReadonlyMap<string, Plan>> {
  const text = await readFile(resolve(cwd, file), 'utf8').catch((cause: unknown) => {
    throw new StetError('STET_USAGE', `Cannot read the plan "${file}"`, { cause, hint: MAKE_A_PLAN })
  })
  const plans = parsePlans(text)
  if (plans === null) {
    throw new StetError('STET_USAGE', `"${file}" holds no plan of this Stet`, { hint: MAKE_A_PLAN })
  }
  return new Map(plans.map((plan) => [plan.pipeline, plan]))
}

const MAKE_A_PLAN = 'Make it with stet plan pipeline.ts --out plan.json'

function parsePlans(text: string): readonly Plan[] | null {
  try {
    const document = JSON.parse(text) as Plan | PlansDocument
    if (document.format === 'stet-plan-1') return [document]
    return document.format === 'stet-plans-1' ? document.plans : null
  } catch {
    return null
  }
}
