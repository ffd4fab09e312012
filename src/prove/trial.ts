import type { Baseline } from './baseline.ts'
import { differences, type Gap, gaps } from './compare.ts'
import type { Lab, Observation, Run, World } from './lab.ts'
import type { PlannedTrial } from './plan/trials.ts'
import type { Outcome } from './sandbox/process.ts'
import type { Difference } from './verdict.ts'

/** What happens between two clean runs. */
export type Between = 'nothing' | 'keys forgotten' | 'source changed'

/** What one trial has shown. */
export interface TrialResult {
  readonly n: number
  /** Null for the plain second run. */
  readonly planned: PlannedTrial | null
  /** Of a second run without any fault: what happened before it. */
  readonly between: Between
  readonly isReached: boolean
  /** The faulted run. */
  readonly first: Outcome
  /** Exit 0 under a fault: nobody will run the command again, so its state had to be right at once. */
  readonly claimsSuccess: boolean
  /** The run that was to repair it; null when there was none. */
  readonly rerun: Outcome | null
  readonly isFromMemo: boolean
  readonly differences: readonly Difference[]
  readonly gaps: readonly Gap[]
  /** The database to look at, with `--keep`. */
  readonly database: string | null
}

export interface TrialContext {
  readonly lab: Lab
  readonly baseline: Baseline
  /** States after a fault and what a rerun made of them; equal states need no second rerun. */
  readonly memo: Map<string, Promise<Repair>>
  /** Keeps the world of the first trial for which it says so. */
  readonly keep: (differences: readonly Difference[]) => boolean
}

export interface Repair {
  readonly outcome: Outcome
  readonly differences: readonly Difference[]
}

export async function runTrial(planned: PlannedTrial, context: TrialContext): Promise<TrialResult> {
  if (planned.fault.kind === 'overlap') return runOverlap(planned, context)
  const { lab, baseline } = context
  const { world, run } = await interrupted(planned, context)
  if (!run.isReached || run.isOvershot)
    return finish(world, context, { ...resultOf(planned, run), isReached: false })
  const state = await lab.observe(world, baseline.ignore)
  const seen = resultOf(planned, run, gapsOf(planned, state, baseline))
  const key = memoKey(planned.start, state)
  const known = context.memo.get(key)
  const hasSucceeded = run.outcome.status === 0 && run.outcome.end === 'by itself'
  if (hasSucceeded) {
    const found = await differences(baseline.clean, state, lab.cluster, baseline.ignore)
    return finish(world, context, { ...seen, claimsSuccess: found.length > 0, differences: found })
  }
  const repairing = known ?? repair(world, context)
  context.memo.set(key, repairing)
  const { outcome, differences: found } = await repairing
  return finish(world, context, {
    ...seen,
    rerun: outcome,
    isFromMemo: known !== undefined,
    differences: found,
  })
}

const MOST_ATTEMPTS = 3
/** How much longer the next attempt keeps a program waiting after its file call. */
const PATIENCE = 5

/** A run with the fault in it. Tried again when others had gone on before the kill came: that is another state. */
async function interrupted(
  { start, fault }: PlannedTrial,
  { lab, baseline }: TrialContext,
): Promise<{ readonly world: World; readonly run: Run }> {
  for (let attempt = 1; ; attempt++) {
    const world = await lab.fork(start === 'seed' ? baseline.seed : baseline.loaded)
    const patience = PATIENCE ** (attempt - 1)
    const run = await lab.run(world, { timeLimitMs: baseline.timeLimitMs, fault, patience })
    if (!run.isOvershot || attempt === MOST_ATTEMPTS) return { world, run }
    await lab.discard(world)
  }
}

/** Under which a state and what became of it are remembered. Start is part of it: what is ignored may differ. */
export function memoKey(start: 'seed' | 'loaded', state: Observation): string {
  return `${start} ${state.memory}`
}

/** A second run starts while the first one waits before it makes something durable. */
async function runOverlap(planned: PlannedTrial, context: TrialContext): Promise<TrialResult> {
  const { lab, baseline } = context
  const { timeLimitMs } = baseline
  const world = await lab.fork(baseline.seed)
  let second: Promise<Run> | undefined
  const first = await lab.run(world, {
    timeLimitMs,
    fault: planned.fault,
    isOverlapping: true,
    whileHeld: async () => {
      second = lab.run(world, { timeLimitMs, isOverlapping: true })
      const isOver = second.then(
        () => undefined,
        () => undefined,
      )
      // It may wait for a lock that the held run has: then it is the held one's turn.
      await Promise.race([isOver, lockWait(lab, world, isOver)])
    },
  })
  const other = await second
  await lab.cluster.settle(world.database)
  if (other === undefined) return finish(world, context, { ...resultOf(planned, first), isReached: false })
  const haveSucceeded = first.outcome.status === 0 && other.outcome.status === 0
  const { outcome, differences: found } = haveSucceeded
    ? { outcome: null, differences: await stateDifferences(world, context) }
    : await repair(world, context)
  const overlapping = found.map(
    (one): Difference =>
      one.class === 'left behind' || one.class === 'renumbered'
        ? one
        : {
            ...one,
            class: 'not two at once',
            note: `${one.class}${one.note === null ? '' : `, ${one.note}`}`,
          },
  )
  return finish(world, context, {
    ...resultOf(planned, first),
    rerun: outcome,
    differences: overlapping,
  })
}

const POLL_MS = 20

async function lockWait(lab: Lab, world: World, isOver: Promise<void>): Promise<void> {
  let over = false
  void isOver.then(() => {
    over = true
  })
  while (!over && (await lab.cluster.waiters(world.database)) === 0) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** Runs the command again, as an orchestrator would, and compares. */
async function repair(world: World, context: TrialContext): Promise<Repair> {
  const { outcome } = await context.lab.run(world, { timeLimitMs: context.baseline.timeLimitMs })
  const found = await stateDifferences(world, context)
  if (outcome.status === 0) return { outcome, differences: found }
  return { outcome, differences: [stuck(outcome), ...found.filter((one) => one.class !== 'left behind')] }
}

async function stateDifferences(
  world: World,
  { lab, baseline }: TrialContext,
): Promise<readonly Difference[]> {
  const state = await lab.observe(world, baseline.ignore)
  return differences(baseline.clean, state, lab.cluster, baseline.ignore)
}

export function stuck({ status, end, output }: Outcome): Difference {
  const how = end === 'time limit' ? 'does not end' : `ends with status ${status}`
  return {
    class: 'stuck',
    where: `the rerun ${how}`,
    kind: 'definition',
    count: 1,
    clean: 0,
    here: 0,
    examples: [],
    changes: [],
    note: output.split('\n').slice(-3).join('\n') || null,
  }
}

/** A transaction cannot reach around a request, so between requests a table is half full of necessity. */
function gapsOf({ start, fault }: PlannedTrial, state: Observation, baseline: Baseline): readonly Gap[] {
  if (!fault.kind.startsWith('kill') || baseline.run.requests > 0) return []
  const before = start === 'seed' ? baseline.seedState : baseline.clean.observation
  return gaps(before, state, baseline.clean.observation)
}

function resultOf(planned: PlannedTrial, run: Run, found: readonly Gap[] = []): TrialResult {
  return {
    n: planned.n,
    planned,
    between: 'nothing',
    isReached: true,
    first: run.outcome,
    claimsSuccess: false,
    rerun: null,
    isFromMemo: false,
    differences: [],
    gaps: found,
    database: null,
  }
}

async function finish(world: World, { lab, keep }: TrialContext, result: TrialResult): Promise<TrialResult> {
  if (keep(result.differences)) return { ...result, database: world.database }
  await lab.discard(world)
  return result
}
