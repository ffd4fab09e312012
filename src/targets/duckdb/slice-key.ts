import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Slice } from '../../model/slice.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { keyMatchSql } from './scope.ts'
import { sliceColumn, sliceSql } from './slice.ts'
import { showIdentifier } from './table-name.ts'

/**
 * Refuses a load with a key that a row outside the slice has: a key stands for one row of the whole table, and what is
 * outside is not the run's to change. Only rows that would be inserted are looked up: the others have their row inside, and
 * every key is in the table once.
 *
 * @throws {StetError} `STET_KEY_CONSTRAINT` with one of the keys and where it was found.
 */
export async function requireKeysOnlyInSlice(
  local: LocalConnection,
  table: { readonly name: string; readonly qualified: string },
  contract: Contract,
  write: WriteStrategy,
  slice: Slice,
  difference: string,
): Promise<void> {
  const key = contract.columns.filter((column) => column.key)
  const by = sliceColumn(contract, slice)
  if (key.length === 0 || by.key) return
  const { gone } = contract.keep
  const shown = [...key, by].map(
    (column, position) => `stet_t.${quoteIdentifier(column.name)}::varchar as v${position}`,
  )
  const [outside] = await local.rows(`
    select ${shown.join(', ')}, ${gone === null ? 'false' : `stet_t.${quoteIdentifier(gone)} is not null`} as is_gone
      from ${table.qualified} as stet_t
           semi join (from ${difference} where op = 'insert') as stet_d on ${keyMatchSql(key, 'stet_d')}
     where not coalesce(${sliceSql(contract, slice)}, false)
     limit 1`)
  if (outside === undefined) return
  const valueAt = (position: number) => {
    const value = outside[`v${position}`]
    return value === null || value === undefined ? 'NULL' : String(value)
  }
  const names = key.map((column) => showIdentifier(column.name)).join(', ')
  const values = key.map((column, position) => `${column.name}=${valueAt(position)}`).join(', ')
  const marked = outside.is_gone === true
  // A slice that keeps or marks what is missing keeps the key of a row that has moved.
  const leaves = write.strategy === 'replace-partition' && (write.missing ?? 'delete') === 'delete'
  throw new StetError(
    'STET_KEY_CONSTRAINT',
    `Cannot load the slice ${slice.name} into ${table.name} by (${names}): ` +
      `the table has the key ${values} outside the slice, in a row with ${by.name}=${valueAt(key.length)}` +
      `${marked ? ' that is marked as gone' : ''} (G1); nothing was written`,
    {
      hint: marked
        ? `A marked row keeps its key. Put ${by.name} into the key, or remove that row`
        : `${leaves ? 'Load the slice of that row first, which takes it out if it has moved, or put' : 'Put'} ${by.name} into the key`,
      details: { table: table.name, slice: slice.name, key: key.map((column) => column.name) },
    },
  )
}
