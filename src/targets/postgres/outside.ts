import { StetError } from '../../errors.ts'
import { countOf } from '../../model/words.ts'
import type { Connection, Row } from './connection.ts'
import { outsideSql } from './settle-sql.ts'
import { isSlicedByKey, keyOf, type WriteContext } from './sql.ts'

/**
 * The key names a row in the whole table. One that is in another slice is not moved, because that slice would then lack a
 * row that nobody has taken from it.
 *
 * @param round Of the look that has found and locked the rows.
 * @throws {StetError} `STET_KEY_CONSTRAINT` with the first of the keys and where it is.
 */
export async function requireNoneOutside(
  connection: Connection,
  context: WriteContext,
  round: 1 | 2,
): Promise<void> {
  const { slice, write } = context
  if (slice === null || write.strategy !== 'replace-partition' || isSlicedByKey(context)) return
  refuseOutside(context, (await connection.query(outsideSql(context, slice, round)))[0])
}

/** @param found The first key that is elsewhere, where, and how many there are; nothing when there is none. */
export function refuseOutside({ slice, write, table, contract }: WriteContext, found: Row | undefined): void {
  if (found === undefined || slice === null || write.strategy !== 'replace-partition') return
  const { by } = slice
  const keys = Number(found.keys)
  const widerKey = [...keyOf(contract).map(({ name }) => name), by]
  const wider = `make ${by} part of the key: --key ${widerKey.join(',')} (key: ${JSON.stringify(widerKey)} in a pipeline)`
  // A row that is only marked, or kept, still has its key.
  const leaves = (write.missing ?? 'delete') === 'delete'
  throw new StetError(
    'STET_KEY_CONSTRAINT',
    `${table.identity.qualified} has the key ${found.key} outside of slice ${slice.name}: its ${by} is ${found.place ?? 'NULL'}${keys > 1 ? ` (and ${countOf(keys - 1, 'more such key')})` : ''}`,
    {
      hint: `Nothing was written. ${leaves ? `If the row has moved, load the slice first that it has left; else ${wider}` : `To keep one row of a key in each slice, ${wider}`}`,
      details: { slice: slice.name, key: found.key, by, found: found.place, keys },
    },
  )
}
