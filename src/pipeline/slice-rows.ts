import { StetError } from '../errors.ts'
import { inSliceSql, requireSliceable, valueNameSql } from '../local/slice.ts'
import { formatColumnType } from '../model/column-type.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { ShownRow } from '../model/remote.ts'
import type { Slice } from '../model/slice.ts'
import { countOf } from '../model/words.ts'
import type { ReplacePartition } from '../model/write.ts'

/** Rows of another slice that an error shows. */
export const ROWS_SHOWN = 3

/**
 * Refuses a load that holds rows of another slice: the run, not the data, names what is replaced. Loading them would put
 * rows where the next run of their own slice deletes them; leaving them out would lose them without a word.
 *
 * @throws {StetError} `STET_OUTSIDE_SLICE` with the number of rows and some of them.
 */
export async function refuseOtherSlices(
  local: LocalConnection,
  table: string,
  contract: Contract,
  slice: Slice,
  size: ReplacePartition['size'],
): Promise<void> {
  const column = sliceColumn(contract, slice)
  requireSliceable(column, slice.bounds, size === 'hour')
  if (slice.bounds.kind === 'value') await requireOneName(local, column, slice.name)
  const isOther = `not ${inSliceSql(column, `x.${column.id}`, slice.bounds)}`
  const count = await local.count(`select count(*) from ${table} as x where ${isOther}`)
  if (count === 0) return
  const key = contract.columns.filter((candidate) => candidate.key)
  const shown = key.length === 0 ? contract.columns : [...key.filter(({ id }) => id !== column.id), column]
  const rows = await local.rows(`
    select ${shown.map(({ id }) => `x.${id}::varchar as ${id}`).join(', ')}
      from ${table} as x
     where ${isOther}
     order by all
     limit ${ROWS_SHOWN}`)
  const named = rows.map((row) =>
    Object.fromEntries(shown.map(({ id, name }) => [name, row[id] === null ? null : String(row[id])])),
  )
  throw otherSlices(count, named, slice)
}

/** @param rows Some of the rows, by the columns' names. */
export function otherSlices(count: number, rows: readonly ShownRow[], slice: Slice): StetError {
  const lines = rows.map(
    (row) =>
      `  ${Object.entries(row)
        .map(([name, value]) => `${name}=${value ?? 'NULL'}`)
        .join(' ')}`,
  )
  return new StetError(
    'STET_OUTSIDE_SLICE',
    `${countOf(count, 'row of the load does', 'rows of the load do')} not belong to the slice ${slice.name} of ${slice.by} (G3); nothing was written:\n${lines.join('\n')}`,
    {
      hint: `Read only the slice: a file of its own ('orders-{slice}.csv'), a query, or a transform that leaves the others out`,
      details: { slice: slice.name, by: slice.by, rows: count },
    },
  )
}

/** The column that says which slice a row belongs to. */
export function sliceColumn(contract: Contract, slice: Slice): ContractColumn {
  const column = contract.columns.find(({ name }) => name === slice.by)
  if (column !== undefined) return column
  throw new StetError(
    'STET_COLUMNS',
    `The load has no column "${slice.by}", which says which slice a row belongs to`,
    {
      hint: 'Add it to the source, or make it in the transform',
    },
  )
}

/** @throws {StetError} `STET_USAGE` when a slice of a value is not named as its column prints the value. */
export async function requireOneName(
  local: LocalConnection,
  column: ContractColumn,
  name: string,
): Promise<void> {
  const [row] = await local.rows(`select ${valueNameSql(column, name)} as name`)
  if (row?.name === name) return
  const type = formatColumnType(column.type)
  throw new StetError('STET_USAGE', `${JSON.stringify(name)} names no slice of "${column.name}" (${type})`, {
    hint:
      typeof row?.name === 'string'
        ? `Write it as the column prints it: --slice '${row.name}'`
        : `It is no value of ${type}`,
  })
}
