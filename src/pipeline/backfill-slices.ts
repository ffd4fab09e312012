import { StetError } from '../errors.ts'
import type { Slice, Slicing } from '../model/slice.ts'
import { groupDigits } from '../model/words.ts'
import { requireSlicing, type SliceStatus, statusesOf } from './calendar.ts'
import { recordOf } from './record.ts'
import { hasEnded, sizeInWords, sliceAt, slicesBetween } from './slices.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'

/** Which slices a backfill takes, and in which order. */
export interface BackfillRange {
  /** The first slice, by name. */
  readonly from: string
  /** The last slice, included. Default: the last one that has ended; only for slices of time. */
  readonly to?: string | undefined
  /**
   * `missing`: no run has ever finished them; `failed`: their newest attempt failed or was interrupted; `changed`: a plan
   * shows changes. Default: all of them; one that is as its source is not written (G2).
   */
  readonly only?: 'missing' | 'failed' | 'changed' | undefined
  /** Default `oldest` first. */
  readonly order?: 'oldest' | 'newest' | undefined
}

/** A slice of a backfill before it is run. */
export interface ChosenSlice {
  readonly slice: Slice
  /** By the record; null where it was not asked. */
  readonly status: SliceStatus | null
  /** Why it is left out; null where it is not. */
  readonly skipped: string | null
}

/** The slices of a backfill in their order, with those that `only` leaves out. */
export async function chooseSlices(
  pipeline: DefinedPipeline,
  range: BackfillRange,
  options: Pick<RunOptions, 'now' | 'lockTimeoutMs'> & {
    readonly signal: AbortSignal
    readonly withStatus: boolean
  },
  notice: (message: string) => void,
): Promise<readonly ChosenSlice[]> {
  const slicing = requireSlicing(pipeline)
  const now = (options.now ?? (() => new Date()))()
  const slices = slicesOfRange(slicing, range, now, notice)
  const byRecord = range.only === 'missing' || range.only === 'failed'
  const statusOf =
    byRecord || options.withStatus
      ? statusesOf(await recordOf(pipeline, { signal: options.signal, lockTimeoutMs: options.lockTimeoutMs }))
      : () => null
  const chosen = slices.map((slice): ChosenSlice => {
    const status = statusOf(slice.name)
    return { slice, status, skipped: status === null ? null : reasonToSkip(range.only, status) }
  })
  return range.order === 'newest' ? chosen.reverse() : chosen
}

function reasonToSkip(only: BackfillRange['only'], status: SliceStatus): string | null {
  if (only === 'missing' && status.loadedAt !== null) return `loaded at ${status.loadedAt}`
  if (only === 'failed' && status.state !== 'failed') return `not failed: ${status.state}`
  return null
}

function slicesOfRange(
  slicing: Slicing,
  { from, to }: BackfillRange,
  now: Date,
  notice: (message: string) => void,
): readonly Slice[] {
  const size = sizeInWords(slicing.size)
  if (to === undefined) {
    const ended = slicesBetween(slicing, from, present(slicing, now)).filter((slice) => hasEnded(slice, now))
    const last = ended.at(-1)
    if (last === undefined) {
      throw new StetError('STET_USAGE', `No ${size} from ${from} on has ended yet`, {
        hint: `Name the last one to load it all the same: --to ${from}`,
      })
    }
    notice(`Up to ${last.name}, the last ${size} that has ended; --to names another end`)
    return ended
  }
  const slices = slicesBetween(slicing, from, to)
  const open = slices.filter((slice) => !hasEnded(slice, now))
  const [first] = open
  if (first !== undefined) {
    notice(
      open.length === 1
        ? `${first.name} has not ended yet: what comes later needs another run`
        : `${groupDigits(open.length)} slices from ${first.name} on have not ended yet: what comes later needs another run`,
    )
  }
  return slices
}

function present(slicing: Slicing, now: Date): string {
  if (typeof slicing.size === 'object' || slicing.size === 'value') {
    throw new StetError(
      'STET_USAGE',
      `Slices of ${slicing.by} are not of time: the backfill needs its last one`,
      {
        hint: 'Name it: --to',
      },
    )
  }
  return sliceAt(slicing, now.toISOString()).name
}
