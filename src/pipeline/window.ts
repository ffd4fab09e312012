import { createHash } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import { StetError } from '../errors.ts'
import { quoteLiteral } from '../local/quote.ts'
import { inSliceSql } from '../local/slice.ts'
import { orderSql, readSql } from '../local/typing.ts'
import { formatColumnType, isNumberType, isTimeType } from '../model/column-type.ts'
import type { ColumnType, Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Seen } from '../model/remote.ts'
import type { CursorWindow, Slice, Slicing, Watermark } from '../model/slice.ts'
import { instantOf, microsecondsOf } from './slices.ts'
import type { DefinedPipeline, Incremental, RunOptions } from './types.ts'

/** Defaults of {@link Incremental}. Late commits are common and re-reading is free of writes, so the grace is not nothing. */
const GRACE = '1h'
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
  readonly full: boolean
  /** The clock of the source when the run began, ISO 8601 in UTC. */
  readonly clock: string
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
  const { window: asked, full = false } = options
  const follows = asked === undefined && slice === null && !full
  if (follows && watermark !== null) refuseOtherDefinition(pipeline, watermark, definition)
  const ownClock = pipeline.source.clock
  const now = (options.now ?? (() => new Date()))()
  return {
    incremental,
    watermark,
    definition,
    moves: asked === undefined && slice === null,
    asked,
    slice,
    full,
    clock: ownClock === undefined ? now.toISOString() : await ownClock.call(pipeline.source, { signal }),
    settle: incremental.settle ?? (ownClock === undefined ? SETTLE_OF_FILES : SETTLE_OF_DATABASE),
  }
}

/** A watermark means nothing for another cursor, another key, another source or another zone. */
export function definitionOf(pipeline: DefinedPipeline, incremental: Incremental): string {
  const parts = {
    cursor: incremental.cursor,
    key: pipeline.write.key ?? [],
    source: `${pipeline.source.kind} ${pipeline.source.identity ?? withoutPlace(pipeline.source.description)}`,
    zone: incremental.zone ?? 'UTC',
  }
  // Readable, so that the message can say which of them has changed; the source may be long, so by its hash.
  const source = createHash('sha256').update(parts.source).digest('hex').slice(0, 16)
  return JSON.stringify({ ...parts, source })
}

/** `orders-2026-08-07.csv` and the file of the next day are one source, and so is the same file in another checkout. */
function withoutPlace(description: string): string {
  return description.replace(/[^\s,]*[\\/]/g, '').replace(/\d+/g, '#')
}

function refuseOtherDefinition(pipeline: DefinedPipeline, watermark: Watermark, definition: string): void {
  if (watermark.definition === definition) return
  const before = partsOf(watermark.definition)
  const after = JSON.parse(definition) as Record<string, unknown>
  const changed = Object.keys(after).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  )
  throw new StetError(
    'STET_DEFINITION_CHANGED',
    `Pipeline "${pipeline.name}" has another ${changed.join(' and ')} than when its watermark ${watermark.value} was set (G4); nothing was read`,
    {
      hint:
        `Read all of it again: --full. Go on from where it is: stet watermark set '${watermark.value}' pipeline.ts. ` +
        'Or give the pipeline another name',
      details: { changed, before, after, watermark: watermark.value },
    },
  )
}

/** A definition that somebody wrote by hand is another one in every part. */
function partsOf(definition: string): Record<string, unknown> {
  try {
    const parts: unknown = JSON.parse(definition)
    return typeof parts === 'object' && parts !== null ? (parts as Record<string, unknown>) : {}
  } catch {
    return {}
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
  // As if there were no watermark.
  if (full || watermark === null) return resolved(start, to)
  const from = await lessGrace(local, column, watermark.value, incremental.grace)
  return resolved(from === null ? start : await laterOf(local, column, from, start), to)
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

/**
 * An end as a person writes it, in the form of the cursor's type: a bare date is its first moment, and a moment without an
 * offset is one of the pipeline's zone. What is neither stays as it is, and is refused where it is read.
 */
export function momentText(text: string, type: ColumnType, zone: string): string {
  const match = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?$/.exec(text.trim())
  if (match === null || (type.kind !== 'timestamptz' && type.kind !== 'timestamp')) return text
  try {
    const wall = Temporal.PlainDateTime.from(`${match[1]}T${match[2] ?? '00:00'}`)
    return textOf(wall.toZonedDateTime(zone).toInstant(), type, zone)
  } catch {
    return text
  }
}

/** A moment in the form in which a column of this type holds it. */
function textOf(moment: Temporal.Instant, type: ColumnType, zone: string): string {
  if (type.kind === 'timestamptz') {
    return moment.toString({ smallestUnit: 'microsecond' }).replace('T', ' ').replace('Z', '+00')
  }
  const wall = moment.toZonedDateTimeISO(zone).toPlainDateTime()
  return type.kind === 'date'
    ? wall.toPlainDate().toString()
    : wall.toString({ smallestUnit: 'microsecond' }).replace('T', ' ')
}

/** The value less the grace, as text of the cursor's type; null where there is nothing before it, or it is no number or moment. */
export async function lessGrace(
  local: LocalConnection,
  column: ContractColumn,
  value: string,
  grace: string | number | undefined,
): Promise<string | null> {
  if (!isTimeType(column.type)) {
    const less = typeof grace === 'string' ? Number(grace) : (grace ?? 0)
    if (!Number.isSafeInteger(less) || less < 0) {
      throw new StetError(
        'STET_CONFIG',
        `grace is ${JSON.stringify(grace)}; for a cursor of numbers it is a whole number`,
      )
    }
    return readable(local, column, decimalLess(value, less))
  }
  if (typeof grace === 'number') {
    throw new StetError('STET_CONFIG', `grace is ${grace}; for a cursor of time it is a length such as '2h'`)
  }
  const micros = microsecondsOf(grace ?? GRACE, 'grace')
  const kind = column.type.kind
  const moment = `try_cast(${quoteLiteral(value)} as ${kind === 'date' ? 'timestamp' : kind}) - to_microseconds(${micros})`
  // A part of a day is a whole day for a date: the grace may only become longer.
  return asText(local, kind === 'date' ? `(${moment})::date` : moment)
}

/** A number less a whole number, in every digit; null for what is no number (`NaN`). */
function decimalLess(value: string, less: number): string | null {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value)
  if (match === null) return null
  const fraction = match[3] ?? ''
  const scaled = BigInt(`${match[1]}${match[2]}${fraction}`) - BigInt(less) * 10n ** BigInt(fraction.length)
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(fraction.length + 1, '0')
  const whole = digits.slice(0, digits.length - fraction.length)
  return `${scaled < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${digits.slice(-fraction.length)}`}`
}

/** The text, where the column can hold it; else null: before the first value there can be is the beginning. */
async function readable(
  local: LocalConnection,
  column: ContractColumn,
  text: string | null,
): Promise<string | null> {
  if (text === null) return null
  const [row] = await local.rows(`select (${readSql(column, quoteLiteral(text))}) is not null as readable`)
  return row?.readable === true ? text : null
}

/** The later of two cursor values; the first, where either cannot be read. */
export async function laterOf(
  local: LocalConnection,
  column: ContractColumn,
  a: string,
  b: string | null,
): Promise<string> {
  if (b === null) return a
  const order = (text: string) => orderSql(column, readSql(column, quoteLiteral(text)))
  const [row] = await local.rows(`select coalesce(${order(a)} >= ${order(b)}, true) as later`)
  return row?.later === true ? a : b
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

async function asText(local: LocalConnection, expression: string): Promise<string | null> {
  const [row] = await local.rows(`select (${expression})::varchar as text`)
  return typeof row?.text === 'string' ? row.text : null
}

/** Takes out of the landed table what is outside the window or the backfill's slice, and says what is left. */
export async function keepWindow(
  local: LocalConnection,
  table: string,
  column: ContractColumn,
  window: CursorWindow,
  slice: Slice | null,
): Promise<Seen> {
  const order = orderSql(column, column.id)
  const end = (text: string) => orderSql(column, readSql(column, quoteLiteral(text)))
  const within = [
    window.from === null ? null : `${order} >= ${await checkedEnd(local, column, window.from, end)}`,
    window.to === null ? null : `${order} <= ${await checkedEnd(local, column, window.to, end)}`,
    slice === null ? null : inSliceSql(column, column.id, slice.bounds),
  ].filter((condition) => condition !== null)
  const isWithin = within.length === 0 ? 'true' : `coalesce(${within.join(' and ')}, false)`
  // A backfill of a window takes no rows without a value: they belong to none.
  const nullsStay = window.nulls === 'include' && slice === null
  const isOutside = `not (${column.id} is not null and ${isWithin}) and not (${column.id} is null and ${nullsStay})`
  const later =
    window.to === null
      ? 0
      : await local.count(`select count(*) from ${table} where coalesce(${order} > ${end(window.to)}, false)`)
  const outside = await local.count(`select count(*) from ${table} where ${isOutside}`)
  if (outside > 0) await local.run(`delete from ${table} where ${isOutside}`)
  const withoutCursor = await local.count(`select count(*) from ${table} where ${column.id} is null`)
  return { outside, later, withoutCursor, greatest: await greatestOf(local, table, column) }
}

async function checkedEnd(
  local: LocalConnection,
  column: ContractColumn,
  text: string,
  end: (text: string) => string,
): Promise<string> {
  const [row] = await local.rows(`select (${end(text)}) is not null as readable`)
  if (row?.readable === true) return end(text)
  throw unreadableEnd(column, text)
}

export function unreadableEnd(column: ContractColumn, text: string): StetError {
  return new StetError(
    'STET_USAGE',
    `Cannot read ${JSON.stringify(text)} as a value of the cursor "${column.name}" (${formatColumnType(column.type)})`,
    { hint: 'Write it as the source does, for example 2026-08-07 or 2026-08-07 12:00:00+00' },
  )
}

async function greatestOf(
  local: LocalConnection,
  table: string,
  column: ContractColumn,
): Promise<string | null> {
  const order = orderSql(column, column.id)
  const [row] = await local.rows(`
    select ${column.id}::varchar as value
      from ${table}
     where ${column.id} is not null
       -- What is no number or no moment would be the greatest for ever.
       and lower(${column.id}::varchar) not in ('nan', 'infinity', '-infinity')
     order by ${order} desc
     limit 1`)
  return row === undefined || row.value === null ? null : String(row.value)
}

/** The watermark after the run: the greater of what it was and what was seen; null when it does not move (G4). */
export async function nextWatermark(
  local: LocalConnection,
  plan: CursorPlan,
  column: ContractColumn,
  seen: Seen,
): Promise<string | null> {
  if (!plan.moves || seen.greatest === null) return null
  const before = plan.watermark
  // One of another definition says nothing about this one; a full run starts it anew.
  if (before === null || before.definition !== plan.definition) return seen.greatest
  const later = await laterOf(local, column, seen.greatest, before.value)
  return later === before.value ? null : later
}
