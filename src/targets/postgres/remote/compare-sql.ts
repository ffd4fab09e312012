import { quoteIdentifier } from '../../../local/quote.ts'
import type { ContractColumn } from '../../../model/columns.ts'
import type { CompareRules } from '../../../model/comparison.ts'
import type { Slice } from '../../../model/slice.ts'
import { inSliceSql } from '../slice-sql.ts'
import { DIFFERENCE, inTable, keyOf, rowIdExpression } from '../sql.ts'
import { contentHashSql } from './content-hash-sql.ts'
import { columnOf, type RemoteContext, STAGE } from './stage.ts'

/**
 * Whether two values of a column are different ones. By value, as in the local comparison: jsonb and floats have an equality
 * that is that of their values. Types whose own equality is coarser, or missing, are compared by their text.
 */
export function differsThere({ shape }: RemoteContext, column: ContractColumn, a: string, b: string): string {
  const { coarseCollation } = columnOf(shape, column)
  const byText = coarseCollation !== null || column.type.kind === 'json' || column.type.kind === 'other'
  const side = (value: string) => (byText ? `${value}::text collate "C"` : value)
  return `${side(a)} is distinct from ${side(b)}`
}

/** What stands for a value in `group by`: one for equal values, and only for these. */
function identityThere({ shape }: RemoteContext, column: ContractColumn, value: string): string {
  const { coarseCollation } = columnOf(shape, column)
  return coarseCollation !== null || column.type.kind === 'json' || column.type.kind === 'other'
    ? `${value}::text collate "C"`
    : value
}

/** The key of the table's row `t` against that of the stage's row `s`. */
export function keyMatchThere({ table, contract, write }: RemoteContext): string {
  return keyOf(contract)
    .map((column) => {
      const [left, right] = [inTable('t')(column), `s.${column.id}`]
      const nullable = table?.columns.find(({ name }) => name === column.name)?.nullable === true
      // Arrays, because their `=` takes NULL for equal and can still be hashed.
      return write.nullKeys === 'match' && nullable
        ? `array[${left}] = array[${right}]`
        : `${left} = ${right}`
    })
    .join(' and ')
}

/** The rows `t` that the run looks at. */
export function scopeSql({ table }: RemoteContext, slice: Slice | null): string {
  return table === null || slice === null ? 'true' : inSliceSql(table, slice, 't')
}

export function isGoneSql({ contract }: RemoteContext): string {
  const { gone } = contract.keep
  return gone === null ? 'false' : `t.${quoteIdentifier(gone)} is not null`
}

/** One look at every row of the stage. What is equal is only counted; the others are kept by their place. */
export function verdictsSql(
  context: RemoteContext,
  slice: Slice | null,
  rules: CompareRules,
  comesBack: string,
): string {
  const { identity, contract } = context
  const newest = contract.columns.find((column) => column.newest)
  const differ = contract.columns
    .filter(({ key, ignored }) => !key && !ignored)
    .map((column) => differsThere(context, column, inTable('t')(column), `s.${column.id}`))
  const isStale =
    newest === undefined || !rules.newestWins
      ? 'false'
      : `coalesce(s.${newest.id} < ${inTable('t')(newest)}, false)`
  return `with verdicts as materialized (
  select s.ctid as rid,
         case when t.tableoid is null then 'insert'
              when not (${differ.length === 0 ? 'false' : differ.join('\n                     or ')})
              then case when ${isGoneSql(context)} then '${comesBack}' else 'unchanged' end
              when ${isStale} then 'stale'
              else '${rules.existing}' end as op
    from ${STAGE} as s
    left join ${identity.qualified} as t
      on ${keyMatchThere(context)}
     and ${scopeSql(context, slice)}),
kept as (
  insert into pg_temp.stet_verdicts (rid, op)
  select rid, op from verdicts where op in ('insert', 'update'))
select op, count(*) as rows from verdicts group by op`
}

/** Fills the difference with the rows of the stage that were found to be new or changed. */
export function takeVerdictsSql(context: RemoteContext): string {
  return `insert into ${differenceColumns(context)}
select row_number() over (), v.op, null, ${hashSql(context)}, ${idsOf(context, 's')}
  from pg_temp.stet_verdicts as v
  join ${STAGE} as s
    on s.ctid = v.rid`
}

/** Adds the rows of the table that the load does not have. */
export function takeMissingSql(context: RemoteContext, slice: Slice | null, rules: CompareRules): string {
  const { identity, contract } = context
  const values = contract.columns.map(inTable('t')).join(', ')
  const newest = contract.columns.find((column) => column.newest)
  const conditions = [
    scopeSql(context, slice),
    isMissingSql(context),
    ...(rules.missing === 'mark' ? [`not (${isGoneSql(context)})`] : []),
    // A row that is newer than all of the load cannot be missing from it: the extract was made before the row (G10).
    ...(newest === undefined || !rules.newestWins
      ? []
      : [`coalesce(${inTable('t')(newest)} <= (select max(s.${newest.id}) from ${STAGE} as s), true)`]),
  ]
  return `insert into ${differenceColumns(context)}
select (select coalesce(max(n), 0) from ${DIFFERENCE}) + row_number() over (), '${rules.missing}', null, null, ${values}
  from ${identity.qualified} as t
 where ${conditions.join('\n   and ')}`
}

export function isMissingSql(context: RemoteContext): string {
  return `not exists (select from ${STAGE} as s where ${keyMatchThere(context)})`
}

/**
 * Without a key a row is its content: of equal rows, as many stay as the load has. Rows of both sides are numbered among
 * their equals, and those with one number are one row; no join, since none that lets NULL match NULL is fast.
 */
export function pairRowsSql(context: RemoteContext, slice: Slice | null): string {
  const { identity, contract } = context
  const equals = contract.columns.map((_, position) => `i${position}`).join(', ')
  const side = (name: string, value: (column: ContractColumn) => string, row: string) =>
    `select '${name}' as side, ${row} as row_id, ${contract.columns
      .map((column, position) => `${identityThere(context, column, value(column))} as i${position}`)
      .join(', ')}`
  return `create temp table stet_pairs on commit drop as
select min(row_id) filter (where side = 'load') as load_row,
       min(row_id) filter (where side = 'table') as table_row
  from (select *, row_number() over (partition by side, ${equals}) as copy
          from (${side('load', ({ id }) => `s.${id}`, 's.ctid::text')} from ${STAGE} as s
                union all
                ${side('table', inTable('t'), rowIdExpression())} from ${identity.qualified} as t
                 where ${scopeSql(context, slice)}) as both_sides) as numbered
 group by ${equals}, copy`
}

/** Fills the difference with the rows of the load that have no equal in the table. */
export function takeUnpairedLoadSql(context: RemoteContext): string {
  return `insert into ${differenceColumns(context)}
select row_number() over (), 'insert', null, ${hashSql(context)}, ${idsOf(context, 's')}
  from pg_temp.stet_pairs as p
  join ${STAGE} as s
    on s.ctid = p.load_row::tid
 where p.table_row is null`
}

/** Adds the rows of the table that have no equal in the load. */
export function takeUnpairedTableSql(context: RemoteContext): string {
  const { identity, contract } = context
  return `insert into ${differenceColumns(context)}
select (select coalesce(max(n), 0) from ${DIFFERENCE}) + row_number() over (), 'delete', p.table_row, null,
       ${contract.columns.map(inTable('t')).join(', ')}
  from pg_temp.stet_pairs as p
  join ${identity.qualified} as t
    on t.ctid = split_part(p.table_row, ' ', 2)::tid
   and t.tableoid = split_part(p.table_row, ' ', 1)::oid
 where p.load_row is null`
}

/** What a first load inserts: all of the stage, as the difference would have it. */
export function wholeStageSql(context: RemoteContext): string {
  return `(select row_number() over () as n, 'insert'::text as op, null::text as row_id,
               ${hashSql(context)} as content_hash, ${idsOf(context, 's')}
          from ${STAGE} as s)`
}

function differenceColumns({ contract }: RemoteContext): string {
  return `${DIFFERENCE} (n, op, row_id, content_hash, ${contract.columns.map(({ id }) => id).join(', ')})`
}

function idsOf({ contract }: RemoteContext, alias: string): string {
  return contract.columns.map(({ id }) => `${alias}.${id}`).join(', ')
}

function hashSql({ contract }: RemoteContext): string {
  if (contract.keep.contentHash === null) return 'null::text'
  const hashed = contract.columns.filter((column) => !column.ignored)
  return contentHashSql(hashed.map((column) => ({ column, expr: `s.${column.id}` })))
}
