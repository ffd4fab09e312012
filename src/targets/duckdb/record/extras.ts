import type { LocalConnection } from '../../../model/local.ts'
import type { RunRecord, RunStart } from '../../../model/run.ts'
import type { CommitExtras } from '../../../model/target.ts'
import { keepQuarantined } from './quarantine.ts'
import { moveWatermark } from './watermark.ts'

/** Writes what goes into the record beside the run itself, in the transaction of its rows. */
export async function keepExtras(
  local: LocalConnection,
  catalog: string,
  table: string,
  start: RunStart,
  record: RunRecord,
  extras: CommitExtras,
): Promise<void> {
  if (extras.watermark !== null) {
    await moveWatermark(local, catalog, table, { ...extras.watermark, setBy: record.attemptId })
  }
  await keepQuarantined(local, catalog, table, start, record.files, extras.quarantine)
}
