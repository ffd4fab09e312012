import { StetError } from '../../errors.ts'
import type { Contract } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Applied, Difference } from '../../model/target.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { TableIdentity } from './catalog.ts'
import type { Connection } from './connection.ts'
import { pushRows } from './push.ts'
import type { WriteContext } from './sql.ts'
import * as sql from './sql.ts'

const NOTHING: Applied = { inserted: 0, updated: 0, unchanged: 0, stale: 0, frozen: 0, deleted: 0 }

/** Below so many rows the planner's guess about a new table does no harm. */
const ANALYZE_FROM_ROWS = 1_000
/** So many written rows are read again to see whether a trigger has changed them. */
const SAMPLE_ROWS = 100

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
  await connection.query(sql.createTableSql(identity, contract))
  const ids = contract.columns.map(({ id }) => id)
  const selected = contract.keep.contentHash === null ? ids : [...ids, 'content_hash']
  const inserted = await pushRows(connection, local, {
    select: `select ${selected.join(', ')} from ${difference.table} where op = 'insert'`,
    into: sql.newTableTarget(identity, contract),
    freeze: true,
  })
  requireSent(inserted, difference.inserts)
  const key = sql.addKeySql(identity, contract, write)
  if (key !== null) await connection.query(key)
  return { ...NOTHING, inserted }
}

/**
 * Writes the difference into an existing table: deletes, then changed rows, then new ones, so that a value under a second
 * unique constraint is free before it is taken. What was not written is looked at once more, under its lock, and named.
 */
export async function applyToTable(options: ApplyOptions, context: WriteContext): Promise<Applied> {
  const { connection, local, difference } = options
  const { contract, write } = context
  const total = difference.inserts + difference.updates + difference.deletes
  if (total === 0) return NOTHING
  await connection.query(sql.createDifferenceSql(context))
  const sent = await pushRows(connection, local, {
    select: `select row_number() over (), op, row_id, content_hash, ${contract.columns.map(({ id }) => id).join(', ')}
               from ${difference.table}`,
    into: sql.differenceTarget(contract),
  })
  requireSent(sent, total)
  if (total >= ANALYZE_FROM_ROWS) await connection.query(`analyze ${sql.DIFFERENCE}`)
  if (context.enforcement === 'table lock') await connection.query(sql.lockTableSql(context))

  const deleted = difference.deletes === 0 ? 0 : await countOf(connection, sql.deleteSql(context))
  if (difference.inserts + difference.updates === 0) return { ...NOTHING, deleted }
  if (context.enforcement === 'none') {
    const inserted = await countOf(connection, sql.appendSql(context))
    requireAllInserted(inserted, difference.inserts, context)
    return { ...NOTHING, deleted, inserted }
  }
  await connection.query(sql.createWorkTablesSql(context))
  const rest =
    write.strategy === 'insert-once'
      ? await insertNew(connection, context)
      : await upsert(connection, context, options.notice)
  await sayWhatTriggersChanged(connection, context, options.notice)
  const [written] = await connection.query(sql.writtenCountSql())
  return {
    deleted,
    inserted: Number(written?.inserted),
    updated: Number(written?.updated),
    ...rest,
  }
}

type NotWritten = Pick<Applied, 'unchanged' | 'stale' | 'frozen'>

async function upsert(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<NotWritten> {
  await lookUp(connection, context, 1)
  await connection.query(sql.insertSql(context))
  if ((await countOf(connection, sql.unsettledSql(context))) > 0) {
    // Keys that another writer has put there between the look and the insert.
    await lookUp(connection, context, 2)
    const lost = await countOf(connection, sql.unsettledSql(context))
    if (lost > 0) throw notInserted(lost, context)
  }
  return { ...(await classify(connection, context, notice)), frozen: 0 }
}

/** Locks the rows that are there and writes those that differ. A statement over no rows would still fire triggers. */
async function lookUp(connection: Connection, context: WriteContext, round: 1 | 2): Promise<void> {
  await connection.query(sql.lookUpSql(context, round))
  const [found] = await connection.query(sql.existingCountSql(round))
  const rows = Number(found?.rows)
  if (rows === 0) return
  if (found?.rows !== found?.keys) {
    const [doubled] = await connection.query(sql.doubledSql(context))
    throw new StetError(
      'STET_KEY_CONSTRAINT',
      `${context.table.identity.qualified} has the key ${doubled?.key} more than once (G1)`,
      {
        hint: 'Remove the rows that are too many; no unique constraint of a partitioned table can forbid them',
      },
    )
  }
  const changeable = context.contract.columns.some((column) => !column.key && !column.ignored)
  if (changeable) await connection.query(sql.updateSql(context, round))
}

/** Inserts new keys; a key that is there meanwhile stays as it is. */
async function insertNew(connection: Connection, context: WriteContext): Promise<NotWritten> {
  await connection.query(sql.insertSql(context))
  const left = await countOf(connection, sql.unsettledSql(context))
  if (left === 0) return { unchanged: 0, stale: 0, frozen: 0 }
  await connection.query(sql.lookUpSql(context, 2))
  const lost = await countOf(connection, sql.unsettledSql(context))
  if (lost > 0) throw notInserted(lost, context)
  const [frozen] = await connection.query(sql.existingCountSql(2))
  return { unchanged: 0, stale: 0, frozen: Number(frozen?.rows) }
}

/** Names every row that was not written: equal, older than the table's, or kept from being written by a trigger. */
async function classify(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<Pick<NotWritten, 'unchanged' | 'stale'>> {
  const [row] = await connection.query(sql.classifySql(context))
  const refused = Number(row?.refused)
  const probe = row?.refused_row ?? null
  if (refused > 0 && probe !== null) {
    // Either a BEFORE INSERT trigger made the row equal to what is there, or a BEFORE UPDATE trigger said no. Only trying
    // can tell, and what is tried is undone.
    await connection.query('savepoint stet_probe')
    const changed = await connection.query(sql.probeSql(context, probe))
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
    return suppressed(`${rows} new rows`, 'onInsert', context)
  }
  return new StetError(
    'STET_SERIALIZATION',
    `Another writer put and removed ${rows} rows of ${context.table.identity.qualified} while they were written`,
    { hint: 'Nothing was written; run again' },
  )
}

function suppressed(what: string, event: 'onInsert' | 'onUpdate', context: WriteContext): StetError {
  const triggers = triggersOf(context, event)
  return new StetError(
    'STET_TRIGGER',
    `${what} of ${context.table.identity.qualified} were suppressed by a trigger (${triggers})`,
    {
      hint: `Nothing was written. Change ${triggers} so that it returns the row, or leave these rows out of the load`,
    },
  )
}

function triggersOf({ table }: WriteContext, event: 'onInsert' | 'onUpdate'): string {
  const names = table.rowTriggers
    .filter((trigger) => trigger[event] && trigger.before)
    .map(({ name }) => `"${name}"`)
  return names.length === 0 ? 'a trigger' : `trigger ${names.join(', ')}`
}

/**
 * A trigger that rewrites a value makes the row differ from its source for ever, and every run would write it again (G2).
 * Some of the written rows are read once more, and what was changed is said.
 */
async function sayWhatTriggersChanged(
  connection: Connection,
  context: WriteContext,
  notice: (message: string) => void,
): Promise<void> {
  const [sample] = await connection.query(sql.sampleSql(context, SAMPLE_ROWS))
  if (sample === undefined) return
  if (Number(sample.gone) > 0) throw suppressed(`${sample.gone} written rows`, 'onInsert', context)
  const rewritten = context.contract.columns.filter(({ id }) => Number(sample[id] ?? 0) > 0)
  if (rewritten.length === 0) return
  const names = context.table.rowTriggers.map(({ name }) => `"${name}"`)
  notice(
    `Trigger ${names.join(', ')} on ${context.table.identity.qualified} rewrites ${rewritten
      .map(({ name }) => `"${name}"`)
      .join(', ')}: every run finds these rows changed and writes them again (G2)`,
  )
}

/** The same for rows without a key: they cannot be looked up, only counted. */
function requireAllInserted(inserted: number, wanted: number, context: WriteContext): void {
  if (inserted !== wanted) throw suppressed(`${wanted - inserted} new rows`, 'onInsert', context)
}

function requireSent(sent: number, wanted: number): void {
  if (sent === wanted) return
  throw new StetError('STET_INTERNAL', `PostgreSQL took ${sent} rows of a difference of ${wanted}`)
}

async function countOf(connection: Connection, query: string): Promise<number> {
  const [row] = await connection.query(query)
  return Number(row?.rows ?? 0)
}

/** What would be sent, for people. */
export function statementsOf(
  context: Omit<WriteContext, 'table'> & { readonly table: WriteContext['table'] | null },
  identity: TableIdentity,
): readonly string[] {
  const { table, contract, write, enforcement } = context
  if (table === null) {
    const key = sql.addKeySql(identity, contract, write)
    return [
      sql.createTableSql(identity, contract),
      `copy ${sql.newTableTarget(identity, contract)} from stdin (format text, freeze)`,
      ...(key === null ? [] : [key]),
    ]
  }
  const full: WriteContext = { ...context, table }
  const changes = write.strategy !== 'insert-once'
  return [
    sql.createDifferenceSql(full),
    `copy ${sql.differenceTarget(contract)} from stdin (format text)`,
    ...(enforcement === 'table lock' ? [sql.lockTableSql(full)] : []),
    ...(write.strategy === 'replace-table' ? [sql.deleteSql(full)] : []),
    ...(enforcement === 'none'
      ? [sql.appendSql(full)]
      : [
          sql.createWorkTablesSql(full),
          ...(changes ? [sql.lookUpSql(full, 1), sql.updateSql(full, 1)] : []),
          sql.insertSql(full),
          ...(changes ? [sql.classifySql(full)] : []),
        ]),
  ]
}
