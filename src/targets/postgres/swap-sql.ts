import { quoteIdentifier } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import type { CatalogColumn, CatalogTable } from './catalog.ts'
import { inSliceSql } from './slice-sql.ts'
import {
  DIFFERENCE,
  differs,
  inDifference,
  inTable,
  isSlicedByKey,
  keyMatch,
  keyOf,
  PRESENT,
  rowDiffers,
  type WriteContext,
} from './sql.ts'

/** Which rows of a partition there are, told by their places and the transactions that put them there. */
function stateSql(partition: string): string {
  return `select count(*) as rows,
                coalesce(sum(hashtextextended(t.ctid::text || ' ' || t.xmin::text, 0)), 0)::text as state
           from ${partition} as t`
}

/** The state of a partition, to compare with the one that was built from. */
export function currentStateSql(partition: string): string {
  return stateSql(partition)
}

/**
 * The partition's row `t` and the row of the difference `d` that means it. Arrays take NULL for a value like any other,
 * and can be hashed. Without a key, deletes and marks name a row's place.
 */
function matches({ table, contract }: WriteContext): string {
  const key = keyOf(contract)
  if (key.length === 0) {
    return `t.ctid = split_part(d.row_id, ' ', 2)::tid and t.tableoid = split_part(d.row_id, ' ', 1)::oid`
  }
  return key
    .map((column) => {
      const nullable = table.columns.find(({ name }) => name === column.name)?.nullable === true
      return nullable
        ? `array[${inTable('t')(column)}] = array[${inDifference(column)}]`
        : `${inTable('t')(column)} = ${inDifference(column)}`
    })
    .join(' and ')
}

/** What is done to a row of the partition: the same guards as where rows are written in place. */
function decisions(context: WriteContext, frozen: boolean): string {
  const { contract } = context
  const { gone } = contract.keep
  const same = contract.columns
    .map((column) => `not (${differs(context, column, inTable('t')(column), inDifference(column))})`)
    .join(' and ')
  const writes = frozen ? 'false' : rowDiffers(context, inDifference)
  const marks = gone === null ? 'false' : `d.op = 'mark' and t.${quoteIdentifier(gone)} is null and ${same}`
  return `select coalesce(${PRESENT}, false) as present,
                coalesce(${PRESENT} and ${writes}, false) as writes,
                coalesce(d.op = 'delete' and ${same}, false) as deletes,
                coalesce(${marks}, false) as marks`
}

/** The value of a column in the new partition, for a row that the old one has. */
function carried({ name, storage }: CatalogColumn, { columns, keep }: Contract): string {
  const quoted = `t.${quoteIdentifier(name)}`
  if (name === keep.contentHash) return `case when s.writes then d.content_hash else ${quoted} end`
  if (name === keep.updatedAt)
    return `case when s.writes or s.marks then now()::${storage} else ${quoted} end`
  if (name === keep.gone)
    return `case when s.writes then null when s.marks then now()::${storage} else ${quoted} end`
  const column = columns.find((found) => found.name === name)
  // Columns of the target alone stay with their row.
  if (column === undefined || column.key) return quoted
  return `case when s.writes then d.${column.id} else ${quoted} end`
}

/** The value of a column in a new row; null where it is left to the column's default. */
function inserted({ name, storage }: CatalogColumn, { columns, keep }: Contract): string | null {
  if (name === keep.contentHash) return 'd.content_hash'
  if (name === keep.updatedAt) return `now()::${storage}`
  const column = columns.find((found) => found.name === name)
  return column === undefined ? null : inDifference(column)
}

/** A column's default in the table itself, which is what an insert through it would give; the partition's may be another. */
export const tableDefaultsSql = `select a.attname as name, pg_get_expr(d.adbin, d.adrelid) as value
  from pg_attribute as a
  join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = $1 and a.attgenerated = ''`

/**
 * Fills the table beside with what the partition will be, and counts; one statement, so that all of it sees one state, which
 * is given back as well.
 *
 * @param defaults Expressions by the name of the column.
 */
export function fillBesideSql(
  context: WriteContext,
  old: string,
  beside: string,
  options: { readonly frozen: boolean; readonly defaults: ReadonlyMap<string, string> },
): string {
  const { table, contract } = context
  const columns = table.columns.filter(({ generated }) => !generated)
  const names = columns.map(({ name }) => quoteIdentifier(name)).join(', ')
  const kept = columns.map((column) => carried(column, contract))
  const fresh = columns.map(
    (column) => inserted(column, contract) ?? options.defaults.get(column.name) ?? 'null',
  )
  const match = matches(context)
  const decided = `cross join lateral (${decisions(context, options.frozen)}) as s`
  const isKeyed = keyOf(contract).length > 0
  const { gone } = contract.keep
  const wasGone = gone === null ? 'false' : `t.${quoteIdentifier(gone)} is not null`
  return `with kept as (
  insert into ${beside} (${names})
  select ${kept.join(',\n         ')}
    from ${old} as t
    left join ${DIFFERENCE} as d
      on ${match}
    ${decided}
   where not s.deletes
  returning 1),
added as (
  insert into ${beside} (${names})
  select ${fresh.join(',\n         ')}
    from ${DIFFERENCE} as d
   where ${PRESENT}${isKeyed ? `\n     and not exists (select from ${old} as t where ${match})` : ''}
  returning 1)
select (select count(*) from kept) as kept,
       (select count(*) from added) as inserted,
       before.rows, before.state, found.*
  from (${stateSql(old)}) as before
 cross join (
        select count(*) as matched,
               count(distinct d.n) as keys,
               count(*) filter (where s.writes) as updated,
               count(*) filter (where s.writes and ${wasGone}) as restored,
               count(*) filter (where s.present and not s.writes) as untouched,
               count(*) filter (where s.deletes) as deleted,
               count(*) filter (where s.marks) as marked
          from ${old} as t
          join ${DIFFERENCE} as d
            on ${match}
          ${decided}) as found`
}

/** Keys of the load that a row outside of the slice has; null where a key can only be in one slice. */
export function outsideBesideSql(context: WriteContext): string | null {
  const { table, contract, slice } = context
  const key = keyOf(contract)
  if (key.length === 0 || slice === null || isSlicedByKey(context)) return null
  const text = key.map((column) => `coalesce(${inDifference(column)}::text, 'NULL')`).join(` || ', ' || `)
  return `select ${text} as key, t.${quoteIdentifier(slice.by)}::text as place, count(*) over () as keys
  from ${DIFFERENCE} as d
  join ${table.identity.qualified} as t
    on ${keyMatch(key, 't', 'd')}
 where ${PRESENT}
   and (${inSliceSql(table, slice, 't')}) is not true
 order by 1
 limit 1`
}

/** Keeps other writers out, the table first and then its partition, as they lock themselves. Readers go on. */
export function lockWritersSql(table: CatalogTable, old: string): string {
  return `lock table only ${table.identity.qualified} in share row exclusive mode;
lock table only ${old} in share row exclusive mode`
}

/** Readers wait from the first of these until the commit. */
export function exchangeSql(
  table: CatalogTable,
  old: { readonly qualified: string; readonly bound: string },
  beside: string,
): readonly string[] {
  const name = table.identity.qualified
  return [
    `lock table only ${name} in access exclusive mode`,
    `alter table ${name} detach partition ${old.qualified}`,
    `alter table ${name} attach partition ${beside} ${old.bound}`,
    `drop table ${old.qualified}`,
    `alter table ${beside} drop constraint stet_bounds`,
  ]
}
