import { StetError } from '../errors.ts'
import type { Target } from '../model/target.ts'
import { requireSlicing, statusesOf } from './calendar.ts'
import { recordOf } from './record.ts'
import type { DefinedPipeline } from './types.ts'

export interface ForgetOptions {
  /** `user@host`, for the record. */
  readonly by: string
  /** Whose record to change. Default: the pipeline's target. */
  readonly target?: Target | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Takes slices off the calendar that were never loaded, such as one that was mistyped: its failed runs stay in the run log,
 * and the next run of it brings it back. On the record.
 *
 * @throws {StetError} `STET_USAGE` for a slice that is not on record, that a run has finished, or that is running; then none
 * is forgotten.
 */
export async function forgetSlices(
  pipeline: DefinedPipeline,
  slices: readonly string[],
  { by, target = pipeline.target, signal = new AbortController().signal }: ForgetOptions,
): Promise<void> {
  requireSlicing(pipeline)
  const record = await recordOf(pipeline, { target, signal })
  const statusOf = statusesOf(record)
  for (const slice of slices) {
    const { state, loadedAt } = statusOf(slice)
    if (record.table === null || state === 'missing') {
      throw new StetError(
        'STET_USAGE',
        `No slice ${JSON.stringify(slice)} of "${pipeline.name}" is on record`,
        {
          hint: 'stet slices shows those that are; a name is written as it stands there',
        },
      )
    }
    if (loadedAt !== null) {
      throw new StetError('STET_USAGE', `The slice ${slice} was loaded at ${loadedAt} and is not forgotten`, {
        hint: 'The table may hold rows of it. To take them out, load it from an empty source: --allow-empty',
      })
    }
    if (state === 'running') {
      throw new StetError('STET_USAGE', `The slice ${slice} is being loaded`, { hint: 'Wait for its run' })
    }
  }
  const { table } = record
  if (table === null) return
  await using editor = await target.openRecord({ signal })
  for (const slice of new Set(slices)) await editor.forgetSlice(pipeline.name, table, slice, by)
}
