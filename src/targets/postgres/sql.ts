import { quoteIdentifier } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract, ContractColumn } from '../../model/columns.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { type CatalogTable, KEPT_COMMENTS, type TableIdentity } from './catalog.ts'
import type { KeyEnforcement } from './checks.ts'

/** All that decides the statements of one write. */
export interface WriteContext {
  readonly table: CatalogTable
  readonly contract: Contract
  readonly write: WriteStrategy
  readonly enforcement: KeyEnforcement
}

/** The difference as it was sent: `n` numbers its rows, `c0`, `c1`, … are the contract's columns in the target's types. */
export const DIFFERENCE = 'pg_temp.stet_difference'
/** Which rows of the difference have their key in the table; those rows are locked. */
const EXISTING = 'pg_temp.stet_existing'
/** Keys of the rows that the database says it has written. */
const WRITTEN = 'pg_temp.stet_written'

function keyOf(contract: Contract): readonly ContractColumn[] {
  return contract.columns.filter((column) => column.key)
}

/** `t."a" = d.c0 and …`; rows with a NULL in the key never match. */
export function keyMatch(key: readonly ContractColumn[], table: string, local: string): string {
  return key.map((column) => `${table}.${quoteIdentifier(column.name)} = ${local}.${column.id}`).join(' and ')
}

/** The same, with NULL as a value like any other where the key may hold it. */
function keyMatchNull({ table, contract }: WriteContext, target: string, local: string): string {
  return keyOf(contract)
    .map((column) => {
      const name = `${target}.${quoteIdentifier(column.name)}`
      const value = `${local}.${column.id}`
      const nullable = table.columns.find((found) => found.name === column.name)?.nullable === true
      // `or` and not `is not distinct from`: an index serves both halves of the first, and neither of the second.
      return nullable
        ? `(${name} = ${value} or (${name} is null and ${value} is null))`
        : `${name} = ${value}`
    })
    .join(' and ')
}

/** The type below any domain, without a modifier that would cut. */
export function storageBase(table: CatalogTable, column: ContractColumn): string {
  return table.columns.find(({ name }) => name === column.name)?.base ?? formatColumnType(column.type)
}

/** What the pull selects: the text that a cast gives, not COPY's own, where the two differ (`inet`, `char(n)`). */
export function pulledExpression(column: ContractColumn): string {
  const name = `t.${quoteIdentifier(column.name)}`
  return column.asText || column.type.kind === 'other' || column.type.kind === 'char' ? `${name}::text` : name
}

/** A row's place. It names the row only within its partition and its transaction. */
export function rowIdExpression(): string {
  return `t.tableoid::text || ' ' || t.ctid::text`
}

/**
 * Whether two values are different ones. Types whose own equality is coarser than their value, or missing, are compared
 * by their text, as the local engine compares them.
 */
function differs({ table }: WriteContext, column: ContractColumn, left: string, right: string): string {
  const found = table.columns.find(({ name }) => name === column.name)
  const byText =
    column.asText ||
    found?.coarseCollation != null ||
    ['real', 'double', 'json', 'jsonb', 'char', 'other'].includes(column.type.kind)
  const side = (value: string) => (byText ? `${value}::text collate "C"` : value)
  return `${side(left)} is distinct from ${side(right)}`
}

function comparedColumns(contract: Contract): readonly ContractColumn[] {
  return contract.columns.filter((column) => !column.key && !column.ignored)
}

function rowDiffers(
  context: WriteContext,
  left: (column: ContractColumn) => string,
  right: (column: ContractColumn) => string,
): string {
  const parts = comparedColumns(context.contract).map((column) =>
    differs(context, column, left(column), right(column)),
  )
  return parts.length === 0 ? 'false' : `(${parts.join('\n         or ')})`
}

const inTable = (alias: string) => (column: ContractColumn) => `${alias}.${quoteIdentifier(column.name)}`
const inDifference = (column: ContractColumn) => `d.${column.id}`
const inExcluded = (column: ContractColumn) => `excluded.${quoteIdentifier(column.name)}`

/** Whether the table's row is newer than the load's (G5). Only an upsert minds: replace-table follows the load. */
function tableIsNewer(
  { contract, write }: WriteContext,
  value: (column: ContractColumn) => string,
): string | null {
  const newest = contract.columns.find((column) => column.newest)
  if (newest === undefined || write.strategy !== 'upsert') return null
  return `coalesce(${value(newest)} < ${inTable('t')(newest)}, false)`
}

/** Makes the table, with the columns that Stet keeps marked as its own. */
export function createTableSql(identity: TableIdentity, contract: Contract): string {
  const { updatedAt, contentHash } = contract.keep
  const columns = contract.columns.map(
    (column) => `${quoteIdentifier(column.name)} ${formatColumnType(column.type)}`,
  )
  if (contentHash !== null) columns.push(`${quoteIdentifier(contentHash)} text`)
  if (updatedAt !== null) columns.push(`${quoteIdentifier(updatedAt)} timestamptz not null default now()`)
  const comment = (name: string | null, text: string) =>
    name === null ? [] : [`comment on column ${identity.qualified}.${quoteIdentifier(name)} is '${text}';`]
  return [
    `create table ${identity.qualified} (\n  ${columns.join(',\n  ')}\n);`,
    ...comment(contentHash, KEPT_COMMENTS.contentHash),
    ...comment(updatedAt, KEPT_COMMENTS.updatedAt),
  ].join('\n')
}

/** Adds the key to a table that was just filled; an index built at once costs a third of one kept up row by row. */
export function addKeySql(identity: TableIdentity, contract: Contract, write: WriteStrategy): string | null {
  const list = keyOf(contract)
    .map((column) => quoteIdentifier(column.name))
    .join(', ')
  if (list === '') return null
  const constraint = write.nullKeys === 'match' ? 'unique nulls not distinct' : 'primary key'
  return `alter table ${identity.qualified} add ${constraint} (${list})`
}

/** `table (columns)` of a new table, in the order of the difference. */
export function newTableTarget(identity: TableIdentity, contract: Contract): string {
  const names = contract.columns.map((column) => quoteIdentifier(column.name))
  if (contract.keep.contentHash !== null) names.push(quoteIdentifier(contract.keep.contentHash))
  return `${identity.qualified} (${names.join(', ')})`
}

/** A table of the target's own types, typmods and collations for the rows that differ. */
export function createDifferenceSql({ table, contract }: WriteContext): string {
  const columns = contract.columns.map((column) => `${inTable('t')(column)} as ${column.id}`)
  return `create temp table stet_difference on commit drop as
select null::bigint as n, null::text as op, null::text as row_id, null::text as content_hash,
       ${columns.join(', ')}
  from ${table.identity.qualified} as t
  with no data`
}

/** `table (columns)` of the difference, in the order in which the local engine gives them. */
export function differenceTarget(contract: Contract): string {
  return `${DIFFERENCE} (n, op, row_id, content_hash, ${contract.columns.map(({ id }) => id).join(', ')})`
}

/** Tables for what the database found and did. */
export function createWorkTablesSql({ contract }: WriteContext): string {
  const key = keyOf(contract).map((column) => `${column.id}`)
  return `create temp table stet_existing (n bigint, round integer) on commit drop;
create temp table stet_written on commit drop as
select null::text as op, ${key.join(', ')}
  from ${DIFFERENCE}
  with no data`
}

/** Keeps other writers out, where the unique index does not by itself. Readers are not held up. */
export function lockTableSql({ table }: WriteContext): string {
  return `lock table ${table.identity.qualified} in share row exclusive mode`
}

/**
 * Deletes what the load no longer has. The row as it was pulled is repeated, so that one which another writer has
 * refreshed since then stays.
 */
export function deleteSql(context: WriteContext): string {
  const { table, contract } = context
  const same = contract.columns.map(
    (column) => `not (${differs(context, column, inTable('t')(column), inDifference(column))})`,
  )
  const place =
    keyOf(contract).length === 0
      ? `t.ctid = split_part(d.row_id, ' ', 2)::tid\n     and t.tableoid = split_part(d.row_id, ' ', 1)::oid`
      : keyMatchNull(context, 't', 'd')
  return `with gone as (
  delete from ${table.identity.qualified} as t
   using ${DIFFERENCE} as d
   where d.op = 'delete'
     and ${place}
     and ${same.join('\n     and ')}
  returning 1)
select count(*) as rows from gone`
}

/**
 * Finds which keys the table has and locks those rows, in key order, so that two writers never wait for each other in a
 * ring. What is decided about them afterwards cannot change before the commit.
 */
export function lookUpSql(context: WriteContext, round: 1 | 2): string {
  const { table, contract } = context
  const order = keyOf(contract).map(inDifference).join(', ')
  const unsettled = round === 1 ? '' : `\n     and ${notSettled(context)}`
  return `insert into ${EXISTING} (n, round)
  select d.n, ${round}
    from ${DIFFERENCE} as d
    join ${table.identity.qualified} as t
      on ${keyMatchNull(context, 't', 'd')}
   where d.op <> 'delete'${unsettled}
   order by ${order}
     for update of t`
}

/** Rows of the difference of which nothing is known yet. */
function notSettled(context: WriteContext): string {
  return `not exists (select from ${EXISTING} as e where e.n = d.n)
     and not exists (select from ${WRITTEN} as w where ${sameKey(context, 'w', 'd')})`
}

/** Keys of two of our own tables. Arrays, because their `=` takes NULL for equal and can still be hashed. */
function sameKey({ contract, table }: WriteContext, left: string, right: string): string {
  return keyOf(contract)
    .map(({ id, name }) =>
      table.columns.find((found) => found.name === name)?.nullable === true
        ? `array[${left}.${id}] = array[${right}.${id}]`
        : `${left}.${id} = ${right}.${id}`,
    )
    .join(' and ')
}

interface Written {
  readonly names: readonly string[]
  readonly values: readonly string[]
}

function writtenColumns({ contract }: WriteContext): Written {
  const { updatedAt, contentHash } = contract.keep
  const names = contract.columns.map((column) => quoteIdentifier(column.name))
  const values = contract.columns.map(inDifference)
  if (contentHash !== null) {
    names.push(quoteIdentifier(contentHash))
    values.push('d.content_hash')
  }
  if (updatedAt !== null) {
    names.push(quoteIdentifier(updatedAt))
    values.push('now()')
  }
  return { names, values }
}

function assignments(
  { contract }: WriteContext,
  value: (column: ContractColumn) => string,
  hash: string,
): string {
  const { updatedAt, contentHash } = contract.keep
  const list = contract.columns
    .filter((column) => !column.key)
    .map((column) => `${quoteIdentifier(column.name)} = ${value(column)}`)
  if (contentHash !== null) list.push(`${quoteIdentifier(contentHash)} = ${hash}`)
  if (updatedAt !== null) list.push(`${quoteIdentifier(updatedAt)} = now()`)
  return list.join(',\n        ')
}

/**
 * Writes the rows whose key is there. The guards are repeated: only a row that differs is touched, and none that is
 * newer. `on conflict` also shows what BEFORE INSERT triggers make of a row, so that one which they make equal is left alone.
 */
export function updateSql(context: WriteContext, round: 1 | 2): string {
  const { table, contract, enforcement } = context
  const { names, values } = writtenColumns(context)
  const key = keyOf(contract)
  const excluded = tableIsNewer(context, inExcluded)
  const returning = key.map(inTable('t')).join(', ')
  if (enforcement === 'table lock') {
    // No index names the key alone. A plain update also moves a row to the partition where it belongs now.
    const newer = tableIsNewer(context, inDifference)
    return `with written as (
  update ${table.identity.qualified} as t
     set ${assignments(context, inDifference, 'd.content_hash')}
    from ${DIFFERENCE} as d
    join ${EXISTING} as e
      on e.n = d.n
   where e.round = ${round}
     and ${keyMatch(key, 't', 'd')}
     and ${rowDiffers(context, inTable('t'), inDifference)}${newer === null ? '' : `\n     and not ${newer}`}
  returning ${returning})
insert into ${WRITTEN}
select 'update', * from written`
  }
  return `with written as (
  insert into ${table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
    join ${EXISTING} as e
      on e.n = d.n
   where e.round = ${round}
   order by ${key.map(inDifference).join(', ')}
      on conflict (${key.map((column) => quoteIdentifier(column.name)).join(', ')}) do update
     set ${assignments(context, inExcluded, `excluded.${quoteIdentifier(contract.keep.contentHash ?? '')}`)}
   where ${rowDiffers(context, inTable('t'), inExcluded)}${excluded === null ? '' : `\n     and not ${excluded}`}
  returning ${returning})
insert into ${WRITTEN}
select 'update', * from written`
}

/** Inserts the rows whose key is not there. One that another writer has put there meanwhile is left for the second look. */
export function insertSql(context: WriteContext): string {
  const { table, contract, enforcement } = context
  const { names, values } = writtenColumns(context)
  const key = keyOf(contract)
  const conflict =
    enforcement === 'index'
      ? `\n      on conflict (${key.map((column) => quoteIdentifier(column.name)).join(', ')}) do nothing`
      : ''
  return `with written as (
  insert into ${table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
   where d.op <> 'delete'
     and not exists (select from ${EXISTING} as e where e.n = d.n)
   order by ${key.map(inDifference).join(', ')}${conflict}
  returning ${key.map(inTable('t')).join(', ')})
insert into ${WRITTEN}
select 'insert', * from written`
}

/** Inserts rows that have no key. */
export function appendSql(context: WriteContext): string {
  const { names, values } = writtenColumns(context)
  return `with written as (
  insert into ${context.table.identity.qualified} as t (${names.join(', ')})
  select ${values.join(', ')}
    from ${DIFFERENCE} as d
   where d.op = 'insert'
  returning 1)
select count(*) as rows from written`
}

/** How many rows of the difference are neither known to be in the table nor written. */
export function unsettledSql(context: WriteContext): string {
  return `select count(*) as rows
  from ${DIFFERENCE} as d
 where d.op <> 'delete'
   and ${notSettled(context)}`
}

/** How often the database says it has done what, and how many keys it found in which look. */
export function writtenCountSql(): string {
  return `select (select count(*) from ${WRITTEN} where op = 'insert') as inserted,
       (select count(*) from ${WRITTEN} where op = 'update') as updated`
}

export function existingCountSql(round: 1 | 2): string {
  return `select count(*) as rows, count(distinct n) as keys from ${EXISTING} where round = ${round}`
}

/** What became of rows that are in the table and were not written; they are locked, so it stays true. */
export function classifySql(context: WriteContext): string {
  const differing = rowDiffers(context, inTable('t'), inDifference)
  const newer = tableIsNewer(context, inDifference) ?? 'false'
  return `select count(*) filter (where not differs) as unchanged,
       count(*) filter (where differs and newer) as stale,
       count(*) filter (where differs and not newer) as refused,
       min(n) filter (where differs and not newer) as refused_row
  from (
    select d.n,
           ${differing} as differs,
           ${newer} as newer
      from ${EXISTING} as e
      join ${DIFFERENCE} as d
        on d.n = e.n
      join ${context.table.identity.qualified} as t
        on ${keyMatchNull(context, 't', 'd')}
     where not exists (select from ${WRITTEN} as w where ${sameKey(context, 'w', 'd')})
  ) as rest`
}

/** Tries to change one row that the upsert left alone; only ever rolled back. */
export function probeSql(context: WriteContext, row: string): string {
  return `update ${context.table.identity.qualified} as t
   set ${assignments(context, inDifference, 'd.content_hash')}
  from ${DIFFERENCE} as d
 where d.n = ${row}
   and ${keyMatchNull(context, 't', 'd')}
returning 1`
}

/** Reads some of the written rows again: how many are gone, and how many hold something else, column by column. */
export function sampleSql(context: WriteContext, rows: number): string {
  const columns = comparedColumns(context.contract).map(
    (column) =>
      `count(*) filter (where t.tableoid is not null and ${differs(context, column, inTable('t')(column), inDifference(column))}) as ${column.id}`,
  )
  return `select ${['count(*) filter (where t.tableoid is null) as gone', ...columns].join(',\n       ')}
  from (select * from ${WRITTEN} limit ${rows}) as w
  join ${DIFFERENCE} as d
    on ${sameKey(context, 'w', 'd')}
   and d.op <> 'delete'
  left join ${context.table.identity.qualified} as t
    on ${keyMatchNull(context, 't', 'd')}`
}

/** How many keys are in the table more than once; asked only where no index forbids it. */
export function doubledSql(context: WriteContext): string {
  const key = keyOf(context.contract)
  return `select d.${key.map(({ id }) => id).join(`::text || ', ' || d.`)}::text as key
  from ${EXISTING} as e
  join ${DIFFERENCE} as d
    on d.n = e.n
 group by d.n, ${key.map(inDifference).join(', ')}
having count(*) > 1
 limit 1`
}
