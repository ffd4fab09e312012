import { StetError } from '../errors.ts'
import type { Reference } from './compare.ts'
import type { Lab, Observation, Run, World } from './lab.ts'
import { momentsOf, type Point, pointsOf, sameFileChanges, samePoints, sharedPoints } from './plan/points.ts'
import { sameFiles, volatileFiles } from './state/files.ts'
import { type Fingerprint, volatileColumns } from './state/fingerprint.ts'
import type { Ignore } from './state/ignore.ts'

/** What two clean runs from the seed have shown. */
export interface Baseline {
  readonly seed: World
  readonly seedState: Observation
  /** The world after one clean run: what every rerun has to end in. */
  readonly loaded: World
  readonly clean: Reference
  readonly run: Run
  readonly points: readonly Point[]
  /** With the columns and files that two clean runs fill differently. */
  readonly ignore: Ignore
  readonly volatile: readonly string[]
  readonly timeLimitMs: number
  /** Why nothing can be proved, if so. */
  readonly obstacle: Obstacle | null
}

export interface Obstacle {
  readonly what: string
  readonly hint: string | null
}

export interface BaselineOptions {
  readonly lab: Lab
  readonly database: string
  readonly needsDatabase: boolean
  readonly ignore: Ignore
  /** For the first run, whose length nobody knows. */
  readonly timeLimitMs: number
}

/** A run under a fault may wait and try again; ten times a clean run is enough, and short runs get some seconds. */
const SLOWER = 10
const LEAST_LIMIT_MS = 10_000

export async function runBaseline(options: BaselineOptions): Promise<Baseline> {
  const { lab, ignore, needsDatabase } = options
  const seed = await lab.begin(options.database)
  let [first, second] = [await cleanRun(seed, options), await cleanRun(seed, options)]
  if (!samePoints(first.points, second.points) && !lab.foldDigits) {
    // The job makes up names: statements that differ in the digits of a name only are taken for the same.
    lab.foldDigits = true
    ;[first, second] = [await cleanRun(seed, options), await cleanRun(seed, options)]
  }
  if (!sameFileChanges(first.points, second.points)) {
    lab.foldFiles = true
    ;[first, second] = [await cleanRun(seed, options), await cleanRun(seed, options)]
  }
  const states = [await lab.observe(first.world, ignore), await lab.observe(second.world, ignore)] as const
  const volatile = [
    ...volatileColumns(states[0].database, states[1].database),
    ...volatileFiles(states[0].files, states[1].files).filter((file) =>
      states.every((state) => state.files.has(file)),
    ),
  ]
  const counting = ignore.with(volatile)
  const seedState = await lab.observe(seed, counting)
  const observation = await lab.observe(first.world, counting)
  const twin = await lab.observe(second.world, counting)
  await lab.discard(second.world)
  return {
    seed,
    seedState,
    loaded: first.world,
    clean: { observation, database: await lab.cluster.clone(first.world.database) },
    run: first.run,
    points: pointsToTry(first, second, !sameFiles(seedState.files, observation.files) && !lab.canTrace),
    ignore: counting,
    volatile,
    timeLimitMs: Math.max(first.run.outcome.ms, second.run.outcome.ms) * SLOWER + LEAST_LIMIT_MS,
    obstacle:
      unusedDatabase(first.run, needsDatabase) ??
      nothingDone(seedState, observation) ??
      difference(observation, twin),
  }
}

interface CleanRun {
  readonly world: World
  readonly run: Run
  readonly points: readonly Point[]
}

function pointsToTry(first: CleanRun, second: CleanRun, needsMoments: boolean): readonly Point[] {
  const shared = sharedPoints(first.points, second.points)
  return needsMoments ? [...shared, ...momentsOf(first.run.outcome.ms)] : shared
}

async function cleanRun(seed: World, { lab, timeLimitMs }: BaselineOptions): Promise<CleanRun> {
  const world = await lab.fork(seed)
  const run = await lab.run(world, { timeLimitMs, record: true })
  const { status, end, output, failure } = run.outcome
  if (status !== 0) {
    const how =
      failure ??
      (end === 'time limit' ? `did not end within ${timeLimitMs / 1000} s` : `ended with ${status}`)
    throw new StetError(
      'STET_CONFIG',
      `The command fails without any fault, so nothing can be proved: it ${how}`,
      {
        hint: output === '' ? 'It wrote nothing' : `The end of its output:\n${output.slice(-2000)}`,
      },
    )
  }
  return { world, run, points: pointsOf(run.events, run.units) }
}

function unusedDatabase({ units }: Run, needsDatabase: boolean): Obstacle | null {
  if (!needsDatabase || units.length > 0) return null
  return {
    what: 'Your command did not use the database it was given',
    hint: 'It is given DATABASE_URL and PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE. For another name: --env WAREHOUSE_URL={url}; in the command itself: -- python load.py --dsn {url}; for a port built into it: --listen 5432',
  }
}

function nothingDone(before: Observation, after: Observation): Obstacle | null {
  if (before.digest !== after.digest) return null
  return {
    what: 'A clean run changes nothing, so there is nothing to prove',
    hint: 'Does the seed hold the rows that the command loads, for the day it is run for?',
  }
}

/** Two clean runs that end differently, beyond values of some columns, give nothing to compare with. */
function difference(one: Observation, other: Observation): Obstacle | null {
  const rows = ({ tables }: Fingerprint) => [...tables].map(([name, table]) => `${name} ${table.rows}`)
  const odd = [
    ...symmetricDifference(rows(one.database), rows(other.database)),
    ...symmetricDifference([...one.world.ledger.effects.keys()], [...other.world.ledger.effects.keys()]),
    ...(sameFiles(one.files, other.files)
      ? []
      : symmetricDifference([...one.files.keys()], [...other.files.keys()])),
  ]
  if (odd.length === 0) return null
  return {
    what: `Two clean runs from the same start end differently: ${odd.slice(0, 4).join(', ')}`,
    hint: 'Leave out what is meant to differ: --ignore NAME',
  }
}

function symmetricDifference(one: readonly string[], other: readonly string[]): readonly string[] {
  return [...one.filter((name) => !other.includes(name)), ...other.filter((name) => !one.includes(name))]
}
