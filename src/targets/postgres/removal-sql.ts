import { quoteIdentifier } from '../../local/quote.ts'
import {
  DIFFERENCE,
  differs,
  inDifference,
  inTable,
  isSlicedByKey,
  keyOf,
  ownedSql,
  rowMatch,
  type WriteContext,
} from './sql.ts'

/**
 * Which row of the table a delete or a mark means. The row as it was pulled is repeated, so that one which another writer
 * has refreshed since then stays, and so is the slice, so that no row outside of it is ever taken away.
 */
function removedRow(context: WriteContext): string {
  const { contract } = context
  const same = contract.columns.map(
    (column) => `not (${differs(context, column, inTable('t')(column), inDifference(column))})`,
  )
  const place =
    keyOf(contract).length === 0
      ? `t.ctid = split_part(d.row_id, ' ', 2)::tid\n     and t.tableoid = split_part(d.row_id, ' ', 1)::oid`
      : rowMatch(context)
  const owned = isSlicedByKey(context) ? [] : ownedSql(context)
  return [place, ...owned, ...same].join('\n     and ')
}

/** Deletes what the load no longer has. */
export function deleteSql(context: WriteContext): string {
  return `with gone as (
  delete from ${context.table.identity.qualified} as t
   using ${DIFFERENCE} as d
   where d.op = 'delete'
     and ${removedRow(context)}
  returning 1)
select count(*) as rows from gone`
}

/**
 * How many rows are still there, with the content that they were pulled with, after the delete or the mark. One that another
 * writer has refreshed or removed is not among them.
 *
 * @param gone The column of the mark; null after a delete.
 */
export function leftSql(context: WriteContext, gone: string | null): string {
  const isMeant =
    gone === null ? `d.op = 'delete'` : `d.op = 'mark'\n     and t.${quoteIdentifier(gone)} is null`
  return `select count(*) as rows
  from ${DIFFERENCE} as d
  join ${context.table.identity.qualified} as t
    on ${removedRow(context)}
 where ${isMeant}`
}

/** Marks what the load no longer has, and leaves a row that is marked already as it is; `unmarked` are those whose mark a trigger took away. */
export function markSql(context: WriteContext, gone: string): string {
  const { updatedAt } = context.contract.keep
  const stamped = updatedAt === null ? [] : [`${quoteIdentifier(updatedAt)} = now()`]
  return `with gone as (
  update ${context.table.identity.qualified} as t
     set ${[`${quoteIdentifier(gone)} = now()`, ...stamped].join(',\n         ')}
    from ${DIFFERENCE} as d
   where d.op = 'mark'
     and t.${quoteIdentifier(gone)} is null
     and ${removedRow(context)}
  returning t.${quoteIdentifier(gone)} is not null as marked)
select count(*) filter (where marked) as rows, count(*) filter (where not marked) as unmarked from gone`
}
