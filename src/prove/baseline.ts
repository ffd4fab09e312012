import { StetError } from '../errors.ts'
import type { Reference } from './compare.ts'
import { withInnerCommits } from './inner-commits.ts'
import type { Lab, Observation, Run, World } from './lab.ts'
import {
  momentsOf,
  type Point,
  pointsOf,
  sameFileChanges,
  samePoints,
  sharedPoints,
  withoutEngineSteps,
} from './plan/points.ts'
import { databasesOf, differingFiles, sameFiles, tablesOfFiles, volatileFiles } from './state/files.ts'
import { type TableState, volatileColumns } from './state/fingerprint.ts'
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
  const { lab, needsDatabase } = options
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
  const { volatile, counting } = await volatileParts(first.world, second.world, options)
  const seedState = await lab.observe(seed, counting)
  const observation = await lab.observe(first.world, counting)
  const twin = await lab.observe(second.world, counting)
  await lab.discard(second.world)
  const shared = sharedPoints(first.points, second.points)
  const hasWritten = !sameFiles(seedState.files, observation.files)
  const moments = hasWritten && !lab.canTrace ? momentsOf(first.run.outcome.ms) : []
  const points = [...withoutEngineSteps(shared, databasesOf(observation.files)), ...moments]
  const limitMs = Math.max(first.run.outcome.ms, second.run.outcome.ms) * SLOWER + LEAST_LIMIT_MS
  return {
    seed,
    seedState,
    loaded: first.world,
    clean: { observation, database: await lab.cluster.clone(first.world.database) },
    run: first.run,
    points: await withInnerCommits(points, seed, lab, limitMs),
    ignore: counting,
    volatile,
    timeLimitMs: limitMs,
    obstacle:
      unusedDatabase(first.run, needsDatabase) ??
      unreadableFile(observation) ??
      nothingDone(seedState, observation) ??
      difference(observation, twin),
  }
}

/** Columns and files that two clean runs fill differently. Of a file with tables only columns: its rows count. */
async function volatileParts(
  one: World,
  other: World,
  { lab, ignore }: BaselineOptions,
): Promise<{ readonly volatile: readonly string[]; readonly counting: Ignore }> {
  const [first, second] = [await lab.observe(one, ignore), await lab.observe(other, ignore)]
  const columns = volatileColumnsOf(first, second)
  const files = volatileFiles(first.files, second.files)
  const counting = ignore.with(files).withVarying(columns)
  // Some have a value in one run and none in the other: nothing about them can be compared.
  const random = volatileColumnsOf(await lab.observe(one, counting), await lab.observe(other, counting))
  return { volatile: [...columns, ...files], counting: counting.with(random) }
}

function volatileColumnsOf(one: Observation, other: Observation): readonly string[] {
  return [
    ...volatileColumns(one.database.tables, other.database.tables),
    ...volatileColumns(tablesOfFiles(one.files), tablesOfFiles(other.files)),
  ]
}

interface CleanRun {
  readonly world: World
  readonly run: Run
  readonly points: readonly Point[]
}

async function cleanRun(
  seed: World,
  { lab, timeLimitMs, needsDatabase }: BaselineOptions,
): Promise<CleanRun> {
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
        hint: [
          output === '' ? 'It wrote nothing' : `The end of its output:\n${output.slice(-2000)}`,
          ...(isUnused(run, needsDatabase) ? [`It never spoke to its database. ${HOW_TO_PASS}`] : []),
        ].join('\n'),
      },
    )
  }
  return { world, run, points: pointsOf(run.events, run.units) }
}

function isUnused({ units }: Run, needsDatabase: boolean): boolean {
  return needsDatabase && units.length === 0
}

const HOW_TO_PASS =
  'It is given DATABASE_URL and PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE. For another name: --env WAREHOUSE_URL={url}; in the command itself: -- python load.py --dsn {url}; for a port built into it: --listen 5432'

function unusedDatabase(run: Run, needsDatabase: boolean): Obstacle | null {
  if (!isUnused(run, needsDatabase)) return null
  return { what: 'Your command did not use the database it was given', hint: HOW_TO_PASS }
}

/** Bytes of a database are no measure: two equal ones differ in them. */
function unreadableFile({ files }: Observation): Obstacle | null {
  for (const [name, { complaint }] of files) {
    if (complaint === undefined) continue
    return {
      what: `The tables of ${name} cannot be read after a clean run: ${complaint}`,
      hint: `If it does not matter, leave it out: --ignore ${name}`,
    }
  }
  return null
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
  const rows = (tables: ReadonlyMap<string, TableState>) =>
    [...tables].map(([name, table]) => `${name} ${table.rows}`)
  const odd = [
    ...symmetricDifference(rows(one.database.tables), rows(other.database.tables)),
    ...symmetricDifference(rows(tablesOfFiles(one.files)), rows(tablesOfFiles(other.files))),
    ...symmetricDifference([...one.world.ledger.effects.keys()], [...other.world.ledger.effects.keys()]),
    ...differingFiles(one.files, other.files),
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
