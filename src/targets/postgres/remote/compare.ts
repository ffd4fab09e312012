import type { CompareRules, Comparison, Difference } from '../../../model/comparison.ts'
import type { Slice } from '../../../model/slice.ts'
import { queryCount } from '../connection.ts'
import { DIFFERENCE, inTable, keyOf } from '../sql.ts'
import { createDifferenceSql } from '../write-sql.ts'
import * as sql from './compare-sql.ts'
import { type Asked, type RemoteContext, STAGE } from './stage.ts'

/**
 * Compares the stage with the table's rows in scope and leaves what differs in the difference, from where the write goes on.
 * The rules and the counts are those of the local comparison.
 *
 * @param countsLive Whether the live rows in scope are to be counted; else 0.
 */
export async function compareThere(
  connection: Asked,
  context: RemoteContext,
  rules: CompareRules,
  slice: Slice | null,
  countsLive: boolean,
): Promise<Comparison> {
  const { table, contract } = context
  if (table === null) return everythingIsNew(connection, context)
  await connection.query(createDifferenceSql({ table, contract }))
  const live = countsLive
    ? await queryCount(
        connection,
        `select count(*) as rows from ${table.identity.qualified} as t where ${sql.scopeSql(context, slice)} and not (${sql.isGoneSql(context)})`,
      )
    : 0
  return keyOf(contract).length > 0
    ? compareByKey(connection, context, rules, slice, live)
    : compareAsMultiset(connection, context, rules, slice, live)
}

async function everythingIsNew(connection: Asked, context: RemoteContext): Promise<Comparison> {
  const inserts = await queryCount(connection, `select count(*) as rows from ${STAGE}`)
  const table = sql.wholeStageSql(context)
  return {
    difference: { table, isInTarget: true, inserts, updates: 0, deletes: 0, marks: 0 },
    unchanged: 0,
    stale: 0,
    frozen: 0,
    missing: 0,
    live: 0,
  }
}

async function compareByKey(
  connection: Asked,
  context: RemoteContext,
  rules: CompareRules,
  slice: Slice | null,
  live: number,
): Promise<Comparison> {
  const comesBack = (await isOlderLoad(connection, context, rules, slice)) ? 'stale' : rules.existing
  await connection.query('create temp table stet_verdicts (rid tid, op text) on commit drop')
  const verdicts = new Map(
    (await connection.query(sql.verdictsSql(context, slice, rules, comesBack))).map(({ op, rows }) => [
      op,
      Number(rows),
    ]),
  )
  const changed = (verdicts.get('insert') ?? 0) + (verdicts.get('update') ?? 0)
  if (changed > 0) await connection.query(sql.takeVerdictsSql(context))
  if (rules.missing === 'delete' || rules.missing === 'mark') {
    await connection.query(sql.takeMissingSql(context, slice, rules))
  }
  const missing = `select count(*) as rows from ${context.identity.qualified} as t
   where ${sql.scopeSql(context, slice)} and not (${sql.isGoneSql(context)}) and ${sql.isMissingSql(context)}`
  return {
    difference: await counted(connection),
    unchanged: verdicts.get('unchanged') ?? 0,
    stale: verdicts.get('stale') ?? 0,
    frozen: verdicts.get('frozen') ?? 0,
    missing: rules.missing === 'count' ? await queryCount(connection, missing) : 0,
    live,
  }
}

/**
 * Whether the whole load is older than what the table has. A row that was marked as gone by a newer load must not come back
 * with an older one, although its own order value has not changed (G5).
 */
async function isOlderLoad(
  connection: Asked,
  context: RemoteContext,
  rules: CompareRules,
  slice: Slice | null,
): Promise<boolean> {
  const { contract, identity } = context
  const newest = contract.columns.find((column) => column.newest)
  if (newest === undefined || !rules.newestWins || contract.keep.gone === null) return false
  const [row] = await connection.query(
    `select coalesce((select max(s.${newest.id}) from ${STAGE} as s)
                   < (select max(${inTable('t')(newest)}) from ${identity.qualified} as t where ${sql.scopeSql(context, slice)}), false) as older`,
  )
  return row?.older === 't'
}

async function compareAsMultiset(
  connection: Asked,
  context: RemoteContext,
  rules: CompareRules,
  slice: Slice | null,
  live: number,
): Promise<Comparison> {
  await connection.query(sql.pairRowsSql(context, slice))
  const pairs = (condition: string) =>
    queryCount(connection, `select count(*) as rows from pg_temp.stet_pairs where ${condition}`)
  const onlyOurs = 'table_row is null'
  const onlyTheirs = 'load_row is null'
  // A slice that is frozen as a whole stays as it is.
  if (!rules.frozen) await connection.query(sql.takeUnpairedLoadSql(context))
  if (rules.missing === 'delete') await connection.query(sql.takeUnpairedTableSql(context))
  return {
    difference: await counted(connection),
    unchanged: await pairs('load_row is not null and table_row is not null'),
    stale: 0,
    frozen: rules.frozen ? await pairs(onlyOurs) : 0,
    missing: rules.missing === 'count' ? await pairs(onlyTheirs) : 0,
    live,
  }
}

async function counted(connection: Asked): Promise<Difference> {
  const rows = await connection.query(`select op, count(*) as rows from ${DIFFERENCE} group by op`)
  const countOfOp = (op: string) => Number(rows.find((row) => row.op === op)?.rows ?? 0)
  return {
    table: DIFFERENCE,
    isInTarget: true,
    inserts: countOfOp('insert'),
    updates: countOfOp('update'),
    deletes: countOfOp('delete'),
    marks: countOfOp('mark'),
  }
}
