import { interruptOnAbort, openLocalEngine } from '../local/engine.ts'
import { countsOf, labelsOf, noticesOf, reported, whereaboutsOf } from './account.ts'
import { findDifference } from './difference.ts'
import { keysElsewhere } from './elsewhere.ts'
import type { Found } from './found.ts'
import { targetOptions } from './run.ts'
import { sliceOfRun } from './selection.ts'
import { signalOf } from './signal.ts'
import type { DefinedPipeline, Plan, RunOptions } from './types.ts'
import { valuesTaken } from './unique-values.ts'
import { missingOf } from './workplace.ts'

/**
 * What a run would do: the same reading, checking and comparing, without the last step. Changes neither the target's
 * table nor the record, and needs no more than the right to read.
 *
 * @throws what {@link run} throws before it writes.
 * @example
 * const { counts, samples } = await plan(orders)
 */
export async function plan(pipeline: DefinedPipeline, options: RunOptions = {}): Promise<Plan> {
  const signal = signalOf(options)
  signal.throwIfAborted()
  const notices = noticesOf(options)
  const slice = sliceOfRun(pipeline, options)
  await using local = await openLocalEngine({ memoryLimit: options.memoryLimit, threads: options.threads })
  await local.run('set preserve_insertion_order = false')
  const stopListening = interruptOnAbort(local, signal)
  options.onProgress?.({ phase: 'opening' })
  try {
    await using session = await pipeline.target.open(
      targetOptions(pipeline, options, local, signal, notices.add, 'plan'),
    )
    const attempt = { pipeline, options, slice, local, session, signal, notice: notices.add }
    const found = await findDifference(attempt)
    const { inserts, updates, deletes, marks } = found.comparison.difference
    const asFound = {
      inserted: inserts,
      updated: updates,
      unchanged: 0,
      stale: 0,
      frozen: 0,
      deleted: deletes,
      marked: marks,
      restored: 0,
    }
    const { live } = found.comparison
    const digest = await found.digest()
    const samples = [...(await found.samples()), ...(await found.drift())]
    const statements = session.statements()
    const obstacle =
      (await session.lackingRights?.(found.comparison.difference)) ??
      (await keysElsewhere(attempt, found)) ??
      (await valuesTaken(attempt, found))
    if (obstacle !== null) notices.add(obstacle)
    const judges = judgesOf(found)
    if (judges !== null) notices.add(judges)
    return {
      format: 'stet-plan-1',
      ...labelsOf(pipeline),
      ...whereaboutsOf(found, slice),
      missing: missingOf(pipeline),
      rows: looksAtAll(found) ? { before: live, after: live + inserts - deletes - marks } : null,
      obstacle,
      creates: found.table === null,
      counts: countsOf(found.rows, found.comparison, asFound),
      samples,
      columns: reported(found.contract),
      statements,
      files: found.files,
      rejects: found.rows.rejects,
      notices: notices.all,
      digest,
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    stopListening()
  }
}

/** The constraints that a plan does not work out, where the difference would meet them. */
function judgesOf({ table, comparison: { difference } }: Found): string | null {
  const { inserts, updates, deletes } = difference
  const judges = (table?.judges ?? []).filter((judge) =>
    judge.of === 'written' ? inserts + updates > 0 : deletes > 0,
  )
  if (judges.length === 0) return null
  return `A plan does not evaluate ${judges.map(({ name }) => name).join(', ')}: whether ${judges.length === 1 ? 'it takes' : 'they take'} the change, only the run can tell`
}

/** Whether the comparison has seen every row of the table or slice, and not only those whose keys the load has. */
function looksAtAll({ scopeKind }: Found): boolean {
  return scopeKind !== 'keys'
}
