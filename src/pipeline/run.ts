import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { isStetError, StetError } from '../errors.ts'
import { interruptOnAbort, openLocalEngine } from '../local/engine.ts'
import type { LocalConnection } from '../model/local.ts'
import { NO_COUNTS, type RunRecord, type RunStart, verdictOf } from '../model/run.ts'
import { type Slice, WHOLE } from '../model/slice.ts'
import type { CommitExtras, OpenTargetOptions } from '../model/target.ts'
import { countOf, groupDigits } from '../model/words.ts'
import { VERSION } from '../version.ts'
import { countsOf, labelsOf, noticesOf, reported, whereaboutsOf } from './account.ts'
import { findDifference, type Ledger } from './difference.ts'
import type { Found } from './found.ts'
import { checkEquation } from './guards.ts'
import { rowsToQuarantine } from './quarantine.ts'
import { sliceOfRun } from './selection.ts'
import { signalOf } from './signal.ts'
import type { DefinedPipeline, Plan, RunOptions, RunResult } from './types.ts'
import { sliceToReplace } from './workplace.ts'

const LOCK_TIMEOUT_MS = 30_000
const LEASE_TIMEOUT_MS = 15_000
/**
 * Runs the pipeline once: lands the source, keeps the newest row of each key, compares with the target, and applies the
 * difference in one commit with the record of the run. Running it again over the same source changes nothing (G1, G2).
 *
 * @throws {StetError} with a code and an exit status; the table is then as it was, unless the code is `STET_OUTCOME_UNKNOWN`.
 * @throws `signal.reason`, unchanged, when aborted. The table is then as it was.
 * @example
 * const { verdict, counts } = await run(orders, { runId: 'scheduled__2026-08-07' })
 */
export async function run(pipeline: DefinedPipeline, options: RunOptions = {}): Promise<RunResult> {
  const started = performance.now()
  const signal = signalOf(options)
  signal.throwIfAborted()
  const notices = noticesOf(options)
  const slice = sliceOfRun(pipeline, options)
  refuseUnprotected(pipeline, options)
  const start = startOf(pipeline, options, slice)
  await using local = await openLocalEngine({ memoryLimit: options.memoryLimit, threads: options.threads })
  await local.run('set preserve_insertion_order = false')
  const stopListening = interruptOnAbort(local, signal)
  options.onProgress?.({ phase: 'opening' })
  await using session = await pipeline.target.open(
    targetOptions(pipeline, options, local, signal, notices.add, 'run'),
  )
  await session.acquire(start)
  const ledger: Ledger = { counts: NO_COUNTS, window: null, files: [], rejects: [] }
  const record = (status: RunRecord['status'], error: RunRecord['error'] = null): RunRecord => ({
    attemptId: start.attemptId,
    status,
    ...ledger,
    error,
  })
  try {
    const found = await findDifference(
      { pipeline, options, slice, local, session, signal, notice: notices.add },
      (partial) => Object.assign(ledger, partial),
    )
    // A plan that has been applied leaves nothing to do, and may be run again like any other.
    if (options.plan !== undefined && changesOf(found) > 0) {
      await refuseOtherOutcome(found, options.plan)
    }
    options.onProgress?.({ phase: 'writing', rows: changesOf(found) })
    const { contract, rows, comparison } = found
    const drift = await found.drift()
    const applied = await session.apply(contract, comparison.difference, {
      slice: sliceToReplace(pipeline, slice),
      frozen: found.history.frozen,
      rows: rows.table,
      live: comparison.live,
    })
    // Not into the ledger: what was applied and not committed has not happened, and a failed run must not tell of it.
    const counts = countsOf(rows, comparison, applied)
    checkEquation(counts)
    signal.throwIfAborted()
    const extras = extrasOf(pipeline, found, start)
    await session.commit({ ...record('succeeded'), counts }, extras)
    if (extras.quarantine.length > 0) {
      notices.add(
        `${countOf(rows.rejected, 'rejected row is', 'rejected rows are')} kept in stet.quarantine of the target`,
      )
    }
    return {
      ...labelsOf(pipeline),
      runId: start.runId,
      attemptId: start.attemptId,
      verdict: verdictOf('succeeded', counts),
      ...whereaboutsOf(found, slice),
      drift,
      ...ledger,
      counts,
      columns: reported(contract),
      notices: notices.all,
      durationMs: Math.round(performance.now() - started),
    }
  } catch (cause) {
    // An abort does not make a commit of unknown outcome a known one.
    const isUnknown = isStetError(cause) && cause.code === 'STET_OUTCOME_UNKNOWN'
    const error = signal.aborted && !isUnknown ? signal.reason : cause
    const code = isStetError(error) ? error.code : signal.aborted ? 'STET_INTERRUPTED' : 'STET_INTERNAL'
    const message = error instanceof Error ? error.message : String(error)
    // What failed first is what the caller has to hear; a log that cannot be written is the lesser news.
    await session
      .fail(record(signal.aborted ? 'interrupted' : 'failed', { code, message }))
      .catch((failure: unknown) => notices.add(`The failed run could not be logged: ${String(failure)}`))
    throw error
  } finally {
    stopListening()
  }
}

function refuseUnprotected(pipeline: DefinedPipeline, options: RunOptions): void {
  const isWhole = options.full === true || options.window?.from === null
  if (pipeline.protect !== true || pipeline.incremental === undefined || !isWhole) return
  throw new StetError(
    'STET_PROTECTED',
    `Pipeline "${pipeline.name}" is protected: it is not read from the beginning again`,
    {
      hint: `Read a part: stet backfill ${options.inCommands ?? 'pipeline.ts'} --from … --to …, or take protect out of the pipeline`,
    },
  )
}

/** What goes into the record in the commit of the rows. */
function extrasOf(
  pipeline: DefinedPipeline,
  { rows, history, cursor }: Found,
  start: RunStart,
): CommitExtras {
  const value = rows.cursor?.watermark ?? null
  return {
    watermark:
      value === null || cursor === null
        ? null
        : {
            pipeline: pipeline.name,
            cursor: cursor.incremental.cursor,
            value,
            definition: cursor.definition,
            setBy: start.attemptId,
            readAt: history.watermark?.setAt ?? null,
          },
    quarantine: pipeline.onReject === 'quarantine' ? rowsToQuarantine(rows.rejects) : [],
  }
}

async function refuseOtherOutcome(found: Found, plan: Plan): Promise<void> {
  const { difference } = found.comparison
  const digest = await found.digest()
  if (digest === plan.digest) return
  const { inserted, updated, deleted, marked } = plan.counts
  const describe = (inserts: number, updates: number, removed: number) =>
    `${groupDigits(inserts)} inserted, ${groupDigits(updates)} updated, ${groupDigits(removed)} deleted or marked`
  const planned = describe(inserted, updated, deleted + marked)
  const now = describe(difference.inserts, difference.updates, difference.deletes + difference.marks)
  throw new StetError(
    'STET_PLAN_DIFFERS',
    `The outcome would not be the one of the saved plan; nothing was written. Planned: ${planned}. Now: ${planned === now ? 'as many, of other rows or values' : now}`,
    {
      hint: 'The source or the table has changed since. Make a new plan and look at it',
      details: { planned: plan.digest, found: digest },
    },
  )
}

function changesOf({ comparison: { difference } }: Found): number {
  return difference.inserts + difference.updates + difference.deletes + difference.marks
}

function startOf(pipeline: DefinedPipeline, options: RunOptions, slice: Slice | null): RunStart {
  const attemptId = randomUUID()
  return {
    attemptId,
    runId: options.runId ?? attemptId,
    pipeline: pipeline.name,
    source: pipeline.source.description,
    slice: slice?.name ?? WHOLE,
    strategy: pipeline.write.strategy,
    truth: pipeline.truth ?? 'source',
    logicalTime: options.at ?? null,
    code: options.code ?? null,
    rerunOf: options.rerunOf ?? null,
    holder: `${hostname()}:${process.pid}`,
    stetVersion: VERSION,
  }
}

/** How `run` and `plan` open the target. */
export function targetOptions(
  pipeline: DefinedPipeline,
  options: RunOptions,
  local: LocalConnection,
  signal: AbortSignal,
  notice: (message: string) => void,
  mode: OpenTargetOptions['mode'],
): OpenTargetOptions {
  return {
    table: pipeline.table,
    write: pipeline.write,
    local,
    mode,
    lockTimeoutMs: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
    leaseTimeoutMs: options.leaseTimeoutMs ?? LEASE_TIMEOUT_MS,
    signal,
    notice,
    noticeTurn: (message) => {
      if (options.waitsForCaller?.() !== true) notice(message)
    },
  }
}
