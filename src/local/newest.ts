import { StetError } from '../errors.ts'
import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { countOf } from '../model/words.ts'
import { identitySql, orderSql } from './typing.ts'

/** Ties that are shown in the error; one would be too few to see a pattern. */
const TIES_SHOWN = 3

/**
 * Keeps the newest row of each key in `table` and deletes the others (G5). Only keys that come more than once are looked
 * at row by row.
 *
 * @returns the number of rows deleted.
 * @throws {StetError} `STET_TIE` when two rows of a key claim to be the newest and differ in a compared column, with both
 * rows shown. Physical order never decides.
 * @param placesOf Where rows stand, for the error.
 */
export async function keepNewest(
  local: LocalConnection,
  table: string,
  contract: Contract,
  placesOf: PlacesOf = async () => [],
): Promise<number> {
  const key = contract.columns.filter((column) => column.key)
  if (key.length === 0) return 0
  const keyIdentity = key.map((column) => identitySql(column, `l.${column.id}`))
  const repeated = local.newName('repeated')
  const keyNames = key.map((_, position) => `k${position}`)
  await local.run(`
    create table ${repeated} as
    select ${keyIdentity.map((sql, position) => `${sql} as k${position}`).join(', ')}
      from ${table} as l
     group by all
    having count(*) > 1`)
  if ((await local.count(`select count(*) from ${repeated}`)) === 0) return 0

  const newest = contract.columns.find((column) => column.newest)
  const order = newest === undefined ? '0' : orderSql(newest, `l.${newest.id}`)
  const names = keyNames.join(', ')
  const keyMatch = keyIdentity.map((sql, position) => `${sql} is not distinct from r.k${position}`)
  const rivals = local.newName('rivals')
  await local.run(`
    create table ${rivals} as
    select l.rowid as rid, ${names}, rank() over (partition by ${names} order by ${order} desc nulls last) as age
      from ${table} as l
      join ${repeated} as r
        on ${keyMatch.join(' and ')}`)
  const equals = await placeEquals(local, table, rivals, names, contract)
  await refuseTies(local, table, equals, keyNames, contract, placesOf)
  const losers = `select rid from ${rivals} where age > 1 union all select rid from ${equals} where place > 1`
  const deleted = await local.count(`select count(*) from (${losers})`)
  await local.run(`delete from ${table} where rowid in (${losers})`)
  for (const made of [equals, rivals, repeated]) await local.run(`drop table ${made}`)
  return deleted
}

/**
 * The rows that share the newest place of their key, with what they hold and the place that each has among them. Mostly there
 * are none: only here every column is looked at.
 */
async function placeEquals(
  local: LocalConnection,
  table: string,
  rivals: string,
  names: string,
  contract: Contract,
): Promise<string> {
  const equals = local.newName('equals')
  // Equals that differ only in ignored columns or in spelling are one content; which of them stays must not depend on
  // where it stood, so all columns' texts decide.
  const total = contract.columns.map((column) => `l.${column.id}::varchar desc nulls last`)
  const content = contract.columns
    .filter((column) => !column.ignored)
    .map((column, position) => `'p${position}': ${identitySql(column, `l.${column.id}`)}`)
  await local.run(`
    create table ${equals} as
    select e.*, row_number() over (partition by ${names} order by ${total.join(', ')}) as place, {${content.join(', ')}} as content
      from (select rid, ${names} from ${rivals} where age = 1 qualify count(*) over (partition by ${names}) > 1) as e
      join ${table} as l
        on l.rowid = e.rid`)
  return equals
}

async function refuseTies(
  local: LocalConnection,
  table: string,
  equals: string,
  keyNames: readonly string[],
  contract: Contract,
  placesOf: PlacesOf,
): Promise<void> {
  const ties = local.newName('ties')
  await local.run(`
    create table ${ties} as
    select ${keyNames.join(', ')}
      from ${equals}
     group by ${keyNames.join(', ')}
    having count(distinct content) > 1`)
  const count = await local.count(`select count(*) from ${ties}`)
  if (count === 0) return
  const shown = await local.rows(`
    select ${contract.columns.map((column) => `l.${column.id}::varchar as ${column.id}`).join(', ')}
      from ${equals} as v
      join (select * from ${ties} order by all limit ${TIES_SHOWN}) as t
        on ${keyNames.map((name) => `v.${name} is not distinct from t.${name}`).join(' and ')}
      join ${table} as l
        on l.rowid = v.rid
     order by ${keyNames.map((name) => `v.${name}`).join(', ')}, v.place
     limit ${TIED_ROWS_SHOWN}`)
  const rows = shown.map((row) =>
    Object.fromEntries(
      contract.columns.map((column) => [
        column.name,
        row[column.id] === null ? null : String(row[column.id]),
      ]),
    ),
  )
  throw tieError(count, rows, contract, await placesOf(rows))
}

/** How many rows of ties an error shows. */
export const TIED_ROWS_SHOWN: number = TIES_SHOWN * 4

/** A row by the columns' names, as the local engine prints its values. */
type Row = Readonly<Record<string, string | null>>

/** A file and a line in it for each of the rows; null where a row is in none. */
type Places = readonly ({ readonly file: string; readonly line: number } | null)[]

type PlacesOf = (rows: readonly Row[]) => Promise<Places>

/** @param rows Some of the tied rows. */
export function tieError(
  count: number,
  rows: readonly Row[],
  contract: Contract,
  places: Places = [],
): StetError {
  const newest = contract.columns.find((column) => column.newest)
  const lines = rows.map((row, index) => {
    const place = places[index]
    const values = Object.entries(row).map(([name, value]) => `${name}=${value ?? 'NULL'}`)
    return `  ${[...(place ? [`${place.file}:${place.line}`] : []), ...values].join(' ')}`
  })
  const keys = contract.columns.filter((column) => column.key).map((column) => column.name)
  const claim =
    newest === undefined
      ? `differ, and no order column says which of them is newer`
      : `differ although their ${newest.name} is the same`
  return new StetError(
    'STET_TIE',
    `${countOf(count, 'key has', 'keys have')} rows that ${claim} (G5); nothing was written. Key (${keys.join(', ')}):\n${lines.join('\n')}`,
    {
      hint:
        newest === undefined
          ? 'Name the column that says which row is newer (--newest COLUMN, newest in a pipeline), or remove the surplus rows'
          : `Give the rows different values of ${newest.name}, or leave columns that do not matter out of the comparison (--ignore COLUMN, ignore in a pipeline)`,
      details: { keys, ties: count, rows, ...(places.length === 0 ? {} : { places }) },
    },
  )
}
