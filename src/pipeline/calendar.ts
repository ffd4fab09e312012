import { isStetError, StetError } from '../errors.ts'
import type { RecordEvent, RunLogEntry } from '../model/run.ts'
import { type Slice, type Slicing, WHOLE } from '../model/slice.ts'
import type { Target } from '../model/target.ts'
import { type PipelineRecord, recordOf } from './record.ts'
import { slicingOf } from './selection.ts'
import { signalOf } from './signal.ts'
import { sliceOf, slicesBetween } from './slices.ts'
import type { DefinedPipeline } from './types.ts'

/**
 * Where a slice stands by its newest attempt: `empty` was read and held no rows; `failed` failed or was interrupted, also
 * where an older run has loaded it; `frozen` is loaded and stays as it is (G12); `missing` was never run.
 */
export type SliceState = 'loaded' | 'empty' | 'failed' | 'running' | 'frozen' | 'missing'

/** One slice of a pipeline, by the record. */
export interface SliceStatus {
  readonly slice: string
  readonly state: SliceState
  /** Of the newest attempt; null where there was none. */
  readonly runId: string | null
  /** When the newest attempt began, by the target's clock, ISO 8601 in UTC. */
  readonly startedAt: string | null
  /** Code of the newest attempt's error. */
  readonly error: string | null
  /** When a run has last finished the slice; null where none has. */
  readonly loadedAt: string | null
  /** Rows that this run had after transform. */
  readonly rows: number | null
}

export interface SliceCalendar {
  readonly slicing: Slicing
  /** Oldest first; values in the order of their text. */
  readonly slices: readonly SliceStatus[]
  /** Names in the record that are no slices of the present size. */
  readonly others: readonly string[]
}

export interface SlicesOptions {
  /** First and last slice, both included. Default: the first and the last of the record. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Whose record to read. Default: the pipeline's target. */
  readonly target?: Target | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Where every slice of a pipeline stands, from the run log and what people did to it. Reads only.
 *
 * @throws {StetError} `STET_USAGE` when the pipeline is not cut into slices, or `from` and `to` name none of them.
 * @example
 * const { slices } = await slicesOf(orders, { from: '2026-08-01', to: '2026-08-31' })
 * const missing = slices.filter(({ state }) => state === 'missing')
 */
export async function slicesOf(
  pipeline: DefinedPipeline,
  options: SlicesOptions = {},
): Promise<SliceCalendar> {
  const slicing = requireSlicing(pipeline)
  const signal = signalOf(options)
  const record = await recordOf(pipeline, { target: options.target, signal })
  const statusOf = statusesOf(record)
  // Of a pipeline that replaces values, a run of everything is one of the value of that name: there are no others.
  const isValue = pipeline.write.strategy === 'replace-partition' && slicing.size === 'value'
  const recorded = [...new Set(record.entries.map((entry) => entry.slice))].filter(
    (name) => (isValue || name !== WHOLE) && statusOf(name).state !== 'missing',
  )
  const known = recorded.filter((name) => isSlice(slicing, name))
  return {
    slicing,
    slices: namesToShow(slicing, known, options).map(statusOf),
    others: recorded.filter((name) => !isSlice(slicing, name)).sort(),
  }
}

/** How the pipeline is cut, for commands that make no sense on one that is not. */
export function requireSlicing(pipeline: DefinedPipeline): Slicing {
  const slicing = slicingOf(pipeline)
  if (slicing !== null) return slicing
  throw new StetError('STET_USAGE', `Pipeline "${pipeline.name}" is not cut into slices`, {
    hint: "Write strategy: 'replace-partition', or incremental: { cursor: … }; stet run loads all of it",
  })
}

/** The status of slices by name. */
export function statusesOf({ entries, events }: PipelineRecord): (name: string) => SliceStatus {
  const bySlice = new Map<string, RunLogEntry[]>()
  for (const entry of entries) {
    const attempts = bySlice.get(entry.slice)
    if (attempts === undefined) bySlice.set(entry.slice, [entry])
    else attempts.push(entry)
  }
  return (name) => statusOf(name, unforgotten(name, bySlice.get(name) ?? [], events), events)
}

/** The attempts since a person has taken the slice off the calendar; one that was loaded stays, whatever was said of it. */
function unforgotten(
  name: string,
  attempts: readonly RunLogEntry[],
  events: readonly RecordEvent[],
): readonly RunLogEntry[] {
  const forgotten = events.find(
    ({ kind, slice, pipeline }) => kind === 'forget' && slice === name && pipeline === attempts[0]?.pipeline,
  )
  if (forgotten === undefined || attempts.some(({ status }) => status === 'succeeded')) return attempts
  return attempts.filter(({ startedAt }) => startedAt > forgotten.at)
}

function statusOf(
  name: string,
  attempts: readonly RunLogEntry[],
  events: readonly RecordEvent[],
): SliceStatus {
  const [newest] = attempts
  const finished = attempts.find((entry) => entry.status === 'succeeded')
  return {
    slice: name,
    state: stateOf(name, attempts, events),
    runId: newest?.runId ?? null,
    startedAt: newest?.startedAt ?? null,
    error: newest?.error?.code ?? null,
    loadedAt: finished?.finishedAt ?? null,
    rows: finished?.counts?.afterTransform ?? null,
  }
}

function stateOf(name: string, attempts: readonly RunLogEntry[], events: readonly RecordEvent[]): SliceState {
  const [newest] = attempts
  if (newest === undefined) return 'missing'
  if (newest.status === 'running') return 'running'
  if (newest.status !== 'succeeded') return 'failed'
  if (isFrozen(name, attempts, events)) return 'frozen'
  // What is outside of a window was read on the way to it, and is not of the slice.
  const { read = 0, outside = 0 } = newest.counts ?? {}
  return read - outside === 0 ? 'empty' : 'loaded'
}

/** The rule by which targets freeze (G12), so that what is shown is what a run would meet. */
function isFrozen(name: string, attempts: readonly RunLogEntry[], events: readonly RecordEvent[]): boolean {
  const thawedAt = events.find((event) => event.kind === 'thaw' && event.slice === name)?.at ?? ''
  return attempts.some(
    (entry) =>
      entry.status === 'succeeded' &&
      entry.truth === 'snapshot' &&
      (entry.counts?.afterTransform ?? 0) > 0 &&
      (entry.finishedAt ?? '') > thawedAt,
  )
}

function isSlice(slicing: Slicing, name: string): boolean {
  try {
    return sliceOf(slicing, name).name === name
  } catch {
    return false
  }
}

function namesToShow(
  slicing: Slicing,
  known: readonly string[],
  { from, to }: Pick<SlicesOptions, 'from' | 'to'>,
): readonly string[] {
  const sorted = [...known].sort(typeof slicing.size === 'object' ? byNumber : undefined)
  if (slicing.size === 'value') {
    if (from === undefined && to === undefined) return sorted
    // Says why there is nothing between two values.
    return slicesBetween(slicing, from ?? '', to ?? '').map(({ name }) => name)
  }
  const first = from ?? sorted[0] ?? to
  const last = to ?? sorted.at(-1) ?? from
  if (first === undefined || last === undefined) return []
  if (from !== undefined && to !== undefined) return slicesBetween(slicing, from, to).map(({ name }) => name)
  // A mistyped end is refused in its own words.
  for (const end of [from, to]) if (end !== undefined) sliceOf(slicing, end)
  return asFarAsRecorded(slicing, first, last).map(({ name }) => name)
}

/** In every digit: numbers of 64 bits are more than a JavaScript number tells apart. */
function byNumber(a: string, b: string): number {
  const difference = BigInt(a) - BigInt(b)
  return difference < 0n ? -1 : Number(difference > 0n)
}

/** The record decides where the calendar ends, and one slice that was mistyped is enough for a thousand years. */
function asFarAsRecorded(slicing: Slicing, first: string, last: string): Slice[] {
  try {
    return slicesBetween(slicing, first, last)
  } catch (error) {
    if (!isStetError(error)) throw error
    throw new StetError('STET_USAGE', error.message, {
      cause: error,
      hint: 'Name both ends: --from, --to. Was one of the two mistyped, and never loaded? --forget it',
    })
  }
}
