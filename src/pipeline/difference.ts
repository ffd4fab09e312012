import { type CompareRules, compare } from '../local/compare.ts'
import { parseColumnType } from '../model/column-type.ts'
import type { ColumnType, Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { NO_COUNTS, type RunRecord } from '../model/run.ts'
import { type Slice, WHOLE } from '../model/slice.ts'
import type { OpenSource, Reject } from '../model/source.ts'
import type { RowsInScope, Scope, TargetSession, TargetTable } from '../model/target.ts'
import type { Removals } from '../model/write.ts'
import type { Found } from './found.ts'
import { refuseDangerousDeletes, refuseRejects } from './guards.ts'
import { type ReadyRows, readyRows } from './rows.ts'
import { turnIntoText, withTextColumns } from './target-form.ts'
import type { DefinedPipeline, RunOptions } from './types.ts'
import { type CursorPlan, planCursor, windowAtSource } from './window.ts'

/** Above this share of the target's rows, pulling the whole table is cheaper than pushing keys (measured: 10-20 %). */
const WHOLE_TABLE_SHARE = 0.15

/** Below this many rows a table is pulled whole without a thought. */
const WHOLE_TABLE_ROWS = 10_000

/** Of the rejects the log keeps the first; a quarantine has them all, and whole. */
const REJECTS_LOGGED = 100

const RAW_LOGGED_CHARACTERS = 1_000

/** What is known of a run while it goes on; all of it goes into the record, also of one that fails. */
export type Ledger = { -readonly [Part in 'counts' | 'window' | 'files' | 'rejects']: RunRecord[Part] }

/** One attempt's surroundings. */
export interface Attempt {
  readonly pipeline: DefinedPipeline
  readonly options: RunOptions
  readonly slice: Slice | null
  readonly local: LocalConnection
  readonly session: TargetSession
  readonly signal: AbortSignal
  readonly notice: (message: string) => void
}

/** Lands, dedupes, takes the lock, and compares. The session is then in the transaction that `apply` goes on with. */
export async function findDifference(
  attempt: Attempt,
  learned: (partial: Partial<Ledger>) => void = () => undefined,
): Promise<Found> {
  const { pipeline, options, slice, local, session, signal, notice } = attempt
  const progress = options.onProgress ?? (() => undefined)
  const history = await session.history(pipeline.name, slice?.name ?? WHOLE)
  const cursor = await planCursor(pipeline, options, history.watermark, slice, signal)
  const table = await session.describe()
  await using source = await pipeline.source.open({
    local,
    cwd: options.cwd ?? process.cwd(),
    signal,
    progress,
    mayLookLater: true,
    slice: slice ?? undefined,
    keepRejects: pipeline.onReject === 'quarantine',
    cursor: cursor === null ? undefined : cursorRequest(local, cursor, typeInTable(pipeline, table)),
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
      cursor,
      slice: sliceToReplace(pipeline, slice),
    }),
  )
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
  const pulled = await pull(attempt, table, rows)
  progress({ phase: 'comparing', rows: rows.afterTransform })
  const { contract, scope, scopeKind } = pulled
  const comparison = await compare(local, rows.table, scope, contract, rulesOf(pipeline, history.frozen))
  refuseDangerousDeletes(comparison.difference, rows, {
    live: comparison.live,
    allowed: allowedRemovals(pipeline, options),
    table: table?.name ?? pipeline.table,
    isKeyless: contract.columns.every((column) => !column.key),
  })
  return { table, contract, rows, scope, scopeKind, comparison, files: source.files, history, cursor }
}

/** Does the work, and also when it fails tells which files there were: they may have been looked at meanwhile only. */
async function knowingFiles<T>(
  source: OpenSource,
  learned: (partial: Pick<Ledger, 'files'>) => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } finally {
    await source.looked?.().catch(() => undefined)
    learned({ files: source.files })
  }
}

/** What the strategy and the truth make of rows that are there and of rows that are not. */
function rulesOf({ write, incremental }: DefinedPipeline, frozen: boolean): CompareRules {
  // A window of the cursor is no full extract: what it does not hold is not missing.
  const missing = incremental === undefined ? 'count' : 'keep'
  if (frozen) return { existing: 'frozen', newestWins: false, missing, frozen }
  return {
    existing: write.strategy === 'insert-once' ? 'frozen' : 'update',
    // Stale has no meaning where the table follows the load (G5).
    newestWins: write.strategy === 'upsert',
    missing: missingOf(write),
    frozen,
  }
}

function missingOf(write: DefinedPipeline['write']): 'keep' | 'delete' | 'mark' {
  if (write.strategy === 'insert-once') return 'keep'
  if (write.strategy === 'replace-table') return 'delete'
  return write.missing ?? (write.strategy === 'upsert' ? 'keep' : 'delete')
}

/** A backfill's window of the cursor chooses what is read, and replaces nothing. */
export function sliceToReplace({ write }: DefinedPipeline, slice: Slice | null): Slice | null {
  return write.strategy === 'replace-partition' ? slice : null
}

function allowedRemovals({ write }: DefinedPipeline, { allow }: RunOptions) {
  const ofPipeline: Removals = write.strategy === 'insert-once' ? {} : write
  return {
    empty: allow?.empty ?? ofPipeline.allowEmpty ?? false,
    deletes: allow?.deletes ?? ofPipeline.allowDeletes ?? false,
  }
}

function typeInTable(pipeline: DefinedPipeline, table: TargetTable | null): ColumnType | undefined {
  const cursor = pipeline.incremental?.cursor ?? ''
  const declared = pipeline.source.columns?.[cursor]
  return (
    table?.columns.find(({ name }) => name === cursor)?.type ??
    (declared === undefined ? undefined : parseColumnType(declared))
  )
}

function cursorRequest(local: LocalConnection, plan: CursorPlan, expected: ColumnType | undefined) {
  return {
    column: plan.incremental.cursor,
    window: (type: ColumnType) => windowAtSource(local, plan, type, expected),
  }
}

/** The target's rows that the load can touch; a column that they hold wider than the local type goes over as text. */
async function pull(
  attempt: Attempt,
  table: TargetTable | null,
  rows: ReadyRows,
): Promise<{ scope: RowsInScope | null; scopeKind: Scope['kind']; contract: Contract }> {
  if (table === null) return { scope: null, scopeKind: 'table', contract: rows.contract }
  const { local, session } = attempt
  let contract = rows.contract
  for (;;) {
    const wanted = await scopeOf(attempt, table, rows, contract)
    const scope = await session.rowsInScope(contract, wanted)
    if (scope.unheld.length === 0) return { scope, scopeKind: wanted.kind, contract }
    const wide = contract.columns.filter((column) => scope.unheld.includes(column.id))
    await turnIntoText(local, rows.table, wide)
    contract = withTextColumns(contract, scope.unheld)
  }
}

async function scopeOf(
  { pipeline, local, slice }: Attempt,
  table: TargetTable,
  rows: ReadyRows,
  contract: Contract,
): Promise<Scope> {
  const replaced = sliceToReplace(pipeline, slice)
  if (replaced !== null) return { kind: 'slice', slice: replaced }
  const key = contract.columns.filter((column) => column.key)
  const count = rows.afterTransform - rows.rejected - rows.duplicate
  const whole = table.rowsEstimate <= WHOLE_TABLE_ROWS || count > table.rowsEstimate * WHOLE_TABLE_SHARE
  // What is missing from a full extract can only be found by looking at all.
  const looksForMissing =
    missingOf(pipeline.write) !== 'keep' ||
    (pipeline.truth === 'snapshot' && pipeline.incremental === undefined)
  if (looksForMissing || key.length === 0 || whole) return { kind: 'table' }
  const keys = local.newName('keys')
  await local.run(
    `create table ${keys} as select ${key.map((column) => column.id).join(', ')} from ${rows.table}`,
  )
  return { kind: 'keys', keys, count }
}

function cutReject(reject: Reject): Reject {
  return reject.raw === undefined ? reject : { ...reject, raw: reject.raw.slice(0, RAW_LOGGED_CHARACTERS) }
}
