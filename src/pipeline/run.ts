import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { StetError } from '../errors.ts'
import { compare, type Comparison } from '../local/compare.ts'
import { digestOf } from '../local/digest.ts'
import { interruptOnAbort, openLocalEngine } from '../local/engine.ts'
import { formatColumnType } from '../model/column-type.ts'
import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { NO_COUNTS, type RunCounts, type RunRecord, type RunStart, verdictOf } from '../model/run.ts'
import type { OpenSource } from '../model/source.ts'
import type { Applied, OpenTargetOptions, RowsInScope, TargetSession, TargetTable } from '../model/target.ts'
import { VERSION } from '../version.ts'
import { checkEquation, refuseDangerousDeletes, refuseRejects } from './guards.ts'
import { type ReadyRows, readyRows } from './rows.ts'
import { turnIntoText, withTextColumns } from './target-form.ts'
import type { DefinedPipeline, ReportedColumn, RunOptions, RunResult } from './types.ts'

const LOCK_TIMEOUT_MS = 30_000
const LEASE_TIMEOUT_MS = 15_000
/** Above this share of the target's rows, pulling the whole table is cheaper than pushing keys (measured: 10-20 %). */
const WHOLE_TABLE_SHARE = 0.15
/** Below this many rows a table is pulled whole without a thought. */
const WHOLE_TABLE_ROWS = 10_000

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
  const signal = options.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const notices = noticesOf(options)
  const start = startOf(pipeline, options)
  await using local = await openLocalEngine({ memoryLimit: options.memoryLimit, threads: options.threads })
  await local.run('set preserve_insertion_order = false')
  const stopListening = interruptOnAbort(local, signal)
  await using session = await pipeline.target.open(
    targetOptions(pipeline, options, local, signal, notices.add, 'run'),
  )
  await session.acquire(start)
  const ledger: { counts: RunCounts; files: RunRecord['files']; rejects: RunRecord['rejects'] } = {
    counts: NO_COUNTS,
    files: [],
    rejects: [],
  }
  const record = (status: RunRecord['status'], error: RunRecord['error'] = null): RunRecord => ({
    attemptId: start.attemptId,
    status,
    ...ledger,
    error,
  })
  try {
    const found = await findDifference(pipeline, options, local, session, signal, notices.add, (partial) =>
      Object.assign(ledger, partial),
    )
    // A plan that has been applied leaves nothing to do, and may be run again like any other.
    if (options.plan !== undefined && changesOf(found) > 0) {
      await refuseOtherOutcome(local, found, options.plan.digest)
    }
    options.onProgress?.({ phase: 'writing', rows: changesOf(found) })
    const applied = await session.apply(found.contract, found.comparison.difference)
    // Not into the ledger: what was applied and not committed has not happened, and a failed run must not tell of it.
    const counts = countsOf(found.rows, found.comparison, applied)
    checkEquation(counts)
    signal.throwIfAborted()
    await session.commit({ ...record('succeeded'), counts })
    return {
      ...labelsOf(pipeline),
      runId: start.runId,
      attemptId: start.attemptId,
      verdict: verdictOf('succeeded', counts),
      ...ledger,
      counts,
      columns: reported(found.contract),
      notices: notices.all,
      durationMs: Math.round(performance.now() - started),
    }
  } catch (cause) {
    // An abort does not make a commit of unknown outcome a known one.
    const isUnknown = cause instanceof StetError && cause.code === 'STET_OUTCOME_UNKNOWN'
    const error = signal.aborted && !isUnknown ? signal.reason : cause
    const code =
      error instanceof StetError ? error.code : signal.aborted ? 'STET_INTERRUPTED' : 'STET_INTERNAL'
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

/** Everything up to the point of writing; what `run` applies and `plan` shows. */
export interface Found {
  readonly table: TargetTable | null
  readonly contract: Contract
  readonly rows: ReadyRows
  readonly scope: RowsInScope | null
  readonly comparison: Comparison
  readonly files: RunRecord['files']
}

/** Lands, dedupes, takes the lock, and compares. The session is then in the transaction that `apply` goes on with. */
export async function findDifference(
  pipeline: DefinedPipeline,
  options: RunOptions,
  local: LocalConnection,
  session: TargetSession,
  signal: AbortSignal,
  notice: (message: string) => void,
  learned: (partial: Partial<Pick<RunRecord, 'counts' | 'files' | 'rejects'>>) => void = () => undefined,
): Promise<Found> {
  const progress = options.onProgress ?? (() => undefined)
  const table = await session.describe()
  await using source = await pipeline.source.open({
    local,
    cwd: options.cwd ?? process.cwd(),
    signal,
    progress,
    mayLookLater: true,
  })
  for (const message of source.notices ?? []) notice(message)
  const rows = await knowingFiles(source, learned, () =>
    readyRows({
      pipeline,
      local,
      session,
      source,
      table,
      signal,
      notice,
      prepare: (contract) => session.prepare(contract),
    }),
  )
  const { read, filtered, added, afterTransform, rejected, duplicate } = rows
  learned({
    counts: { ...NO_COUNTS, read, filtered, added, afterTransform, rejected, duplicate },
    rejects: rows.rejects,
  })
  refuseRejects(rows.rejected, rows.rejects, pipeline.maxRejects ?? 0)
  signal.throwIfAborted()
  progress({ phase: 'waiting' })
  await session.begin()
  progress({ phase: 'pulling' })
  const pulled = await pull(pipeline, local, session, table, rows)
  progress({ phase: 'comparing', rows: rows.afterTransform })
  const comparison = await compare(local, rows.table, pulled.scope, pulled.contract, pipeline.write.strategy)
  refuseDangerousDeletes(pipeline.write, comparison.difference, rows, table?.name ?? pipeline.table)
  return { table, contract: pulled.contract, rows, scope: pulled.scope, comparison, files: source.files }
}

/** Does the work, and also when it fails tells which files there were: they may have been looked at meanwhile only. */
async function knowingFiles<T>(
  source: OpenSource,
  learned: (partial: Pick<RunRecord, 'files'>) => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } finally {
    await source.looked?.().catch(() => undefined)
    learned({ files: source.files })
  }
}

/** The target's rows that the load can touch; a column that they hold wider than the local type goes over as text. */
async function pull(
  pipeline: DefinedPipeline,
  local: LocalConnection,
  session: TargetSession,
  table: TargetTable | null,
  rows: ReadyRows,
): Promise<{ scope: RowsInScope | null; contract: Contract }> {
  if (table === null) return { scope: null, contract: rows.contract }
  let contract = rows.contract
  for (;;) {
    const scope = await session.rowsInScope(contract, await scopeOf(pipeline, local, table, rows, contract))
    if (scope.unheld.length === 0) return { scope, contract }
    const wide = contract.columns.filter((column) => scope.unheld.includes(column.id))
    await turnIntoText(local, rows.table, wide)
    contract = withTextColumns(contract, scope.unheld)
  }
}

async function scopeOf(
  pipeline: DefinedPipeline,
  local: LocalConnection,
  table: TargetTable,
  rows: ReadyRows,
  contract: Contract,
): Promise<Parameters<TargetSession['rowsInScope']>[1]> {
  const key = contract.columns.filter((column) => column.key)
  const count = rows.afterTransform - rows.rejected - rows.duplicate
  const whole = table.rowsEstimate <= WHOLE_TABLE_ROWS || count > table.rowsEstimate * WHOLE_TABLE_SHARE
  if (pipeline.write.strategy === 'replace-table' || key.length === 0 || whole) return { kind: 'table' }
  const keys = local.newName('keys')
  await local.run(
    `create table ${keys} as select ${key.map((column) => column.id).join(', ')} from ${rows.table}`,
  )
  return { kind: 'keys', keys, count }
}

/** The terms of G6, from what the landing, the comparison and the target each counted. */
export function countsOf(rows: ReadyRows, comparison: Comparison, applied: Applied): RunCounts {
  const { read, filtered, added, afterTransform, rejected, duplicate } = rows
  return {
    read,
    filtered,
    added,
    afterTransform,
    rejected,
    duplicate,
    inserted: applied.inserted,
    updated: applied.updated,
    unchanged: comparison.unchanged + applied.unchanged,
    stale: comparison.stale + applied.stale,
    frozen: comparison.frozen + applied.frozen,
    deleted: applied.deleted,
  }
}

async function refuseOtherOutcome(local: LocalConnection, found: Found, expected: string): Promise<void> {
  const digest = await digestOf(local, found.comparison.difference.table, found.contract)
  if (digest === expected) return
  throw new StetError(
    'STET_PLAN_DIFFERS',
    'The outcome would not be the one of the saved plan; nothing was written',
    {
      hint: 'The source or the table has changed since. Make a new plan and look at it',
      details: { planned: expected, found: digest },
    },
  )
}

function changesOf({ comparison: { difference } }: Found): number {
  return difference.inserts + difference.updates + difference.deletes
}

function startOf(pipeline: DefinedPipeline, options: RunOptions): RunStart {
  const attemptId = randomUUID()
  return {
    attemptId,
    runId: options.runId ?? attemptId,
    pipeline: pipeline.name,
    source: pipeline.source.description,
    slice: 'all',
    strategy: pipeline.write.strategy,
    truth: 'source',
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
  }
}

/** Collects notices for the result and passes them on as they come. */
export function noticesOf(options: RunOptions): {
  readonly all: string[]
  readonly add: (message: string) => void
} {
  const all: string[] = []
  const add = (message: string) => {
    all.push(message)
    options.onNotice?.(message)
  }
  return { all, add }
}

export function labelsOf(
  pipeline: DefinedPipeline,
): Pick<RunResult, 'pipeline' | 'target' | 'table' | 'source' | 'strategy' | 'truth'> {
  return {
    pipeline: pipeline.name,
    target: pipeline.target.description,
    table: pipeline.table,
    source: pipeline.source.description,
    strategy: pipeline.write.strategy,
    truth: 'source',
  }
}

export function reported(contract: Contract): ReportedColumn[] {
  return contract.columns.map(({ name, type, origin }) => ({ name, type: formatColumnType(type), origin }))
}
