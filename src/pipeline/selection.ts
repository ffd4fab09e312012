import { StetError } from '../errors.ts'
import type { Slice, Slicing } from '../model/slice.ts'
import { sliceAt, sliceOf } from './slices.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'
import { slicingOfCursor } from './window.ts'

/** How a pipeline's table, or its cursor, is cut; null for one that is not. */
export function slicingOf(pipeline: DefinedPipeline): Slicing | null {
  const { write, incremental } = pipeline
  if (write.strategy === 'replace-partition') {
    return { by: write.by, size: write.size, zone: write.zone ?? 'UTC' }
  }
  return incremental === undefined ? null : slicingOfCursor(incremental)
}

/**
 * The slice that a run loads: the one it names, or the one of its logical time. Never one of the clock's choosing: a rerun
 * tomorrow must not be a run of another day.
 *
 * @returns null for a run of everything, or by the watermark.
 * @throws {StetError} `STET_USAGE` when a pipeline that replaces partitions is given neither, or one without slices is
 * given one, or when all is to be read as well.
 */
export function sliceOfRun(pipeline: DefinedPipeline, options: RunOptions): Slice | null {
  const slice = namedSlice(pipeline, options)
  if (options.from !== undefined) refuseFrom(pipeline, options, slice)
  if (slice === null || options.full !== true) return slice
  throw new StetError(
    'STET_USAGE',
    `A run of the slice ${slice.name} reads that slice and no more, so it cannot read everything (--full)`,
    { hint: 'Leave --full out, or the slice; many slices at once: stet backfill' },
  )
}

/** A beginning is one of a cursor's window, and says where it begins in place of what else does. */
function refuseFrom({ name, incremental }: DefinedPipeline, options: RunOptions, slice: Slice | null): void {
  const { from, full, window } = options
  if (incremental === undefined) {
    throw new StetError(
      'STET_USAGE',
      `Pipeline "${name}" reads by no cursor, so it cannot begin at ${from}`,
      {
        hint: 'Leave --from out. Many slices: stet backfill has a --from of its own',
      },
    )
  }
  if (slice === null && full !== true && window === undefined) return
  const other = slice !== null ? `the slice ${slice.name}` : full === true ? '--full' : 'a window'
  throw new StetError('STET_USAGE', `--from ${from} and ${other} both say where the run begins`, {
    hint: 'Give one of them',
  })
}

function namedSlice(pipeline: DefinedPipeline, options: RunOptions): Slice | null {
  const slicing = slicingOf(pipeline)
  if (options.slice !== undefined) {
    if (slicing !== null) return sliceOf(slicing, options.slice)
    throw new StetError(
      'STET_USAGE',
      `Pipeline "${pipeline.name}" is not cut into slices, so it has no slice ${JSON.stringify(options.slice)}`,
      {
        hint: "Leave --slice out, and {slice} out of the files' names; or cut it: --strategy replace-partition --partition-by COLUMN, or --cursor COLUMN (strategy: 'replace-partition', or incremental, in a pipeline)",
      },
    )
  }
  if (pipeline.write.strategy !== 'replace-partition' || slicing === null) return null
  if (options.at !== undefined) return sliceAt(slicing, options.at)
  throw new StetError(
    'STET_USAGE',
    `Pipeline "${pipeline.name}" replaces one slice of ${slicing.by}, and this run names none`,
    {
      hint: "Name it (--slice 2026-08-07), or give the logical time (--at 2026-08-07T00:00:00Z; an orchestrator's is taken by itself). Many at once: stet backfill",
    },
  )
}
