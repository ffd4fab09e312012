import type { CompareRules } from '../model/comparison.ts'
import { NO_COUNTS, type RunRecord } from '../model/run.ts'
import { WHOLE } from '../model/slice.ts'
import type { Reject } from '../model/source.ts'
import { countOf } from '../model/words.ts'
import type { Removals } from '../model/write.ts'
import type { Found } from './found.ts'
import { refuseDangerousDeletes, refuseRejects } from './guards.ts'
import { openLocalWorkplace } from './local-workplace.ts'
import { openRemoteWorkplace } from './remote-workplace.ts'
import type { ReadyRows } from './rows.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'
import { type CursorPlan, isBackwards, planCursor } from './window.ts'
import { type Attempt, missingOf } from './workplace.ts'

/** Of the rejects the log keeps the first; a quarantine has them all, and whole. */
const REJECTS_LOGGED = 100

const RAW_LOGGED_CHARACTERS = 1_000

/** What is known of a run while it goes on; all of it goes into the record, also of one that fails. */
export type Ledger = { -readonly [Part in 'counts' | 'window' | 'files' | 'rejects']: RunRecord[Part] }

/** Lands, dedupes, takes the lock, and compares. The session is then in the transaction that `apply` goes on with. */
export async function findDifference(
  attempt: Attempt,
  learned: (partial: Partial<Ledger>) => void = () => undefined,
): Promise<Found> {
  const { pipeline, options, slice, session, signal, notice } = attempt
  const progress = options.onProgress ?? (() => undefined)
  const recorded = await session.history(pipeline.name, slice?.name ?? WHOLE)
  // What another pipeline has frozen is frozen for its runs: with `truth: 'source'` the target follows the source (G12).
  const history = { ...recorded, frozen: recorded.frozen && pipeline.truth === 'snapshot' }
  const table = await session.describe()
  // A watermark says what a table holds, and this one is gone.
  const isByWatermark = pipeline.incremental !== undefined && slice === null && options.window === undefined
  const isVoid = table === null && history.watermark !== null && isByWatermark
  if (isVoid)
    notice(
      `There is no table ${pipeline.table} any more, so the watermark counts for nothing: the run begins at the start`,
    )
  const asked = isVoid ? { ...options, full: true } : options
  const cursor = await planCursor(pipeline, asked, history.watermark, slice, signal)
  progress({ phase: 'reading' })
  const open = pipeline.source.own === undefined ? openLocalWorkplace : openRemoteWorkplace
  await using workplace = await open(attempt, { table, cursor, frozen: history.frozen })
  for (const message of workplace.notices) notice(message)
  // Also of a run that fails here: which files there were may be known only when they have been looked at.
  const ready = await workplace.ready().finally(() => learned({ files: workplace.files }))
  const rows = await withSafeWatermark(attempt, ready, cursor)
  const { read, outside, filtered, added, afterTransform, rejected, duplicate } = rows
  learned({
    counts: { ...NO_COUNTS, read, outside, filtered, added, afterTransform, rejected, duplicate },
    window: rows.cursor?.window ?? null,
    rejects: rows.rejects.slice(0, REJECTS_LOGGED).map(cutReject),
  })
  refuseRejects(rows.rejected, rows.rejects, pipeline.maxRejects ?? 0)
  signal.throwIfAborted()
  progress({ phase: 'waiting' })
  await session.begin()
  progress({ phase: 'pulling' })
  const compared = await workplace.compare(rows, rulesOf(pipeline, history.frozen))
  const { contract, comparison } = compared
  refuseDangerousDeletes(comparison.difference, rows, {
    live: comparison.live,
    allowed: allowedRemovals(pipeline, options),
    table: table?.name ?? pipeline.table,
    isKeyless: contract.columns.every((column) => !column.key),
  })
  return { table, rows, ...compared, files: workplace.files, history, cursor }
}

/**
 * A row that was rejected is not loaded, and its cursor may be anywhere: a watermark beyond it would keep it from being read
 * again when it has been corrected (G4, G9).
 */
async function withSafeWatermark(
  { local, notice, pipeline }: Attempt,
  rows: ReadyRows,
  plan: CursorPlan | null,
): Promise<ReadyRows> {
  const { cursor, rejected } = rows
  if (cursor === null || plan === null) return rows
  if (await isBackwards(local, plan, rows.contract, cursor.window)) {
    notice(
      `The window begins at ${cursor.window?.from}, after its end ${cursor.window?.to}: nothing can be in it. A watermark or start in the future?${plan.inCommands === null ? '' : ` stet watermark show ${plan.inCommands ?? 'pipeline.ts'}`}`,
    )
  }
  if (rejected === 0 || cursor.watermark === null) return rows
  // Of a run that fails by them nobody expects that anything moves.
  if (rejected <= (pipeline.maxRejects ?? 0)) {
    notice(
      `The watermark stays where it is, because ${countOf(rejected, 'row was', 'rows were')} rejected: the next run reads ${rejected === 1 ? 'it' : 'them'} again`,
    )
  }
  return { ...rows, cursor: { ...cursor, watermark: null } }
}

/** What the strategy and the truth make of rows that are there and of rows that are not. */
function rulesOf(pipeline: DefinedPipeline, frozen: boolean): CompareRules {
  const { write, incremental } = pipeline
  // A window of the cursor is no full extract: what it does not hold is not missing.
  const missing = incremental === undefined ? 'count' : 'keep'
  if (frozen) return { existing: 'frozen', newestWins: false, missing, frozen }
  return {
    existing: write.strategy === 'insert-once' ? 'frozen' : 'update',
    // Stale has no meaning where the table follows the load (G5).
    newestWins: write.strategy === 'upsert',
    missing: missingOf(pipeline),
    frozen,
  }
}

function allowedRemovals({ write }: DefinedPipeline, { allow }: RunOptions) {
  const ofPipeline: Removals = write.strategy === 'insert-once' ? {} : write
  return {
    empty: allow?.empty ?? ofPipeline.allowEmpty ?? false,
    deletes: allow?.deletes ?? ofPipeline.allowDeletes ?? false,
  }
}

function cutReject(reject: Reject): Reject {
  return reject.raw === undefined ? reject : { ...reject, raw: reject.raw.slice(0, RAW_LOGGED_CHARACTERS) }
}
