import { readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StetError } from '../errors.ts'
import { type Baseline, type Obstacle, runBaseline } from './baseline.ts'
import { runBetween } from './between.ts'
import { differences } from './compare.ts'
import { whyNoTrace } from './files/trace.ts'
import type { CannedReply } from './http/recorder.ts'
import { withInnerCommits } from './inner-commits.ts'
import { createLab, type Lab, type Observation } from './lab.ts'
import { nameOf, type Point, pointsOf, withoutEngineSteps } from './plan/points.ts'
import { type FaultKind, type PlannedTrial, planTrials } from './plan/trials.ts'
import { type Cluster, startCluster } from './sandbox/cluster.ts'
import type { Fence } from './sandbox/fence.ts'
import { type Filling, fill } from './sandbox/fill.ts'
import { isAlive } from './sandbox/postgres-server.ts'
import type { PostgresPrograms } from './sandbox/programs.ts'
import { makeTemporaryFolder } from './sandbox/temporary.ts'
import { databasesOf, tablesOfFiles } from './state/files.ts'
import { type Touched, touchedRows } from './state/fingerprint.ts'
import { ignoring } from './state/ignore.ts'
import { memoKey, type Repair, runTrial, stuck, type TrialContext, type TrialResult } from './trial.ts'
import { type Class, type Difference, severity, worstOf } from './verdict.ts'

export interface ProveOptions {
  readonly command: readonly string[]
  readonly filling: Filling
  /** The command's current folder; every trial gets a copy. */
  readonly workFolder: string
  /** DuckDB or SQLite files from elsewhere; every trial gets copies in its folder. */
  readonly databaseFiles: readonly string[]
  /** Files and folders in it that count; none named: all. */
  readonly watched: readonly string[]
  readonly passed: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly ignore: readonly string[]
  readonly replies: readonly CannedReply[]
  /** A correction of the source between two runs: SQL, or a folder of files; null for none. */
  readonly change: string | null
  /** A port built into the command; 0 for none. */
  readonly listenPort: number
  /** Watches file calls with strace, where the system allows it. */
  readonly traceFiles: boolean
  readonly kinds: readonly FaultKind[]
  readonly isExhaustive: boolean
  /** Tries faults also when a plain second run convicts. */
  readonly tryAll: boolean
  readonly jobs: number
  readonly budgetMs: number
  readonly timeLimitMs: number
  readonly failOn: readonly Class[]
  /** Runs this trial only. */
  readonly replay: number | null
  readonly programs: PostgresPrograms
  readonly fence: Fence
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
  /** Called before everything is removed, with the way to the database of the first conviction. */
  readonly onKept: ((place: KeptPlace) => Promise<void>) | null
}

export type Progress =
  | { readonly step: 'sandbox' | 'clean run' | 'second run' }
  | { readonly step: 'planned'; readonly trials: number; readonly estimateMs: number }
  | { readonly step: 'trial'; readonly done: number; readonly of: number }

export interface KeptPlace {
  readonly socketFolder: string
  readonly port: number
  readonly database: string
}

export type Verdict = 'survives' | 'convicted' | 'inconclusive'

export interface Proof {
  readonly verdict: Verdict
  readonly command: readonly string[]
  readonly ms: number
  readonly isFenced: boolean
  /** Why crashes between file calls were not aimed at but left to chance; null where they were aimed at. */
  readonly whyNoTrace: string | null
  readonly postgresVersion: number
  readonly clean: {
    readonly ms: number
    readonly messages: number
    readonly requests: number
    readonly points: readonly Point[]
    readonly changes: readonly RowChange[]
  }
  /** Where the second run makes something durable. */
  readonly again: readonly Point[]
  /** Columns and files that two clean runs fill differently. */
  readonly volatile: readonly string[]
  readonly touched: readonly Touched[]
  readonly trials: readonly TrialResult[]
  readonly counts: {
    readonly planned: number
    readonly reruns: number
    readonly sameState: number
    readonly notReached: number
    readonly pointsTried: number
    readonly points: number
  }
  readonly obstacle: Obstacle | null
  readonly notTried: readonly string[]
}

interface RowChange {
  readonly table: string
  readonly before: number
  readonly after: number
}

/** More of the planned places than this not met again, and the runs are too unlike each other for a verdict. */
const MOST_NOT_REACHED = 0.1
const FOLDER_PREFIX = 'stet-prove-'

/** Finds out by experiment whether a command may be run again, whatever happened to the run before. */
export async function prove(options: ProveOptions): Promise<Proof> {
  const started = performance.now()
  options.onProgress({ step: 'sandbox' })
  await using folder = await temporaryFolder()
  await using cluster = await startCluster(options.programs, options.fence)
  const path = options.environment['PATH'] ?? ''
  const filling = { cluster, programs: options.programs, folder: folder.path, path }
  const database = await fill(options.filling, filling)
  // When one trial fails, or somebody interrupts, the commands of the others have to end before the sandbox does.
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const noTrace = options.traceFiles ? await whyNoTrace(options.fence, path) : 'told not to (--no-trace)'
  const lab = createLab({ ...options, cluster, folder: folder.path, signal, canTrace: noTrace === null })

  options.onProgress({ step: 'clean run' })
  const baseline = await runBaseline({
    lab,
    database,
    needsDatabase: options.filling.kind !== 'empty',
    ignore: ignoring(options.ignore),
    timeLimitMs: options.timeLimitMs,
  })
  const parts = { options, started, cluster, baseline, noTrace }
  if (baseline.obstacle !== null) {
    return proofOf({ ...parts, touched: [], results: [], planned: [], again: [] })
  }

  options.onProgress({ step: 'second run' })
  const context = contextOf(options, lab, baseline)
  const twice = await runTwice(context)
  const isConvicted = twice.result.differences.some((one) => options.failOn.includes(one.class))
  const traces = { seed: baseline.points, loaded: isConvicted ? [] : twice.points }
  const kinds = options.listenPort === 0 ? options.kinds : options.kinds.filter((kind) => kind !== 'overlap')
  const all = isConvicted && !options.tryAll ? [] : planTrials(traces, { ...options, kinds })
  const planned = options.replay === null ? all : all.filter((trial) => trial.n === options.replay)
  const faulted = await runAll(planned, context, options, { started, stop })
  const { change, replay } = options
  const others =
    isConvicted && !options.tryAll
      ? []
      : await runBetween({ context, change, fill: filling, from: all.length + 2, only: replay })
  const results = [...faulted, ...others]
  if (replay !== null && replay !== 1 && results.length === 0) throw noSuchTrial(replay, all.length)

  const kept = [twice.result, ...results].find((result) => result.database !== null)
  if (options.onKept !== null && kept !== undefined && kept.database !== null) {
    await options.onKept({ socketFolder: cluster.socketFolder, port: cluster.port, database: kept.database })
  }
  return proofOf({
    ...parts,
    touched: twice.touched,
    results: [twice.result, ...results],
    planned,
    again: twice.points,
  })
}

function noSuchTrial(n: number, faults: number): StetError {
  return new StetError('STET_USAGE', `This proof has no trial ${n}`, {
    hint: `With the options of the proof that named it, trial 1 is the plain second run, and 2 to ${faults + 1} have a fault`,
  })
}

function contextOf(options: ProveOptions, lab: Lab, baseline: Baseline): TrialContext {
  let hasKept = false
  return {
    lab,
    baseline,
    memo: new Map<string, Promise<Repair>>(),
    keep: (found) => {
      const keeps =
        !hasKept && options.onKept !== null && found.some((one) => options.failOn.includes(one.class))
      hasKept ||= keeps
      return keeps
    },
  }
}

interface Twice {
  readonly result: TrialResult
  readonly points: readonly Point[]
  readonly touched: readonly Touched[]
}

/** The plain second run. It also shows what a repetition writes, which is where it may be interrupted. */
async function runTwice(context: TrialContext): Promise<Twice> {
  const { lab, baseline } = context
  const { cluster } = lab
  const world = await lab.fork(baseline.loaded)
  const before = await cluster.nextTransaction()
  const run = await lab.run(world, { timeLimitMs: baseline.timeLimitMs, record: true })
  const transactions = (await cluster.nextTransaction()) - before
  const state = await lab.observe(world, baseline.ignore)
  const found = await differences(baseline.clean, state, cluster, baseline.ignore)
  const isStuck = run.outcome.status !== 0
  const all = isStuck ? [stuck(run.outcome), ...found] : found
  const touched = await rewritten(world.database, transactions, found, context)

  // What a crash leaves may be one of these two states, and what a run makes of them has just been seen.
  const nothing: Repair = { outcome: baseline.run.outcome, differences: [] }
  context.memo.set(memoKey('seed', baseline.seedState), Promise.resolve(nothing))
  const again: Repair = { outcome: run.outcome, differences: all }
  context.memo.set(memoKey('loaded', baseline.clean.observation), Promise.resolve(again))

  const isKept = context.keep(all)
  if (!isKept) await lab.discard(world)
  const points = withoutEngineSteps(pointsOf(run.events, run.units), databasesOf(state.files))
  return {
    points: await withInnerCommits(points, baseline.loaded, lab, baseline.timeLimitMs),
    touched,
    result: {
      n: 1,
      planned: null,
      between: 'nothing',
      isReached: true,
      first: baseline.run.outcome,
      claimsSuccess: false,
      rerun: run.outcome,
      isFromMemo: false,
      differences: all,
      gaps: [],
      database: isKept ? world.database : null,
    },
  }
}

/** Rows that a second run wrote again though their table is the same as before. */
async function rewritten(
  database: string,
  transactions: bigint,
  found: readonly Difference[],
  { lab, baseline }: TrialContext,
): Promise<readonly Touched[]> {
  if (transactions === 0n) return []
  await using session = await lab.cluster.open(database)
  const touched = await touchedRows(session, transactions, baseline.ignore)
  return touched.filter(({ table }) => !found.some((one) => one.kind === 'table' && one.where === table))
}

async function runAll(
  planned: readonly PlannedTrial[],
  context: TrialContext,
  options: ProveOptions,
  { started, stop }: { readonly started: number; readonly stop: AbortController },
): Promise<readonly TrialResult[]> {
  if (planned.length === 0) return []
  const { baseline } = context
  // A trial is a run that is interrupted, half of one on average, and in half of the cases another one.
  const estimateMs = (planned.length * baseline.run.outcome.ms * 1.2) / options.jobs
  options.onProgress({ step: 'planned', trials: planned.length, estimateMs })
  const results: TrialResult[] = []
  const waiting = [...planned]
  const worker = async () => {
    for (let trial = waiting.shift(); trial !== undefined; trial = waiting.shift()) {
      if (performance.now() - started > options.budgetMs) return
      options.signal.throwIfAborted()
      results.push(await runTrial(trial, context))
      options.onProgress({ step: 'trial', done: results.length, of: planned.length })
    }
  }
  // A port built into the command can be given to one run at a time.
  const workers = options.listenPort === 0 ? options.jobs : 1
  const ended = await Promise.allSettled(
    Array.from({ length: workers }, () =>
      worker().catch((error: unknown) => {
        stop.abort(error)
        throw error
      }),
    ),
  )
  for (const one of ended) if (one.status === 'rejected') throw one.reason
  return results.sort((a, b) => a.n - b.n)
}

interface Findings {
  readonly options: ProveOptions
  readonly started: number
  readonly cluster: Cluster
  readonly baseline: Baseline
  readonly noTrace: string | null
  readonly touched: readonly Touched[]
  readonly results: readonly TrialResult[]
  readonly planned: readonly PlannedTrial[]
  readonly again: readonly Point[]
}

function proofOf(findings: Findings): Proof {
  const { options, baseline, results, planned } = findings
  const notReached = results.filter((result) => !result.isReached).length
  const tried = results.filter((result) => result.isReached)
  const reruns = tried.filter((result) => result.rerun !== null && !result.isFromMemo)
  const tablesOf = ({ database, files }: Observation) =>
    new Map([...database.tables, ...tablesOfFiles(files)])
  const before = tablesOf(baseline.seedState)
  return {
    verdict: verdictOf(findings, notReached),
    command: options.command,
    ms: performance.now() - findings.started,
    isFenced: options.fence.isClosed,
    whyNoTrace: findings.noTrace,
    postgresVersion: findings.cluster.version,
    clean: {
      ms: baseline.run.outcome.ms,
      messages: baseline.run.units.length,
      requests: baseline.run.requests,
      points: baseline.points,
      changes: [...tablesOf(baseline.clean.observation)]
        .map(([table, { rows }]) => ({ table, before: before.get(table)?.rows ?? 0, after: rows }))
        .filter((change) => change.before !== change.after),
    },
    again: findings.again,
    volatile: baseline.volatile,
    touched: findings.touched,
    trials: results,
    counts: {
      planned: planned.length,
      reruns: reruns.length,
      sameState: tried.filter((result) => result.isFromMemo).length,
      notReached,
      pointsTried: new Set(
        tried.flatMap(({ planned }) =>
          planned === null ? [] : [`${planned.start} ${nameOf(planned.fault.point)}`],
        ),
      ).size,
      points: baseline.points.length + findings.again.length,
    },
    obstacle: baseline.obstacle,
    notTried: notTried(findings),
  }
}

function verdictOf({ options, baseline, results, planned, touched }: Findings, notReached: number): Verdict {
  if (baseline.obstacle !== null) return 'inconclusive'
  const classes = new Set<Class>(results.flatMap((result) => classesOf(result)))
  if (touched.length > 0) classes.add('touched')
  if (options.failOn.some((name) => classes.has(name))) return 'convicted'
  if (!isAnyFaultTried({ results, planned })) return 'inconclusive'
  return notReached > planned.length * MOST_NOT_REACHED ? 'inconclusive' : 'survives'
}

/** Whether time was left for one of the faults, where some were planned: without any, two equal runs say little. */
function isAnyFaultTried({ results, planned }: Pick<Findings, 'results' | 'planned'>): boolean {
  return planned.length === 0 || results.some((result) => result.planned !== null)
}

/** All that a trial is charged with. */
export function classesOf({ differences: found, claimsSuccess, gaps: seen }: TrialResult): readonly Class[] {
  const worst = worstOf(found)
  return [
    ...found.map((one) => one.class),
    ...(claimsSuccess && worst !== null && severity(worst.class) <= severity('different')
      ? (['claims success'] as const)
      : []),
    ...(seen.length > 0 ? (['gap'] as const) : []),
  ]
}

function notTried({ options, baseline, results, planned, again, noTrace }: Findings): readonly string[] {
  const missing: string[] = []
  const convicts = results.some(
    ({ planned: fault, between, differences: found }) =>
      fault === null && between === 'nothing' && found.length > 0,
  )
  if (planned.length === 0 && convicts)
    missing.push('faults (a plain second run differs already; --all tries them)')
  const undone = planned.length - results.filter((result) => result.planned !== null).length
  if (undone > 0) missing.push(`${undone} more trials (--budget)`)
  if (options.listenPort !== 0) missing.push('two at once (--listen)')
  const isUncounted = ({ transactions, commits }: Point) => transactions > 1 && commits === undefined
  if ([...baseline.points, ...again].some(isUncounted)) {
    missing.push('crashes between commits inside one message (CALL, DO, several statements sent as one)')
  }
  if (baseline.points.some((point) => point.kind === 'moment')) {
    missing.push(`crashes between chosen file calls, only at moments of a clean run (${noTrace})`)
  }
  return [
    ...missing,
    'a rerun on another day',
    ...(options.change === null ? ['a source that changed in between (--change)'] : []),
  ]
}

/** Removed at the end; those of a killed prover go at the next start. */
async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined)
  }
  const path = await makeTemporaryFolder(FOLDER_PREFIX)
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
