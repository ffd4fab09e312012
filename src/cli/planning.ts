import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { StetError } from '../errors.ts'
import { hasChanges } from '../pipeline/changes.ts'
import type { Plan } from '../pipeline/types.ts'
import type { CliContext } from './context.ts'
import type { PlansDocument } from './documents.ts'
import { driftIn, refuseDrift } from './drift.ts'
import { exitStatusOf } from './failure.ts'
import type { Job } from './jobs.ts'
import { renderPlan } from './render-plan.ts'
import type { Reporter } from './reporter.ts'
import { planJobs } from './work.ts'

/** `plan --detailed-exitcode`: changes are pending. */
const PENDING_STATUS = 5

export interface PlanOptions {
  readonly sql?: boolean
  readonly out?: string
  readonly detailedExitcode?: boolean
  readonly failOnDrift?: boolean
}

export function addPlanOptions(command: Command): Command {
  return command
    .optionsGroup('Planning:')
    .option('--sql', 'also show the statements')
    .option(
      '--out <file>',
      'save the plan; stet run --plan and stet load --as-planned refuse what would end otherwise',
    )
    .option('--detailed-exitcode', 'end with status 5 when a run would change something, else with 0')
}

/** Plans the runs, shows what would be done, and saves it where asked. */
export async function planAndShow(
  jobs: readonly Job[],
  options: PlanOptions,
  context: CliContext,
  reporter: Reporter,
): Promise<number> {
  const { done, failures, error, status } = await planJobs(jobs, reporter, (plan) => {
    reporter.print(renderPlan(plan, reporter.colors, { sql: options.sql === true }))
    if (options.failOnDrift === true) refuseDrift({ ...plan, drift: driftIn(plan) })
  })
  const document: PlansDocument = { format: 'stet-plans-1', plans: done, failures, error }
  reporter.document(document)
  if (status !== 0) return status
  await savePlan(document, options, context)
  return statusOfPlans(done, options)
}

/** As {@link planAndShow} for the one pipeline of `stet load`. */
export async function planLoad(
  { pipeline, options: runOptions }: Job,
  options: PlanOptions,
  context: CliContext,
  reporter: Reporter,
): Promise<number> {
  const { plan } = await import('../pipeline/plan.ts')
  const planned = await plan(pipeline, runOptions)
  reporter.endProgress()
  reporter.print(renderPlan(planned, reporter.colors, { sql: options.sql === true }))
  await savePlan(planned, options, context)
  reporter.document(planned)
  if (options.failOnDrift === true) {
    try {
      refuseDrift({ ...planned, drift: driftIn(planned) })
    } catch (drift) {
      return exitStatusOf(reporter.failure(drift))
    }
  }
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

/** The plans that `--out` saved. */
export async function readPlans(
  file: string,
  cwd: string,
  hint = 'Make it with stet plan pipeline.ts --out plan.json',
): Promise<readonly Plan[]> {
  const text = await readFile(resolve(cwd, file), 'utf8').catch((cause: unknown) => {
    throw new StetError('STET_USAGE', `Cannot read the plan "${file}"`, { cause, hint })
  })
  const plans = parsePlans(text)
  if (plans === null) {
    throw new StetError('STET_USAGE', `"${file}" holds no plan of this Stet`, { hint })
  }
  return plans
}

function parsePlans(text: string): readonly Plan[] | null {
  try {
    const document = JSON.parse(text) as Plan | PlansDocument
    if (document.format === 'stet-plan-1') return [document]
    return document.format === 'stet-plans-1' ? document.plans : null
  } catch {
    return null
  }
}
