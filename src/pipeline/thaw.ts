import { StetError } from '../errors.ts'
import { type Slicing, WHOLE } from '../model/slice.ts'
import { recordOf } from './record.ts'
import { slicingOf } from './selection.ts'
import { signalOf } from './signal.ts'
import { sliceOf } from './slices.ts'
import type { DefinedPipeline } from './types.ts'

/** What became of one slice that was to be thawed. */
export interface Thawed {
  readonly slice: string
  /** False when it was not frozen. */
  readonly thawed: boolean
}

/**
 * Lets the next run change slices that `truth: 'snapshot'` has frozen (G12), on the record.
 *
 * @param slices By name; none for a pipeline that is not cut into slices.
 * @throws {StetError} `STET_USAGE` when the pipeline has never run, or needs a slice and is given none.
 */
export async function thaw(
  pipeline: DefinedPipeline,
  slices: readonly string[],
  options: { readonly by: string; readonly signal?: AbortSignal | undefined },
): Promise<{ readonly table: string; readonly slices: readonly Thawed[] }> {
  const signal = signalOf(options)
  const names = namesOf(pipeline, slices)
  const { table } = await recordOf(pipeline, { signal })
  if (table === null) {
    throw new StetError('STET_USAGE', `Pipeline "${pipeline.name}" has never run, so nothing of it is frozen`)
  }
  await using editor = await pipeline.target.openRecord({ signal })
  const thawed: Thawed[] = []
  for (const slice of names) thawed.push({ slice, thawed: await editor.thaw(table, slice, options.by) })
  return { table, slices: thawed }
}

function namesOf(pipeline: DefinedPipeline, slices: readonly string[]): readonly string[] {
  const slicing: Slicing | null = slicingOf(pipeline)
  if (slicing === null && slices.length > 0 && slices.some((name) => name !== WHOLE)) {
    throw new StetError('STET_USAGE', `Pipeline "${pipeline.name}" is not cut into slices: leave --slice out`)
  }
  if (slicing !== null && slices.length > 0) return slices.map((name) => sliceOf(slicing, name).name)
  if (pipeline.write.strategy !== 'replace-partition') return [WHOLE]
  throw new StetError('STET_USAGE', 'Which slice is to be thawed?', { hint: 'Name it: --slice 2026-08-07' })
}
