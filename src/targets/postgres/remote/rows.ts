import { TIED_ROWS_SHOWN, tieError } from '../../../local/newest.ts'
import { isTimeType } from '../../../model/column-type.ts'
import type { ContractColumn } from '../../../model/columns.ts'
import type { Seen, ShownRow } from '../../../model/remote.ts'
import type { CursorWindow, Slice } from '../../../model/slice.ts'
import { queryCount, type Row } from '../connection.ts'
import { keyOf } from '../sql.ts'
import { differsThere } from './compare-sql.ts'
import { type Asked, inStageSliceSql, literalOf, type RemoteContext, STAGE } from './stage.ts'

/** Takes out of the stage what is outside the window or the backfill's slice, and says what is left. */
export async function keepWindow(
  connection: Asked,
  context: RemoteContext,
  column: ContractColumn,
  window: CursorWindow,
  slice: Slice | null,
): Promise<Seen> {
  const { id } = column
  const end = (text: string) => literalOf(context.shape, column, text)
  const within = [
    window.from === null ? null : `s.${id} >= ${end(window.from)}`,
    window.to === null ? null : `s.${id} <= ${end(window.to)}`,
    slice === null ? null : inStageSliceSql(context, slice),
  ].filter((condition) => condition !== null)
  const isWithin = within.length === 0 ? 'true' : `coalesce(${within.join(' and ')}, false)`
  // A backfill of a window takes no rows without a value: they belong to none.
  const nullsStay = window.nulls === 'include' && slice === null
  const isOutside = `not (s.${id} is not null and ${isWithin}) and not (s.${id} is null and ${nullsStay})`
  const count = (condition: string) =>
    queryCount(connection, `select count(*) as rows from ${STAGE} as s where ${condition}`)
  const later = window.to === null ? 0 : await count(`coalesce(s.${id} > ${end(window.to)}, false)`)
  const outside = await count(isOutside)
  if (outside > 0) await connection.query(`delete from ${STAGE} as s where ${isOutside}`)
  const withoutCursor = await count(`s.${id} is null`)
  const [greatest] = await connection.query(
    `select max(s.${id})::text as value from ${STAGE} as s where ${isMeasureSql(column)}`,
  )
  return { outside, later, withoutCursor, greatest: greatest?.value ?? null }
}

/** What is no number or no moment would be the greatest for ever, and no later row would be read (G4). */
function isMeasureSql({ id, type }: ContractColumn): string {
  if (isTimeType(type)) return `isfinite(s.${id})`
  return type.kind === 'numeric' ? `s.${id} <> all ('{NaN,Infinity,-Infinity}'::numeric[])` : 'true'
}

/** Rows of the stage that belong to another slice: how many, and some of them. */
export async function rowsOutside(
  connection: Asked,
  context: RemoteContext,
  slice: Slice,
  shown: number,
): Promise<{ readonly count: number; readonly rows: readonly ShownRow[] }> {
  const { contract } = context
  const isOther = `(${inStageSliceSql(context, slice)}) is not true`
  const count = await queryCount(connection, `select count(*) as rows from ${STAGE} as s where ${isOther}`)
  if (count === 0) return { count, rows: [] }
  const key = keyOf(contract)
  const by = contract.columns.filter(({ name }) => name === slice.by)
  const columns =
    key.length === 0 ? contract.columns : [...key.filter(({ name }) => name !== slice.by), ...by]
  const found = await connection.query(`
    select ${textsOf(columns, 's')}
      from ${STAGE} as s
     where ${isOther}
     order by ${columns.map((_, position) => position + 1).join(', ')}
     limit ${shown}`)
  return { count, rows: found.map((row) => named(row, columns)) }
}

/**
 * Keeps the newest row of each key (G5). Before the comparison and not after it: how many rows are duplicates is counted
 * anyway (G6), and with the losers gone no further look is needed that keeps them from being written.
 */
export async function keepNewest(connection: Asked, context: RemoteContext): Promise<number> {
  const { contract } = context
  const key = keyOf(contract)
  if (key.length === 0) return 0
  const ids = (alias: string) => key.map(({ id }) => `${alias}.${id}`).join(', ')
  const newest = contract.columns.find((column) => column.newest)
  const order = newest === undefined ? '0' : `s.${newest.id}`
  // Rivals that differ in ignored columns or in spelling only are one content; which of them stays must not depend on where
  // it stood, so all columns' texts decide.
  const total = contract.columns.map(({ id }) => `s.${id}::text collate "C" desc nulls last`)
  // Arrays, because their `=` takes NULL for equal and can still be hashed.
  const match = key.map(({ id }) => `array[s.${id}] = array[r.${id}]`).join(' and ')
  await connection.query(`create temp table stet_rivals on commit drop as
select s.ctid as rid,
       dense_rank() over (order by ${ids('s')}) as rivalry,
       rank() over (partition by ${ids('s')} order by ${order} desc nulls last) as age,
       row_number() over (partition by ${ids('s')} order by ${order} desc nulls last, ${total.join(', ')}) as place
  from ${STAGE} as s
  join (select ${ids('s')} from ${STAGE} as s group by ${ids('s')} having count(*) > 1) as r
    on ${match}`)
  const losers = await queryCount(
    connection,
    'select count(*) as rows from pg_temp.stet_rivals where place > 1',
  )
  if (losers === 0) return 0
  await refuseTies(connection, context)
  await connection.query(
    `delete from ${STAGE} as s using pg_temp.stet_rivals as v where v.rid = s.ctid and v.place > 1`,
  )
  return losers
}

async function refuseTies(connection: Asked, context: RemoteContext): Promise<void> {
  const { contract } = context
  const differ = contract.columns
    .filter(({ ignored }) => !ignored)
    .map((column) => differsThere(context, column, `a.${column.id}`, `b.${column.id}`))
  const ties = `
    select distinct v.rivalry
      from pg_temp.stet_rivals as v
      join pg_temp.stet_rivals as f
        on f.rivalry = v.rivalry and f.place = 1
      join ${STAGE} as a
        on a.ctid = v.rid
      join ${STAGE} as b
        on b.ctid = f.rid
     where v.age = 1
       and v.place > 1
       and (${differ.join(' or ')})`
  const count = await queryCount(connection, `select count(*) as rows from (${ties}) as t`)
  if (count === 0) return
  const shown = await connection.query(`
    select ${textsOf(contract.columns, 's')}
      from (${ties} order by 1 limit 3) as t
      join pg_temp.stet_rivals as v
        on v.rivalry = t.rivalry
      join ${STAGE} as s
        on s.ctid = v.rid
     where v.age = 1
     order by v.rivalry, v.place
     limit ${TIED_ROWS_SHOWN}`)
  throw tieError(
    count,
    shown.map((row) => named(row, contract.columns)),
    contract,
  )
}

function textsOf(columns: readonly ContractColumn[], alias: string): string {
  return columns.map(({ id }) => `${alias}.${id}::text as ${id}`).join(', ')
}

function named(row: Row, columns: readonly ContractColumn[]): ShownRow {
  return Object.fromEntries(columns.map(({ id, name }) => [name, row[id] ?? null]))
}
