import { cp, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../errors.ts'
import { differences, type Reference } from './compare.ts'
import type { Run, World } from './lab.ts'
import { type FillContext, loadSql } from './sandbox/fill.ts'
import { type Between, stuck, type TrialContext, type TrialResult } from './trial.ts'
import type { Difference } from './verdict.ts'

export interface BetweenOptions {
  readonly context: TrialContext
  /** SQL for the database, or a folder of files to be laid over the work folder; null for none. */
  readonly change: string | null
  readonly fill: FillContext
  /** The number of the first of these trials. */
  readonly from: number
  /** Runs the trial of this number only; null for all. */
  readonly only: number | null
}

/** Second runs without any fault, but not on the same ground as the first. */
export async function runBetween(options: BetweenOptions): Promise<readonly TrialResult[]> {
  const { context, change, from, only } = options
  const trials: ((n: number) => Promise<TrialResult>)[] = []
  if (context.baseline.loaded.ledger.keys.size > 0) trials.push((n) => keysForgotten(n, context))
  if (change !== null) trials.push((n) => sourceChanged(n, change, options))
  const results: TrialResult[] = []
  for (const [at, trial] of trials.entries()) {
    if (only === null || only === from + at) results.push(await trial(from + at))
  }
  return results
}

/**
 * Services forget keys after a day or half an hour. Whoever relies on them alone to send everything again charges
 * twice then.
 */
async function keysForgotten(n: number, context: TrialContext): Promise<TrialResult> {
  const { lab, baseline } = context
  const world = await lab.fork(baseline.loaded)
  world.ledger.keys.clear()
  const run = await lab.run(world, { timeLimitMs: baseline.timeLimitMs })
  const found = await foundIn(world, run, baseline.clean, context)
  const forgotten = found.map(
    (one): Difference =>
      one.kind === 'request' && one.class === 'doubled' ? { ...one, class: 'keys forgotten' } : one,
  )
  return finish(n, 'keys forgotten', world, run, forgotten, context)
}

/** A correction arrives after a success: what a clean run makes of the corrected source has to come out. */
async function sourceChanged(
  n: number,
  change: string,
  { context, fill }: BetweenOptions,
): Promise<TrialResult> {
  const { lab, baseline } = context
  const { timeLimitMs } = baseline
  const wanted = await lab.fork(baseline.seed)
  await apply(change, wanted, fill)
  const clean = await lab.run(wanted, { timeLimitMs })
  if (clean.outcome.status !== 0) {
    throw new StetError('STET_CONFIG', `The command fails on the changed source ${change}`, {
      hint: `The end of its output:\n${clean.outcome.output.slice(-2000)}`,
    })
  }
  const observation = await lab.observe(wanted, baseline.ignore)
  if (observation.digest === baseline.clean.observation.digest) {
    throw new StetError(
      'STET_CONFIG',
      `The change ${change} makes no difference to what a clean run leaves`,
      {
        hint: 'Let it change rows that the command loads',
      },
    )
  }
  const world = await lab.fork(baseline.loaded)
  await apply(change, world, fill)
  const run = await lab.run(world, { timeLimitMs })
  const found = await foundIn(world, run, { observation, database: wanted.database }, context)
  await lab.discard(wanted)
  return finish(n, 'source changed', world, run, found, context)
}

async function apply(change: string, world: World, fill: FillContext): Promise<void> {
  if ((await stat(change)).isDirectory()) {
    await cp(change, join(world.folder, 'work'), { recursive: true })
  } else await loadSql(change, world.database, fill, 'change')
}

async function foundIn(
  world: World,
  { outcome }: Run,
  clean: Reference,
  { lab, baseline }: TrialContext,
): Promise<readonly Difference[]> {
  const state = await lab.observe(world, baseline.ignore)
  const found = await differences(clean, state, lab.cluster, baseline.ignore)
  return outcome.status === 0 ? found : [stuck(outcome), ...found]
}

async function finish(
  n: number,
  between: Between,
  world: World,
  { outcome }: Run,
  found: readonly Difference[],
  { lab, baseline, keep }: TrialContext,
): Promise<TrialResult> {
  const isKept = keep(found)
  if (!isKept) await lab.discard(world)
  return {
    n,
    planned: null,
    between,
    isReached: true,
    first: baseline.run.outcome,
    claimsSuccess: false,
    rerun: outcome,
    isFromMemo: false,
    differences: found,
    gaps: [],
    database: isKept ? world.database : null,
  }
}
