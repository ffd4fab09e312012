import type { LocalConnection } from '../../../model/local.ts'
import type { History } from '../../../model/target.ts'
import { recordSchema, recordVersion, refuseNewerRecord, SLICES_VERSION } from './schema.ts'
import { findWatermark } from './watermark.ts'

/** What earlier runs have left on the record for a pipeline and a slice. A record that is older than both knows of neither. */
export async function readHistory(
  local: LocalConnection,
  catalog: string,
  pipeline: string,
  table: string,
  slice: string,
): Promise<History> {
  const version = await recordVersion(local, catalog)
  refuseNewerRecord(version)
  if (version < SLICES_VERSION) return { watermark: null, frozen: false }
  return {
    watermark: await findWatermark(local, catalog, pipeline, table),
    frozen: await isFrozen(local, catalog, table, slice),
  }
}

/** Whether a run has finished the slice as a snapshot, with rows, and nobody has thawed it since (G12). */
export async function isFrozen(
  local: LocalConnection,
  catalog: string,
  table: string,
  slice: string,
): Promise<boolean> {
  const schema = recordSchema(catalog)
  const reader = await local.duckdb.runAndReadAll(
    `select 1
       from ${schema}.run
      where table_name = $1
        and slice = $2
        and status = 'succeeded'
        and truth = 'snapshot'
        and rows_after_transform > rows_rejected
        and finished_at > coalesce((select max("at")
                                      from ${schema}.event
                                     where kind = 'thaw'
                                       and table_name = $1
                                       and slice = $2), '-infinity'::timestamptz)
      limit 1`,
    [table, slice],
  )
  return reader.currentRowCount > 0
}
