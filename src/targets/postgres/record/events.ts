import type { RecordEvent } from '../../../model/run.ts'
import type { Connection } from '../connection.ts'
import { utcSql } from './text.ts'

/** Writes down what a person did, in the caller's transaction; when, the server says. */
export async function writeEvent(connection: Connection, event: Omit<RecordEvent, 'at'>): Promise<void> {
  await connection.query(
    `insert into stet.event (at, kind, pipeline, table_name, slice, detail, done_by)
     values (clock_timestamp(), $1, $2, $3, $4, $5, $6)`,
    [event.kind, event.pipeline, event.table, event.slice, event.detail, event.by],
  )
}

/** Newest first. */
export async function readEvents(connection: Connection): Promise<readonly RecordEvent[]> {
  const rows = await connection.query(
    `select ${utcSql('at')} as at, kind, pipeline, table_name, slice, detail, done_by
       from stet.event
      order by stet.event.at desc`,
  )
  return rows.map((row) => ({
    at: row.at ?? '',
    kind: (row.kind ?? '') as RecordEvent['kind'],
    pipeline: row.pipeline ?? null,
    table: row.table_name ?? '',
    slice: row.slice ?? null,
    detail: row.detail ?? '',
    by: row.done_by ?? '',
  }))
}
