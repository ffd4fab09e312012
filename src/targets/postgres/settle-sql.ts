import { quoteIdentifier } from '../../local/quote.ts'
import type { Slice } from '../../model/slice.ts'
import { inSliceSql } from './slice-sql.ts'
import {
  assignments,
  comparedColumns,
  DIFFERENCE,
  differs,
  EXISTING,
  inDifference,
  inTable,
  keyOf,
  notSettled,
  PRESENT,
  rowDiffers,
  rowMatch,
  sameKey,
  tableIsNewer,
  WRITTEN,
  type WriteContext,
} from './sql.ts'

/** How many rows of the difference are neither known to be in the table nor written. */
export function unsettledSql(context: WriteContext): string {
  return `select count(*) as rows
  from ${DIFFERENCE} as d
 where ${PRESENT}
   and ${notSettled(context)}`
}

/** How often the database says it has done what; `restored` are the updated rows that were marked as gone. */
export function writtenCountSql(context: WriteContext): string {
  return `select (select count(*) from ${WRITTEN} where op = 'insert') as inserted,
       (select count(*) from ${WRITTEN} where op = 'update') as updated,
       (select count(*)
          from ${WRITTEN} as w
          join ${DIFFERENCE} as d
            on ${sameKey(context, 'w', 'd')}
           and ${PRESENT}
          join ${EXISTING} as e
            on e.n = d.n
         where w.op = 'update'
           and e.was_gone) as restored`
}

/** How many rows one look has found, and of how many keys. */
export function existingCountSql(round: 1 | 2): string {
  return `select count(*) as rows, count(distinct n) as keys from ${EXISTING} where round = ${round}`
}

/** What became of rows that are in the table and were not written; they are locked, so it stays true. */
export function classifySql(context: WriteContext): string {
  const differing = rowDiffers(context, inDifference)
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
        on ${rowMatch(context)}
     where not exists (select from ${WRITTEN} as w where ${sameKey(context, 'w', 'd')})
  ) as rest`
}

/** Tries to change one row that the upsert left alone; only ever rolled back. */
export function probeSql(context: WriteContext, row: string): string {
  return `update ${context.table.identity.qualified} as t
   set ${assignments(context, inDifference, 'd.content_hash')}
  from ${DIFFERENCE} as d
 where d.n = ${row}
   and ${rowMatch(context)}
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
   and ${PRESENT}
  left join ${context.table.identity.qualified} as t
    on ${rowMatch(context)}`
}

/** A key that is in the table more than once; asked only where no index forbids it. */
export function doubledSql(context: WriteContext): string {
  const key = keyOf(context.contract)
  return `select ${keyText(context)} as key
  from ${EXISTING} as e
  join ${DIFFERENCE} as d
    on d.n = e.n
 group by d.n, ${key.map(inDifference).join(', ')}
having count(*) > 1
 limit 1`
}

/** Keys of the load that a row outside the slice has: how many, and the first of them with where it is. */
export function outsideSql(context: WriteContext, slice: Slice, round: 1 | 2): string {
  const key = keyOf(context.contract)
  return `select ${keyText(context)} as key,
       t.${quoteIdentifier(slice.by)}::text as place,
       count(*) over () as keys
  from ${EXISTING} as e
  join ${DIFFERENCE} as d
    on d.n = e.n
  join ${context.table.identity.qualified} as t
    on ${rowMatch(context)}
 where e.round = ${round}
   and (${inSliceSql(context.table, slice, 't')}) is not true
 order by ${key.map(inDifference).join(', ')}
 limit 1`
}

function keyText(context: WriteContext): string {
  const parts = keyOf(context.contract).map((column) => `coalesce(${inDifference(column)}::text, 'NULL')`)
  return parts.join(` || ', ' || `)
}
