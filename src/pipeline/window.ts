import { StetError } from '../errors.ts'
import { quoteLiteral } from '../local/quote.ts'
import { readSql } from '../local/typing.ts'
import { formatColumnType, isNumberType, isTimeType } from '../model/column-type.ts'
import type { ColumnType, Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Seen } from '../model/remote.ts'
import type { CursorWindow, Slice, Slicing, Watermark } from '../model/slice.ts'
import { asText, laterOf, lessGrace, momentText, textOf } from './cursor-value.ts'
import { unreadableEnd } from './keep-window.ts'
import { instantOf, microsecondsOf } from './slices.ts'
import type { DefinedPipeline, Incremental, RunOptions } from './types.ts'
import { commandToSet, definitionOf, refuseOtherDefinition } from './watermark-definition.ts'

/** Defaults of `incremental.settle`. */
const SETTLE_OF_DATABASE = '1m'
const SETTLE_OF_FILES = '0s'

/** What a run reads by its cursor, before the type of the cursor is known. */
export interface CursorPlan {
  readonly incremental: Incremental
  readonly watermark: Watermark | null
  /** Of what the watermark stands for. */
  readonly definition: string
  /** Whether the run may move the watermark: not a rerun, not a backfill, not a window by hand (G4). */
  readonly moves: boolean
  /** The window asked for, where it does not follow from the watermark. */
  readonly asked: RunOptions['window']
  readonly slice: Slice | null
  /** Where to begin in place of the watermark, as a person has written it. */
  readonly from: string | undefined
  readonly full: boolean
  /** The clock of the source when the run began, ISO 8601 in UTC. */
  readonly clock: string
  readonly inCommands: RunOptions['inCommands']
  readonly settle: string
}

/** The windows of a backfill by the cursor. */
export function slicingOfCursor(incremental: Incremental): Slicing {
  return {
    by: incremental.cursor,
    size: incremental.size ?? 'day',
    zone: incremental.zone ?? 'UTC',
  }
}

/**
 * @throws {StetError} `STET_DEFINITION_CHANGED` when the watermark was made by another cursor, key, source or zone: it
 * says how far that one has read.
 */
export async function planCursor(
  pipeline: DefinedPipeline,
  options: RunOptions,
  watermark: Watermark | null,
  slice: Slice | null,
  signal: AbortSignal,
): Promise<CursorPlan | null> {
  const { incremental } = pipeline
  if (incremental === undefined) return null
  const definition = definitionOf(pipeline, incremental)
  const { window: asked, from, full = false, inCommands } = options
  const follows = asked === undefined && slice === null && from === undefined && !full
  if (follows && watermark !== null) refuseOtherDefinition(pipeline, watermark, definition, inCommands)
  const ownClock = pipeline.source.clock
  const now = (options.now ?? (() => new Date()))()
  return {
    incremental,
    watermark,
    definition,
    moves: asked === undefined && slice === null,
    asked,
    slice,
    from,
    full,
    inCommands,
    clock: ownClock === undefined ? now.toISOString() : await ownClock.call(pipeline.source, { signal }),
    settle: incremental.settle ?? (ownClock === undefined ? SETTLE_OF_FILES : SETTLE_OF_DATABASE),
  }
}

/** A window of the cursor whose ends are texts of the cursor's type. */
export interface ResolvedWindow {
  readonly window: CursorWindow
  /** What goes into the record. */
  readonly recorded: { readonly from: string | null; readonly to: string | null }
}

/**
 * The window in the cursor's own type. The upper bound is closed and comes from the source's clock when the run began, so
 * that a row dated 2099 neither is read now nor moves the watermark.
 */
export async function resolveWindow(
  local: LocalConnection,
  plan: CursorPlan,
  column: ContractColumn,
): Promise<ResolvedWindow> {
  const { incremental, watermark, asked, slice, full } = plan
  requireCursorType(column)
  const nulls = incremental.nulls ?? 'reject'
  const resolved = (from: string | null, to: string | null): ResolvedWindow => ({
    window: { cursor: column.name, from, to, nulls },
    recorded: { from, to },
  })
  const zone = incremental.zone ?? 'UTC'
  const asMoment = (text: string | null) => (text === null ? null : momentText(text, column.type, zone))
  if (asked !== undefined) return resolved(asMoment(asked.from), asMoment(asked.to))
  if (slice !== null) return resolved(null, null)
  const to = isTimeType(column.type) ? upperBound(plan, column.type) : null
  const start = asMoment(incremental.start ?? null)
  if (full) return resolved(start, to)
  if (plan.from !== undefined) return resolved(await beginningAsked(local, column, plan, plan.from), to)
  if (watermark === null) return resolved(start, to)
  const from = await lessGrace(local, column, watermark.value, incremental.grace)
  return resolved(from === null ? start : await laterOf(local, column, from, start), to)
}

/**
 * A beginning that a person has named, as a run would have recorded it.
 *
 * @throws {StetError} `STET_USAGE` when it is no value of the cursor, or is after the watermark.
 */
async function beginningAsked(
  local: LocalConnection,
  column: ContractColumn,
  { incremental, watermark, definition, inCommands }: CursorPlan,
  asked: string,
): Promise<string> {
  const text = momentText(asked, column.type, incremental.zone ?? 'UTC')
  const from = await asText(local, readSql(column, quoteLiteral(text)))
  if (from === null) throw unreadableEnd(column, asked)
  // One of another definition says nothing about this one.
  if (watermark === null || watermark.definition !== definition) return from
  if ((await laterOf(local, column, watermark.value, from)) === watermark.value) return from
  const command = commandToSet(from, inCommands)
  throw new StetError(
    'STET_USAGE',
    `--from ${from} is after the watermark ${watermark.value}: rows between the two would never be read`,
    { hint: `Leave --from out${command === null ? '' : `. To leave them out for good: ${command}`}` },
  )
}

/** The window for a source, whose column may have another type than the contract's. */
export async function windowAtSource(
  local: LocalConnection,
  plan: CursorPlan,
  type: ColumnType,
  expected: ColumnType | undefined,
): Promise<CursorWindow | null> {
  if (expected !== undefined && expected.kind !== type.kind) return null
  const name = plan.incremental.cursor
  const column: ContractColumn = {
    id: 'c0',
    name,
    type,
    origin: 'declared',
    key: false,
    newest: false,
    ignored: false,
    asText: false,
  }
  return (await resolveWindow(local, plan, column)).window
}

function requireCursorType(column: ContractColumn): void {
  if (isTimeType(column.type) || isNumberType(column.type)) return
  throw new StetError(
    'STET_CONFIG',
    `Column "${column.name}" cannot be a cursor: ${formatColumnType(column.type)} has no order that is the same everywhere`,
    {
      hint: `Use a time or a whole number, or declare its type: --columns '${column.name}:timestamptz,…' (columns: { ${column.name}: 'timestamptz' } in a pipeline)`,
    },
  )
}

/** The source's clock less the settle time, as text of the cursor's type. */
function upperBound({ clock, settle, incremental }: CursorPlan, type: ColumnType): string {
  const settled = instantOf(clock).subtract({ microseconds: Number(microsecondsOf(settle, 'settle')) })
  return textOf(settled, type, incremental.zone ?? 'UTC')
}

/** Whether a window ends before it begins. */
export async function isBackwards(
  local: LocalConnection,
  plan: CursorPlan,
  contract: Contract,
  window: { readonly from: string | null; readonly to: string | null } | null,
): Promise<boolean> {
  const column = contract.columns.find(({ name }) => name === plan.incremental.cursor)
  if (column === undefined || window === null || window.from === null || window.to === null) return false
  return window.from !== window.to && (await laterOf(local, column, window.from, window.to)) === window.from
}

/**
 * The watermark after the run: the greater of what it was and what was seen; null when it does not move (G4).
 *
 * @param from Where the window began.
 */
export async function nextWatermark(
  local: LocalConnection,
  plan: CursorPlan,
  column: ContractColumn,
  seen: Seen,
  from: string | null,
): Promise<string | null> {
  if (!plan.moves) return null
  const before = plan.watermark
  const isOther = before !== null && before.definition !== plan.definition
  // Whoever says where to go on accepts the definition with it, also where nothing has come since.
  if (seen.greatest === null) return isOther && plan.from !== undefined ? from : null
  // One of another definition says nothing about this one; a full run starts it anew.
  if (before === null || isOther) return seen.greatest
  const later = await laterOf(local, column, seen.greatest, before.value)
  return later === before.value ? null : later
}
