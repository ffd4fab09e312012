import { StetError } from '../../errors.ts'
import type { Contract } from '../../model/columns.ts'
import type { Difference } from '../../model/comparison.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Applied } from '../../model/target.ts'
import { groupDigits } from '../../model/words.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { TableIdentity } from './catalog.ts'
import { type Connection, queryCount } from './connection.ts'
import { requireNoneOutside } from './outside.ts'
import { pushRows } from './push.ts'
import * as removal from './removal-sql.ts'
import * as settle from './settle-sql.ts'
import { DIFFERENCE, type WriteContext } from './sql.ts'
import { addKeySql, createTableSql, fillTableSql, newTableTarget } from './table-sql.ts'
import {
  hasTriggerBefore,
  movedOut,
  sayRewritten,
  sayWhatTriggersChanged,
  suppressed,
  triggersOf,
} from './triggers.ts'
import * as sql from './write-sql.ts'

/** What comes of a difference of no rows. */
export const NOTHING: Applied = {
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  frozen: 0,
  deleted: 0,
  marked: 0,
  restored: 0,
}

/** Below so many rows the planner's guess about a new table does no harm. */
const ANALYZE_FROM_ROWS = 1_000

export interface ApplyOptions {
  readonly connection: Connection
  readonly local: LocalConnection
  readonly difference: Difference
  readonly notice: (message: string) => void
}

/** Makes the table and fills it in one go. Nobody else can see it before the commit, so nothing needs to be guarded. */
export async function applyToNewTable(
  { connection, local, difference }: ApplyOptions,
  identity: TableIdentity,
  contract: Contract,
  write: WriteStrategy,
): Promise<Applied> {
  await connection.query(createTableSql(identity, contract))
  const ids = contract.columns.map(({ id }) => id)
  const selected = contract.keep.contentHash === null ? ids : [...ids, 'content_hash']
  const inserted =
    difference.isInTarget === true
      ? await queryCount(connection, fillTableSql(identity, contract, difference.table))
      : await pushRows(connection, local, {
          select: `select ${selected.join(', ')} from ${difference.table} where op = 'insert'`,
          into: newTableTarget(identity, contract),
          freeze: true,
        })
  requireSent(inserted, difference.inserts)
  const key = addKeySql(identity, contract, write)
  if (key !== null) await connection.query(key)
  return { ...NOTHING, inserted }
}

/**
 * Writes the difference into an existing table: deletes, then marks, then changed rows, then new ones, so that a value under
 * a second unique constraint is free before it is taken. What was not written is looked at once more, under its lock, and
 * named.
 *
 * @param frozen Whether an existing key may not change (G12).
 */
export async function applyToTable(
  options: ApplyOptions,
  context: WriteContext,
  frozen: boolean,
): Promise<Applied> {
  const { connection, difference } = options
  const { write } = context
  const total = difference.inserts + difference.updates + difference.deletes + difference.marks
  if (total === 0) return NOTHING
  await sendDifference(options, context)
  if (context.enforcement === 'table lock') await connection.query(sql.lockTableSql(context))

  const removed = await remove(connection, context, difference)
  if (difference.inserts + difference.updates === 0) return { ...NOTHING, ...removed }
  if (context.enforcement === 'none') {
    return { ...NOTHING, ...removed, inserted: await append(options, context) }
  }
  await connection.query(sql.createWorkTablesSql(context))
  const rest =
    write.strategy === 'insert-once' || frozen
      ? await insertNew(connection, context)
      : await upsert(connection, context, options.notice)
  await sayWhatTriggersChanged(connection, context, options.notice)
  const [written] = await connection.query(settle.writtenCountSql(context))
  return {
    ...removed,
    inserted: Number(written?.inserted),
    updated: Number(written?.updated),
    restored: Number(written?.restored),
    ...rest,
  }
}

/** Brings the difference to the server, into a table of its own; one that was found there is there already. */
export async function sendDifference(
  { connection, local, difference }: ApplyOptions,
  context: WriteContext,
): Promise<void> {
  const { inserts, updates, deletes, marks } = difference
  const total = inserts + updates + deletes + marks
  if (difference.isInTarget === true) {
    if (total >= ANALYZE_FROM_ROWS) await connection.query(`analyze ${DIFFERENCE}`)
    return
  }
  await connection.query(sql.createDifferenceSql(context))
  const sent = await pushRows(connection, local, {
    select: `select row_number() over (), op, row_id, content_hash, ${context.contract.columns.map(({ id }) => id).join(', ')}
               from ${difference.table}`,
    into: sql.differenceTarget(context.contract),
  })
  requireSent(sent, total)
  if (total >= ANALYZE_FROM_ROWS) await connection.query(`analyze ${DIFFERENCE}`)
}

/** Takes away, or marks, what the load no longer has. A statement over no rows would still fire triggers. */
async function remove(
  connection: Connection,
  context: WriteContext,
  { deletes, marks }: Difference,
): Promise<Pick<Applied, 'deleted' | 'marked'>> {
  const { gone } = context.contract.keep
  if (marks > 0 && gone === null) {
    throw new StetError('STET_INTERNAL', `${marks} rows are to be marked, and no column is kept for the mark`)
  }
  const deleted = deletes === 0 ? 0 : await queryCount(connection, removal.deleteSql(context))
  if (deleted < deletes && hasTriggerBefore(context.table, 'onDelete')) {
    const left = await queryCount(connection, removal.leftSql(context, null))
    if (left > 0) throw suppressed(`${left} deletes`, 'onDelete', context)
  }
  if (marks === 0 || gone === null) return { deleted, marked: 0 }
  const [row] = await connection.query(removal.markSql(context, gone))
  const marked = Number(row?.rows)
  const unmarked = Number(row?.unmarked)
  if (unmarked > 0) throw suppressed(`${unmarked} marks`, 'onUpdate', context)
  if (marked < marks && hasTriggerBefore(context.table, 'onUpdate')) {
    const left = await queryCount(connection, removal.leftSql(context, gone))
    if (left > 0) throw suppressed(`${left} marks`, 'onUpdate', context)
  }
  return { deleted, marked }
}

type NotWritten = Pick<Applied, 'unchanged' | 'stale' | 'frozen'>

async function upsert(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<NotWritten> {
  await lookUpAndUpdate(connection, context, 1)
  await connection.query(sql.insertSql(context))
  if ((await queryCount(connection, settle.unsettledSql(context))) > 0) {
    // Keys that another writer has put there between the look and the insert.
    await lookUpAndUpdate(connection, context, 2)
    const lost = await queryCount(connection, settle.unsettledSql(context))
    if (lost > 0) throw notInserted(lost, context)
  }
  return { ...(await classify(connection, context, notice)), frozen: 0 }
}

/** Locks the rows that are there and writes those that differ. A statement over no rows would still fire triggers. */
async function lookUpAndUpdate(connection: Connection, context: WriteContext, round: 1 | 2): Promise<void> {
  const { columns, keep } = context.contract
  const changeable = keep.gone !== null || columns.some((column) => !column.key && !column.ignored)
  if ((await lookUp(connection, context, round)) > 0 && changeable) {
    await connection.query(sql.updateSql(context, round))
  }
}

/** Locks the rows that are there; how many there are. */
async function lookUp(connection: Connection, context: WriteContext, round: 1 | 2): Promise<number> {
  await connection.query(sql.lookUpSql(context, round))
  const [found] = await connection.query(settle.existingCountSql(round))
  const rows = Number(found?.rows)
  if (rows === 0) return 0
  if (found?.rows !== found?.keys) {
    const [doubled] = await connection.query(settle.doubledSql(context))
    throw new StetError(
      'STET_KEY_CONSTRAINT',
      `${context.table.identity.qualified} has the key ${doubled?.key} more than once (G1)`,
      {
        hint: 'Remove the rows that are too many; no unique constraint of a partitioned table can forbid them',
      },
    )
  }
  await requireNoneOutside(connection, context, round)
  return rows
}

/** Inserts new keys; a key that is there stays as it is. */
async function insertNew(connection: Connection, context: WriteContext): Promise<NotWritten> {
  // Where an index says which keys are there, the insert itself finds out; else, or when it matters where, a look comes first.
  const looks = context.enforcement === 'table lock' || context.write.strategy === 'replace-partition'
  const before = looks ? await lookUp(connection, context, 1) : 0
  await connection.query(sql.insertSql(context))
  const left = await queryCount(connection, settle.unsettledSql(context))
  if (left === 0) return { unchanged: 0, stale: 0, frozen: before }
  const meanwhile = await lookUp(connection, context, 2)
  const lost = await queryCount(connection, settle.unsettledSql(context))
  if (lost > 0) throw notInserted(lost, context)
  return { unchanged: 0, stale: 0, frozen: before + meanwhile }
}

/** Names every row that was not written: equal, older than the table's, or kept from being written by a trigger. */
async function classify(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<Pick<NotWritten, 'unchanged' | 'stale'>> {
  const [row] = await connection.query(settle.classifySql(context))
  const refused = Number(row?.refused)
  const probe = row?.refused_row ?? null
  if (refused > 0 && probe !== null) {
    // Either a BEFORE INSERT trigger made the row equal to what is there, or a BEFORE UPDATE trigger said no. Only trying
    // can tell, and what is tried is undone.
    await connection.query('savepoint stet_probe')
    const changed = await connection.query(settle.probeSql(context, probe))
    await connection.query('rollback to savepoint stet_probe')
    if (changed.length === 0) throw suppressed(`${refused} changed rows`, 'onUpdate', context)
    notice(
      `${triggersOf(context, 'onInsert')} on ${context.table.identity.qualified} makes ${refused} changed rows equal to those in the table, so they were left alone (G2)`,
    )
  }
  return { unchanged: Number(row?.unchanged) + refused, stale: Number(row?.stale) }
}

/** Rows that are neither written nor there: a trigger returned NULL for them, or another writer removed them just now. */
function notInserted(rows: number, context: WriteContext): StetError {
  if (context.table.rowTriggers.some(({ onInsert, before }) => onInsert && before)) {
    return suppressed(`${groupDigits(rows)} new rows`, 'onInsert', context)
  }
  return new StetError(
    'STET_SERIALIZATION',
    `Another writer put and removed ${groupDigits(rows)} rows of ${context.table.identity.qualified} while they were written`,
    { hint: 'Nothing was written; run again' },
  )
}

/** Rows without a key cannot be looked up, only counted, and held all together against what the database says it has. */
async function append(
  { connection, difference, notice }: ApplyOptions,
  context: WriteContext,
): Promise<number> {
  const [row] = await connection.query(sql.appendSql(context))
  const inserted = Number(row?.rows)
  const wanted = difference.inserts
  if (inserted !== wanted) throw suppressed(`${wanted - inserted} new rows`, 'onInsert', context)
  const outside = Number(row?.outside ?? 0)
  if (outside > 0) throw movedOut(outside, context.slice?.name ?? '', context)
  const rewritten = context.contract.columns.filter(({ id }) => Number(row?.[id] ?? 0) > 0)
  sayRewritten(context, rewritten, notice)
  return inserted
}

function requireSent(sent: number, wanted: number): void {
  if (sent === wanted) return
  throw new StetError('STET_INTERNAL', `PostgreSQL took ${sent} rows of a difference of ${wanted}`)
}
