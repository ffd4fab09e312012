import type { LocalConnection } from '../../../model/local.ts'
import type { RecordEvent } from '../../../model/run.ts'
import { hostTime, isoSql } from './clock.ts'
import { recordSchema } from './schema.ts'

/** Writes down what a person has done, in the transaction that the connection is in. */
export async function writeEvent(
  local: LocalConnection,
  catalog: string,
  event: Omit<RecordEvent, 'at'>,
): Promise<void> {
  // Not before the end of any run of the slice, also when the clock has been put back: the order of the two is what counts.
  await local.duckdb.run(
    `insert into ${recordSchema(catalog)}.event ("at", kind, pipeline, table_name, slice, detail, done_by)
     select greatest(${hostTime()}, (select max(finished_at)
                                       from ${recordSchema(catalog)}.run
                                      where table_name = $3
                                        and slice = $4)),
            $1, $2, $3, $4, $5, $6`,
    [event.kind, event.pipeline, event.table, event.slice, event.detail, event.by],
  )
}

/** What people have done, newest first. */
export async function listEvents(local: LocalConnection, catalog: string): Promise<readonly RecordEvent[]> {
  const rows = await local.rows(`
    select ${isoSql('"at"')} as at_text, kind, pipeline, table_name, slice, detail, done_by
      from ${recordSchema(catalog)}.event
     order by "at" desc, rowid desc`)
  return rows.map((row) => ({
    at: String(row.at_text),
    kind: row.kind === 'thaw' || row.kind === 'forget' ? row.kind : 'watermark',
    pipeline: row.pipeline === null ? null : String(row.pipeline),
    table: String(row.table_name),
    slice: row.slice === null ? null : String(row.slice),
    detail: String(row.detail),
    by: String(row.done_by),
  }))
}
