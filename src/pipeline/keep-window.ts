import { StetError } from '../errors.ts'
import { quoteLiteral } from '../local/quote.ts'
import { inSliceSql } from '../local/slice.ts'
import { orderSql, readSql } from '../local/typing.ts'
import { formatColumnType } from '../model/column-type.ts'
import type { ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Seen } from '../model/remote.ts'
import type { CursorWindow, Slice } from '../model/slice.ts'

/** Takes out of the landed table what is outside the window or the backfill's slice, and says what is left. */
export async function keepWindow(
  local: LocalConnection,
  table: string,
  column: ContractColumn,
  window: CursorWindow,
  slice: Slice | null,
): Promise<Seen> {
  const order = orderSql(column, column.id)
  const end = (text: string) => orderSql(column, readSql(column, quoteLiteral(text)))
  const within = [
    window.from === null ? null : `${order} >= ${await checkedEnd(local, column, window.from, end)}`,
    window.to === null ? null : `${order} <= ${await checkedEnd(local, column, window.to, end)}`,
    slice === null ? null : inSliceSql(column, column.id, slice.bounds),
  ].filter((condition) => condition !== null)
  const isWithin = within.length === 0 ? 'true' : `coalesce(${within.join(' and ')}, false)`
  // A backfill of a window takes no rows without a value: they belong to none.
  const nullsStay = window.nulls === 'include' && slice === null
  const isOutside = `not (${column.id} is not null and ${isWithin}) and not (${column.id} is null and ${nullsStay})`
  const later =
    window.to === null
      ? 0
      : await local.count(`select count(*) from ${table} where coalesce(${order} > ${end(window.to)}, false)`)
  const outside = await local.count(`select count(*) from ${table} where ${isOutside}`)
  if (outside > 0) await local.run(`delete from ${table} where ${isOutside}`)
  const withoutCursor = await local.count(`select count(*) from ${table} where ${column.id} is null`)
  return { outside, later, withoutCursor, greatest: await greatestOf(local, table, column) }
}

async function checkedEnd(
  local: LocalConnection,
  column: ContractColumn,
  text: string,
  end: (text: string) => string,
): Promise<string> {
  const [row] = await local.rows(`select (${end(text)}) is not null as readable`)
  if (row?.readable === true) return end(text)
  throw unreadableEnd(column, text)
}

export function unreadableEnd(column: ContractColumn, text: string): StetError {
  return new StetError(
    'STET_USAGE',
    `Cannot read ${JSON.stringify(text)} as a value of the cursor "${column.name}" (${formatColumnType(column.type)})`,
    { hint: 'Write it as the source does, for example 2026-08-07 or 2026-08-07 12:00:00+00' },
  )
}

async function greatestOf(
  local: LocalConnection,
  table: string,
  column: ContractColumn,
): Promise<string | null> {
  const order = orderSql(column, column.id)
  const [row] = await local.rows(`
    select ${column.id}::varchar as value
      from ${table}
     where ${column.id} is not null
       -- What is no number or no moment would be the greatest for ever.
       and lower(${column.id}::varchar) not in ('nan', 'infinity', '-infinity')
     order by ${order} desc
     limit 1`)
  return row === undefined || row.value === null ? null : String(row.value)
}
