import type { History } from '../../../model/target.ts'
import type { Connection } from '../connection.ts'
import { SLICES_VERSION, versionOf } from './migrations.ts'
import { readWatermark } from './watermark.ts'

/**
 * What earlier runs have left for this one, in the caller's transaction. A record that is not there yet, or of a version
 * that kept none of it, has nothing.
 *
 * @param table The table's name as the record has it.
 */
export async function readHistory(
  connection: Connection,
  pipeline: string,
  table: string,
  slice: string,
): Promise<History> {
  if ((await versionOf(connection)) < SLICES_VERSION) return { watermark: null, frozen: false }
  return {
    watermark: await readWatermark(connection, pipeline, table),
    frozen: await isFrozen(connection, table, slice),
  }
}

/**
 * Whether what is in the slice is there to stay (G12): a run with `truth: 'snapshot'` has brought rows into it, and nobody
 * has thawed it since. A snapshot of an empty source freezes nothing.
 */
export async function isFrozen(connection: Connection, table: string, slice: string): Promise<boolean> {
  const [row] = await connection.query(
    `select exists (
       select from stet.run as r
        where r.table_name = $1 and r.slice = $2
          and r.status = 'succeeded' and r.truth = 'snapshot'
          and r.rows_after_transform > r.rows_rejected
          and r.finished_at > coalesce((select max(e.at)
                                          from stet.event as e
                                         where e.kind = 'thaw' and e.table_name = $1 and e.slice = $2),
                                       '-infinity')) as frozen`,
    [table, slice],
  )
  return row?.frozen === 't'
}
