import type { RunCounts, RunRecord, RunStart } from '../../../model/run.ts'
import type { Reject, SourceFile } from '../../../model/source.ts'
import type { Connection, Row } from '../connection.ts'
import { jsonText, withoutNul } from './text.ts'

/** The record's columns of the counts of G6, in their order. */
const COUNT_COLUMNS: Readonly<Record<keyof RunCounts, string>> = {
  read: 'rows_read',
  outside: 'rows_outside',
  filtered: 'rows_filtered',
  added: 'rows_added',
  afterTransform: 'rows_after_transform',
  rejected: 'rows_rejected',
  duplicate: 'rows_duplicate',
  inserted: 'rows_inserted',
  updated: 'rows_updated',
  unchanged: 'rows_unchanged',
  stale: 'rows_stale',
  frozen: 'rows_frozen',
  deleted: 'rows_deleted',
  marked: 'rows_marked',
  restored: 'rows_restored',
  missing: 'rows_missing',
}

/** More rejects than these are counted, not kept: a bad file could otherwise fill the record. */
const REJECTS_KEPT = 100

/** Writes the run's first line. */
export async function insertRun(
  connection: Connection,
  table: string,
  start: RunStart,
  epoch: string | null,
): Promise<void> {
  await connection.query(
    `insert into stet.run (
       attempt_id, run_id, pipeline, source, table_name, slice,
       strategy, truth, holder, stet_version, epoch,
       logical_time, code, rerun_of, status)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'running')
     on conflict (attempt_id) do update
        set epoch = excluded.epoch
      where run.status = 'running'`,
    [
      start.attemptId,
      start.runId,
      start.pipeline,
      start.source,
      table,
      start.slice,
      start.strategy,
      start.truth,
      start.holder,
      start.stetVersion,
      epoch,
      start.logicalTime,
      start.code,
      start.rerunOf,
    ],
  )
}

/**
 * Writes how the run ended, in the caller's transaction.
 *
 * @returns the transaction's own number, by which its outcome can be asked for when the answer to the commit is lost;
 * null when the record has no running attempt of this name.
 */
export async function finishRun(connection: Connection, record: RunRecord): Promise<string | null> {
  const counts = Object.entries(COUNT_COLUMNS) as [keyof RunCounts, string][]
  const first = 8
  const assignments = counts.map(([, column], position) => `${column} = $${first + position + 1}`)
  const [row] = await connection.query(
    `update stet.run
        set status = $2, finished_at = clock_timestamp(),
            files = $3::jsonb, rejects = $4::jsonb, error_code = $5, error_message = $6,
            window_from = $7, window_to = $8,
            ${assignments.join(', ')}
      where attempt_id = $1 and status = 'running'
  returning pg_current_xact_id() as transaction`,
    [
      record.attemptId,
      record.status,
      jsonText(record.files),
      jsonText(record.rejects.slice(0, REJECTS_KEPT)),
      record.error?.code ?? null,
      record.error === null ? null : withoutNul(record.error.message),
      record.window?.from ?? null,
      record.window?.to ?? null,
      ...counts.map(([name]) => String(record.counts[name])),
    ],
  )
  return row?.transaction ?? null
}

/** Whether the record says that an attempt has come to a good end, which it does only in the commit of its rows. */
export async function hasSucceeded(connection: Connection, attemptId: string): Promise<boolean> {
  const rows = await connection.query(
    `select 1 from stet.run where attempt_id = $1 and status = 'succeeded'`,
    [attemptId],
  )
  return rows.length > 0
}

/** The counts of a line, or null for a run that has not ended. Row counts are far below 2^53. */
export function countsOf(row: Row): RunCounts | null {
  if (row[COUNT_COLUMNS.read] === null) return null
  const entries = Object.entries(COUNT_COLUMNS).map(([name, column]) => [name, Number(row[column] ?? 0)])
  return Object.fromEntries(entries) as RunCounts
}

/** Stet's own documents, written by {@link finishRun}; no value of a source is a number in them. */
export function filesOf(row: Row): readonly SourceFile[] {
  return JSON.parse(row.files ?? '[]') as readonly SourceFile[]
}

export function rejectsOf(row: Row): readonly Reject[] {
  return JSON.parse(row.rejects ?? '[]') as readonly Reject[]
}

/** What was read of the source by its cursor; null where nothing was, or everything. */
export function windowOf(row: Row): RunRecord['window'] {
  const from = row.window_from ?? null
  const to = row.window_to ?? null
  return from === null && to === null ? null : { from, to }
}
