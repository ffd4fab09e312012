import { totalmem } from 'node:os'
import { isStetError, StetError } from '../errors.ts'
import type { Progress } from '../model/progress.ts'
import { noticesOf } from './account.ts'
import { type BackfillRange, type ChosenSlice, chooseSlices } from './backfill-slices.ts'
import type { SliceState } from './calendar.ts'
import { hasChanges } from './changes.ts'
import { plan } from './plan.ts'
import { run } from './run.ts'
import { signalOf } from './signal.ts'
import type { DefinedPipeline, Plan, RunOptions, RunResult } from './types.ts'

export type { BackfillRange } from './backfill-slices.ts'

export interface BackfillOptions
  extends BackfillRange,
    Omit<RunOptions, 'slice' | 'at' | 'window' | 'from' | 'full' | 'plan' | 'rerunOf' | 'waitsForCaller'> {
  /** Slices at a time, each with an engine and a connection of its own; the memory limit is divided among them. Default 1. */
  readonly jobs?: number | undefined
  /** Told as each slice ends, in the order in which they end. */
  readonly onSlice?: ((outcome: SliceOutcome, progress: BackfillProgress) => void) | undefined
}

export interface BackfillProgress {
  readonly ended: number
  readonly total: number
}

/** What became of one slice. */
export interface SliceOutcome {
  readonly slice: string
  readonly status: 'succeeded' | 'failed' | 'interrupted' | 'skipped' | 'not started'
  /** Why it was left out by `only`. */
  readonly reason: string | null
  readonly result: RunResult | null
  /** What the run threw; null where it threw nothing. */
  readonly error: unknown
}

export interface BackfillResult {
  readonly pipeline: string
  readonly target: string
  readonly table: string
  /** In the order in which they were to run. */
  readonly slices: readonly SliceOutcome[]
  readonly notices: readonly string[]
}

/** What a backfill would do with one slice. */
export interface SlicePlan {
  readonly slice: string
  readonly status: 'planned' | 'failed' | 'interrupted' | 'skipped' | 'not started'
  readonly reason: string | null
  /** Where it stands before, by the record. */
  readonly state: SliceState
  readonly plan: Plan | null
  readonly error: unknown
}

export interface BackfillPlan extends Omit<BackfillResult, 'slices'> {
  readonly slices: readonly SlicePlan[]
}

/**
 * Runs a pipeline once for each slice from the one to the other. Every slice has a run, a commit and a verdict of its own,
 * and one that fails does not stop the others. A slice that is as its source is not written (G2), so that a backfill that
 * was killed is continued by starting it again. The watermark of a cursor stays where it is (G4).
 *
 * Resolves also when slices have failed or the signal was fired: the outcomes say so.
 *
 * @throws {StetError} `STET_USAGE` when the pipeline is not cut into slices or the range names none of them; before
 * anything is run.
 * @example
 * const { slices } = await backfill(orders, { from: '2026-08-07', to: '2026-09-06', jobs: 2 })
 * const failed = slices.filter(({ status }) => status === 'failed')
 */
export async function backfill(pipeline: DefinedPipeline, options: BackfillOptions): Promise<BackfillResult> {
  const backfilling = await begin(pipeline, options, false)
  const { chosen, signal, notices } = backfilling
  let ended = 0
  const tell = (outcome: SliceOutcome) => {
    ended++
    options.onSlice?.(outcome, { ended, total: chosen.length })
  }
  const slices = await workOn(
    backfilling,
    async ({ slice, skipped }) => {
      const outcome = await runSlice(backfilling, slice.name, skipped)
      tell(outcome)
      return outcome
    },
    hasMadeTable,
  )
  return {
    ...labelsOf(pipeline),
    slices: slices.map((outcome, index) => outcome ?? { ...unbegun(chosen[index], signal), result: null }),
    notices: notices.all,
  }
}

/**
 * What {@link backfill} would do with the same options, slice by slice. Changes nothing. Slices are planned against the
 * table as it is now, not as the slices before them will leave it.
 *
 * @throws what {@link backfill} throws.
 */
export async function planBackfill(
  pipeline: DefinedPipeline,
  options: BackfillOptions,
): Promise<BackfillPlan> {
  const backfilling = await begin(pipeline, options, true)
  const { chosen, signal, notices } = backfilling
  const stateOf = (index: number): SliceState => chosen[index]?.status?.state ?? 'missing'
  const planned = await workOn(backfilling, ({ slice, skipped }) =>
    planSlice(backfilling, slice.name, skipped),
  )
  return {
    ...labelsOf(pipeline),
    slices: planned.map((found, index) => ({
      ...(found ?? { ...unbegun(chosen[index], signal), plan: null }),
      state: stateOf(index),
    })),
    notices: notices.all,
  }
}

/** All that the slices of one backfill share. */
interface Backfilling {
  readonly pipeline: DefinedPipeline
  readonly options: BackfillOptions
  readonly chosen: readonly ChosenSlice[]
  readonly jobs: number
  readonly signal: AbortSignal
  readonly notices: ReturnType<typeof noticesOf>
  /** Slices that have asked for their turn to write the table and have not ended. */
  readonly writing: Set<string>
}

async function begin(
  pipeline: DefinedPipeline,
  options: BackfillOptions,
  withStatus: boolean,
): Promise<Backfilling> {
  const signal = signalOf(options)
  signal.throwIfAborted()
  const notices = noticesOf(options)
  const jobs = jobsOf(pipeline, options, notices.add)
  const { now, lockTimeoutMs } = options
  const chosen = await chooseSlices(
    pipeline,
    options,
    { now, lockTimeoutMs, signal, withStatus },
    notices.add,
  )
  return { pipeline, options, chosen, jobs, signal, notices, writing: new Set() }
}

async function runSlice(
  backfilling: Backfilling,
  slice: string,
  skipped: string | null,
): Promise<SliceOutcome> {
  const { pipeline, options, signal } = backfilling
  if (skipped !== null) return { slice, status: 'skipped', reason: skipped, result: null, error: null }
  try {
    if (options.only === 'changed' && !hasChanges(await plan(pipeline, optionsFor(backfilling, slice)))) {
      return { slice, status: 'skipped', reason: 'unchanged', result: null, error: null }
    }
    const result = await run(pipeline, optionsFor(backfilling, slice))
    return { slice, status: 'succeeded', reason: null, result, error: null }
  } catch (error) {
    return { slice, status: statusOf(error, signal), reason: null, result: null, error }
  } finally {
    backfilling.writing.delete(slice)
  }
}

async function planSlice(
  backfilling: Backfilling,
  slice: string,
  skipped: string | null,
): Promise<Omit<SlicePlan, 'state'>> {
  const { pipeline, options, signal } = backfilling
  if (skipped !== null) return { slice, status: 'skipped', reason: skipped, plan: null, error: null }
  try {
    const planned = await plan(pipeline, optionsFor(backfilling, slice))
    if (options.only === 'changed' && !hasChanges(planned)) {
      return { slice, status: 'skipped', reason: 'unchanged', plan: null, error: null }
    }
    return { slice, status: 'planned', reason: null, plan: planned, error: null }
  } catch (error) {
    return { slice, status: statusOf(error, signal), reason: null, plan: null, error }
  }
}

/** Rows have been loaded, so the table is there. */
function hasMadeTable({ result }: SliceOutcome): boolean {
  return result !== null && result.verdict !== 'nothing read'
}

/** A commit of unknown outcome is no interruption, also where it was one that caused it. */
function statusOf(error: unknown, signal: AbortSignal): 'failed' | 'interrupted' {
  const isUnknown = isStetError(error) && error.code === 'STET_OUTCOME_UNKNOWN'
  return signal.aborted && !isUnknown ? 'interrupted' : 'failed'
}

function unbegun(chosen: ChosenSlice | undefined, signal: AbortSignal) {
  const reason: unknown = signal.reason
  return { slice: chosen?.slice.name ?? '', status: 'not started', reason: null, error: reason } as const
}

/**
 * Works on so many slices at a time; after an abort no further one is begun, and its place stays empty. Until a slice has
 * opened the way it goes alone: a first load makes the table, and a run beside it would find the table altered.
 */
async function workOn<T>(
  { chosen, jobs, signal }: Backfilling,
  work: (chosen: ChosenSlice) => Promise<T>,
  opensTheWay: (outcome: T) => boolean = () => true,
): Promise<(T | undefined)[]> {
  const outcomes = new Array<T | undefined>(chosen.length).fill(undefined)
  const queue = chosen.entries()
  for (const [index, slice] of queue) {
    if (signal.aborted) return outcomes
    const outcome = await work(slice)
    outcomes[index] = outcome
    if (opensTheWay(outcome)) break
  }
  const worker = async (): Promise<void> => {
    // One iterator for all workers: each takes the next slice that nobody has taken.
    for (const [index, slice] of queue) {
      if (signal.aborted) return
      outcomes[index] = await work(slice)
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, chosen.length) }, worker))
  return outcomes
}

function optionsFor({ options, jobs, writing }: Backfilling, slice: string): RunOptions {
  const { cwd, signal, onNotice, leaseTimeoutMs, lockTimeoutMs, now, allow, code, inCommands } = options
  return {
    cwd,
    signal,
    leaseTimeoutMs,
    lockTimeoutMs,
    now,
    allow,
    code,
    inCommands,
    slice,
    onProgress: (progress) => {
      if (TURN_TO_WRITE.has(progress.phase)) writing.add(slice)
      // Of several at once one progress line would jump to and fro.
      if (jobs === 1) options.onProgress?.(progress)
    },
    waitsForCaller: () => [...writing].some((other) => other !== slice),
    onNotice: onNotice === undefined ? undefined : (message) => onNotice(`${slice}: ${message}`),
    // Attempts are grouped by it, and those of two slices are no attempts at one thing.
    runId: options.runId === undefined ? undefined : `${options.runId}/${slice}`,
    memoryLimit: memoryLimitFor(options.memoryLimit, jobs),
    threads: options.threads === undefined ? undefined : Math.max(1, Math.floor(options.threads / jobs)),
  }
}

/** From when a run asks for its turn to write until its end, no other run can write the table. */
const TURN_TO_WRITE: ReadonlySet<Progress['phase']> = new Set(['waiting', 'pulling', 'comparing', 'writing'])

/** Each engine would take DuckDB's default, 80 % of the memory, for itself. */
const SHARE_OF_MEMORY = 0.8

/** Each job's part of the memory limit, in DuckDB's words. */
export function memoryLimitFor(limit: string | undefined, jobs: number): string | undefined {
  if (jobs === 1) return limit
  const [, amount, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(limit ?? '') ?? []
  if (amount !== undefined && unit !== undefined)
    return `${Math.floor((Number(amount) * 1000) / jobs) / 1000}${unit}`
  if (limit !== undefined) return limit
  // 0 or a number beyond the machine's where a container sets none.
  const constrained = process.constrainedMemory() || Number.POSITIVE_INFINITY
  const available = Math.min(totalmem(), constrained)
  return `${Math.floor((available * SHARE_OF_MEMORY) / jobs / 2 ** 20)}MiB`
}

function jobsOf(
  pipeline: DefinedPipeline,
  { jobs = 1 }: BackfillOptions,
  notice: (message: string) => void,
): number {
  if (!Number.isSafeInteger(jobs) || jobs < 1) {
    throw new StetError('STET_USAGE', `A backfill cannot work on ${jobs} slices at a time`, {
      hint: 'Write a whole number of 1 or more',
    })
  }
  if (jobs > 1 && pipeline.target.capabilities.oneRunAtATime === true) {
    notice(`${pipeline.target.description} takes one run at a time, so slices are run one after another`)
    return 1
  }
  return jobs
}

function labelsOf(pipeline: DefinedPipeline): Pick<BackfillResult, 'pipeline' | 'target' | 'table'> {
  return { pipeline: pipeline.name, target: pipeline.target.description, table: pipeline.table }
}
