import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Difference, RowsInScope } from '../model/target.ts'
import type { WriteStrategy } from '../model/write.ts'
import { contentHashSql } from './content-hash.ts'
import { identitySql, orderSql, sameSql } from './typing.ts'

/** What the comparison found: the difference, and the rows that need no writing, each counted by its own query. */
export interface Comparison {
  readonly difference: Difference
  readonly unchanged: number
  readonly stale: number
  readonly frozen: number
}

/**
 * Compares the landed rows with the target's rows in scope, whole rows and in values, and keeps what differs. It may err
 * towards "differs" only: the target looks once more at what it is given.
 *
 * @param scope null when the target is known to be empty.
 */
export async function compare(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope | null,
  contract: Contract,
  strategy: WriteStrategy['strategy'],
): Promise<Comparison> {
  if (scope === null || scope.rows === 0) return everythingIsNew(local, landed, contract)
  return contract.columns.some((column) => column.key)
    ? compareByKey(local, landed, scope, contract, strategy)
    : compareAsMultiset(local, landed, scope, contract)
}

async function everythingIsNew(
  local: LocalConnection,
  landed: string,
  contract: Contract,
): Promise<Comparison> {
  const table = local.newName('difference')
  // A view: on a first load the rows are copied once, into the target.
  await local.run(`
    create view ${table} as
    select 'insert' as op, ${ids(contract, 'l')}, ${hashSql(contract, 'l')} as content_hash, null::varchar as row_id
      from ${landed} as l`)
  const inserts = await local.count(`select count(*) from ${landed}`)
  return { difference: { table, inserts, updates: 0, deletes: 0 }, unchanged: 0, stale: 0, frozen: 0 }
}

/** One for each landed row. As words they took an eighth of the comparison's time. */
const VERDICT = { insert: 1, update: 2, unchanged: 3, stale: 4, frozen: 5 } as const

async function compareByKey(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope,
  contract: Contract,
  strategy: WriteStrategy['strategy'],
): Promise<Comparison> {
  const key = contract.columns.filter((column) => column.key)
  const newest = contract.columns.find((column) => column.newest)
  const match = key
    .map(
      (column) =>
        `${identitySql(column, `l.${column.id}`)} is not distinct from ${identitySql(column, `t.${column.id}`)}`,
    )
    .join(' and ')
  const same = contract.columns
    .filter((column) => !column.ignored && !column.key)
    .map((column) => sameSql(column, `l.${column.id}`, `t.${column.id}`))
  const isStale =
    newest === undefined
      ? 'false'
      : `coalesce(${orderSql(newest, `l.${newest.id}`)} < ${orderSql(newest, `t.${newest.id}`)}, false)`
  const changed = strategy === 'insert-once' ? VERDICT.frozen : VERDICT.update
  // Stale has no meaning for replace-table: the table follows the load (G5).
  const older = strategy === 'upsert' ? `when ${isStale} then ${VERDICT.stale}` : ''
  const verdicts = local.newName('verdicts')
  await local.run(`
    create table ${verdicts} as
    select l.rowid as rid,
           (case when t.hit is null then ${VERDICT.insert}
                 when ${same.length === 0 ? 'true' : same.join(' and ')} then ${VERDICT.unchanged}
                 ${older}
                 else ${changed} end)::utinyint as verdict
      from ${landed} as l
      left join (select *, true as hit from ${scope.table}) as t
        on ${match}`)
  const table = local.newName('difference')
  await local.run(`
    create table ${table} as
    select case v.verdict when ${VERDICT.insert} then 'insert' else 'update' end as op, ${ids(contract, 'l')}, ${hashSql(contract, 'l')} as content_hash, null::varchar as row_id
      from ${verdicts} as v
      join ${landed} as l
        on l.rowid = v.rid
     where v.verdict in (${VERDICT.insert}, ${VERDICT.update})`)
  if (strategy === 'replace-table') {
    await local.run(`
      insert into ${table}
      select 'delete', ${ids(contract, 't')}, null, null
        from ${scope.table} as t
       where not exists (select 1 from ${landed} as l where ${match})`)
  }
  const countOf = (verdict: keyof typeof VERDICT) =>
    local.count(`select count(*) from ${verdicts} where verdict = ${VERDICT[verdict]}`)
  return {
    difference: await counted(local, table),
    unchanged: await countOf('unchanged'),
    stale: await countOf('stale'),
    frozen: await countOf('frozen'),
  }
}

/** Without a key a row is its content: of equal rows, as many stay as the load has. */
async function compareAsMultiset(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope,
  contract: Contract,
): Promise<Comparison> {
  const identity = (alias: string) =>
    contract.columns.map((column) => identitySql(column, `${alias}.${column.id}`)).join(', ')
  const numbered = (from: string) =>
    `select x.*, row_number() over (partition by ${identity('x')}) as copy from ${from} as x`
  const match = [
    'l.copy = t.copy',
    ...contract.columns.map(
      (column) =>
        `${identitySql(column, `l.${column.id}`)} is not distinct from ${identitySql(column, `t.${column.id}`)}`,
    ),
  ].join(' and ')
  const ours = local.newName('ours')
  const theirs = local.newName('theirs')
  await local.run(`create table ${ours} as ${numbered(landed)}`)
  await local.run(`create table ${theirs} as ${numbered(scope.table)}`)
  const table = local.newName('difference')
  await local.run(`
    create table ${table} as
    select 'insert' as op, ${ids(contract, 'l')}, ${hashSql(contract, 'l')} as content_hash, null::varchar as row_id
      from ${ours} as l
     where not exists (select 1 from ${theirs} as t where ${match})
     union all
    select 'delete', ${ids(contract, 't')}, null, t.row_id
      from ${theirs} as t
     where not exists (select 1 from ${ours} as l where ${match})`)
  const unchanged = await local.count(
    `select count(*) from ${ours} as l where exists (select 1 from ${theirs} as t where ${match})`,
  )
  return { difference: await counted(local, table), unchanged, stale: 0, frozen: 0 }
}

async function counted(local: LocalConnection, table: string): Promise<Difference> {
  const countOf = (op: string) => local.count(`select count(*) from ${table} where op = '${op}'`)
  return {
    table,
    inserts: await countOf('insert'),
    updates: await countOf('update'),
    deletes: await countOf('delete'),
  }
}

function ids(contract: Contract, alias: string): string {
  return contract.columns.map((column) => `${alias}.${column.id}`).join(', ')
}

function hashSql(contract: Contract, alias: string): string {
  if (contract.keep.contentHash === null) return 'null::varchar'
  const hashed = contract.columns.filter((column) => !column.ignored)
  return contentHashSql(hashed.map((column) => ({ column, expr: `${alias}.${column.id}` })))
}
