import type { Contract, ContractColumn } from '../model/columns.ts'
import type { CompareRules, Comparison, Difference } from '../model/comparison.ts'
import type { LocalConnection } from '../model/local.ts'
import type { RowsInScope } from '../model/target.ts'
import { contentHashSql } from './content-hash.ts'
import { identitySql, orderSql, sameSql } from './typing.ts'

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
  rules: CompareRules,
): Promise<Comparison> {
  const hasKey = contract.columns.some((column) => column.key)
  // A slice that is frozen as a whole stays empty when it is.
  const isOpen = hasKey || !rules.frozen
  if (scope === null || (scope.rows === 0 && isOpen)) return everythingIsNew(local, landed, contract)
  return hasKey
    ? compareByKey(local, landed, scope, contract, rules)
    : compareAsMultiset(local, landed, scope, contract, rules)
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
  return {
    difference: { table, inserts, updates: 0, deletes: 0, marks: 0 },
    unchanged: 0,
    stale: 0,
    frozen: 0,
    missing: 0,
    live: 0,
  }
}

/** One for each landed row. As words they took an eighth of the comparison's time. */
const VERDICT = { insert: 1, update: 2, unchanged: 3, stale: 4, frozen: 5 } as const

async function compareByKey(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope,
  contract: Contract,
  rules: CompareRules,
): Promise<Comparison> {
  const key = contract.columns.filter((column) => column.key)
  const newest = contract.columns.find((column) => column.newest)
  const match = matchSql(key)
  const same = contract.columns
    .filter((column) => !column.ignored && !column.key)
    .map((column) => sameSql(column, `l.${column.id}`, `t.${column.id}`))
  const isGone = contract.keep.gone === null ? 'false' : 't.is_gone'
  const isStale =
    newest === undefined || !rules.newestWins
      ? 'false'
      : `coalesce(${orderSql(newest, `l.${newest.id}`)} < ${orderSql(newest, `t.${newest.id}`)}, false)`
  const comesBack = (await isOlderLoad(local, landed, scope, newest, rules)) ? 'stale' : rules.existing
  const verdicts = local.newName('verdicts')
  await local.run(`
    create table ${verdicts} as
    select l.rowid as rid,
           (case when t.hit is null then ${VERDICT.insert}
                 when ${same.length === 0 ? 'true' : same.join(' and ')}
                 then case when ${isGone} then ${VERDICT[comesBack]} else ${VERDICT.unchanged} end
                 when ${isStale} then ${VERDICT.stale}
                 else ${VERDICT[rules.existing]} end)::utinyint as verdict
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
  const isMissing = `not exists (select 1 from ${landed} as l where ${match})`
  if (rules.missing === 'delete' || rules.missing === 'mark') {
    await local.run(`
      insert into ${table}
      select '${rules.missing}', ${ids(contract, 't')}, null, null
        from ${scope.table} as t
       where ${isMissing}
         ${rules.missing === 'mark' ? `and not ${isGone}` : ''}
         and ${notNewerThanLoad(landed, newest, rules)}`)
  }
  const countOf = (verdict: keyof typeof VERDICT) =>
    local.count(`select count(*) from ${verdicts} where verdict = ${VERDICT[verdict]}`)
  return {
    difference: await counted(local, table),
    unchanged: await countOf('unchanged'),
    stale: await countOf('stale'),
    frozen: await countOf('frozen'),
    missing:
      rules.missing === 'count'
        ? await local.count(`select count(*) from ${scope.table} as t where not ${isGone} and ${isMissing}`)
        : 0,
    live: await local.count(`select count(*) from ${scope.table} as t where not ${isGone}`),
  }
}

/**
 * Whether the whole load is older than what the target has, by the greatest order value of each. A row that was marked as
 * gone by a newer load must not come back with an older one, although its own order value has not changed (G5).
 */
async function isOlderLoad(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope,
  newest: ContractColumn | undefined,
  rules: CompareRules,
): Promise<boolean> {
  if (newest === undefined || !rules.newestWins) return false
  const greatest = (from: string) => `(select max(${orderSql(newest, `x.${newest.id}`)}) from ${from} as x)`
  const [row] = await local.rows(
    `select coalesce(${greatest(landed)} < ${greatest(scope.table)}, false) as older`,
  )
  return row?.older === true
}

/** A row that is newer than all of the load cannot be missing from it: the extract was made before the row (G10). */
function notNewerThanLoad(landed: string, newest: ContractColumn | undefined, rules: CompareRules): string {
  if (newest === undefined || !rules.newestWins) return 'true'
  const greatest = `(select max(${orderSql(newest, `x.${newest.id}`)}) from ${landed} as x)`
  return `coalesce(${orderSql(newest, `t.${newest.id}`)} <= ${greatest}, true)`
}

function matchSql(columns: readonly ContractColumn[]): string {
  return columns
    .map(
      (column) =>
        `${identitySql(column, `l.${column.id}`)} is not distinct from ${identitySql(column, `t.${column.id}`)}`,
    )
    .join(' and ')
}

/** Without a key a row is its content: of equal rows, as many stay as the load has. */
async function compareAsMultiset(
  local: LocalConnection,
  landed: string,
  scope: RowsInScope,
  contract: Contract,
  rules: CompareRules,
): Promise<Comparison> {
  const identity = (alias: string) =>
    contract.columns.map((column) => identitySql(column, `${alias}.${column.id}`)).join(', ')
  const numbered = (from: string) =>
    `select x.*, row_number() over (partition by ${identity('x')}) as copy from ${from} as x`
  const match = `l.copy = t.copy and ${matchSql(contract.columns)}`
  const ours = local.newName('ours')
  const theirs = local.newName('theirs')
  await local.run(`create table ${ours} as ${numbered(landed)}`)
  await local.run(`create table ${theirs} as ${numbered(scope.table)}`)
  const onlyOurs = `from ${ours} as l where not exists (select 1 from ${theirs} as t where ${match})`
  const onlyTheirs = `from ${theirs} as t where not exists (select 1 from ${ours} as l where ${match})`
  const table = local.newName('difference')
  await local.run(`
    create table ${table} as
    select 'insert' as op, ${ids(contract, 'l')}, ${hashSql(contract, 'l')} as content_hash, null::varchar as row_id
      ${onlyOurs}
       and ${rules.frozen ? 'false' : 'true'}
     union all
    select 'delete', ${ids(contract, 't')}, null, t.row_id
      ${onlyTheirs}
       and ${rules.missing === 'delete' ? 'true' : 'false'}`)
  const unchanged = await local.count(
    `select count(*) from ${ours} as l where exists (select 1 from ${theirs} as t where ${match})`,
  )
  return {
    difference: await counted(local, table),
    unchanged,
    stale: 0,
    frozen: rules.frozen ? await local.count(`select count(*) ${onlyOurs}`) : 0,
    missing: rules.missing === 'count' ? await local.count(`select count(*) ${onlyTheirs}`) : 0,
    live: scope.rows,
  }
}

async function counted(local: LocalConnection, table: string): Promise<Difference> {
  const countOf = (op: string) => local.count(`select count(*) from ${table} where op = '${op}'`)
  return {
    table,
    inserts: await countOf('insert'),
    updates: await countOf('update'),
    deletes: await countOf('delete'),
    marks: await countOf('mark'),
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
