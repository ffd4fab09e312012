import type { DuckDBValue } from '@duckdb/node-api'
import { StetError } from '../../../errors.ts'
import type { LocalConnection } from '../../../model/local.ts'
import type { RunCounts, RunRecord, RunStart, RunStatus } from '../../../model/run.ts'
import type { Reject, SourceFile } from '../../../model/source.ts'
import { hostTime } from './clock.ts'
import { recordSchema, recordVersion } from './schema.ts'

/** Every count of a run with its column in the record. */
const COLUMN_BY_COUNT: Readonly<Record<keyof RunCounts, string>> = {
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
const COUNTS = Object.keys(COLUMN_BY_COUNT) as (keyof RunCounts)[]

/**
 * Writes the run's first line. Lines that say `running` are of attempts that are gone: whoever holds the file is alone,
 * so they are marked as interrupted.
 */
export async function startRun(
  local: LocalConnection,
  catalog: string,
  table: string,
  start: RunStart,
): Promise<void> {
  const run = `${recordSchema(catalog)}.run`
  await local.run(`update ${run} set status = 'interrupted' where status = 'running'`)
  await local.duckdb.run(
    `insert into ${run} (attempt_id, run_id, pipeline, source, slice, table_name, strategy, truth, holder, stet_version,
                         logical_time, code, rerun_of, status, started_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'running', now())`,
    [
      start.attemptId,
      start.runId,
      start.pipeline,
      start.source,
      start.slice,
      table,
      start.strategy,
      start.truth,
      start.holder,
      start.stetVersion,
      start.logicalTime,
      start.code,
      start.rerunOf,
    ],
  )
}

/** Completes the run's line, in the transaction that the connection is in. */
export async function finishRun(local: LocalConnection, catalog: string, record: RunRecord): Promise<void> {
  const counts = COUNTS.map((count, position) => `${COLUMN_BY_COUNT[count]} = $${position + 9}::bigint`)
  const result = await local.duckdb.run(
    `update ${recordSchema(catalog)}.run
        set status = $2, files = $3, rejects = $4, error_code = $5, error_message = $6, finished_at = ${hostTime()},
            window_from = $7, window_to = $8, ${counts.join(', ')}
      where attempt_id = $1`,
    [
      record.attemptId,
      record.status,
      JSON.stringify(record.files),
      JSON.stringify(record.rejects),
      record.error?.code ?? null,
      record.error?.message ?? null,
      record.window?.from ?? null,
      record.window?.to ?? null,
      ...COUNTS.map((count) => String(record.counts[count])),
    ],
  )
  if (result.rowsChanged === 1) return
  throw new StetError(
    'STET_INTERNAL',
    `The record has no line of the attempt ${record.attemptId}; nothing was written`,
  )
}

/** How an attempt has ended by the record; null where it has none, or has not ended. */
export async function statusAtEnd(
  local: LocalConnection,
  catalog: string,
  attemptId: string,
): Promise<RunRecord['status'] | null> {
  const reader = await local.duckdb.runAndReadAll(
    `select status from ${recordSchema(catalog)}.run where attempt_id = $1`,
    [attemptId],
  )
  const [row] = reader.getRowObjects()
  const status = row === undefined ? 'running' : statusOf(row)
  return status === 'running' ? null : status
}

/** The state in which a run that ended well has left its table. */
export interface LeftState {
  readonly keyColumns: string
  readonly rows: number
}

/** Notes what the table is like at the end of a run, in the transaction that the connection is in. */
export async function noteLeftState(
  local: LocalConnection,
  catalog: string,
  attemptId: string,
  qualified: string,
  keyColumns: string,
): Promise<void> {
  await local.duckdb.run(
    `update ${recordSchema(catalog)}.run
        set key_columns = $2, table_rows = (select count(*) from ${qualified})
      where attempt_id = $1`,
    [attemptId, keyColumns],
  )
}

/** How the last run into this table has left it, or null where none has ended well. */
export async function findLeftState(
  local: LocalConnection,
  catalog: string,
  table: string,
): Promise<LeftState | null> {
  if ((await recordVersion(local, catalog)) === 0) return null
  const reader = await local.duckdb.runAndReadAll(
    `select key_columns, table_rows
       from ${recordSchema(catalog)}.run
      where table_name = $1
        and status = 'succeeded'
      order by finished_at desc, rowid desc
      limit 1`,
    [table],
  )
  const [row] = reader.getRowObjects()
  return row === undefined ? null : { keyColumns: String(row.key_columns), rows: Number(row.table_rows) }
}

type Row = Readonly<Record<string, DuckDBValue>>

export function statusOf(row: Row): RunStatus {
  const status = String(row.status)
  return status === 'running' || status === 'succeeded' || status === 'failed' ? status : 'interrupted'
}

/** A text of the row; null also where the record is older than the column. */
export function textIn(row: Row, column: string): string | null {
  const text = row[column]
  return text === null || text === undefined ? null : String(text)
}

/** Null also where both ends are open, which says as much. */
export function windowIn(row: Row): RunRecord['window'] {
  const [from, to] = [textIn(row, 'window_from'), textIn(row, 'window_to')]
  return from === null && to === null ? null : { from, to }
}

export function countsIn(row: Row): RunCounts | null {
  if (row.rows_read === null || row.rows_read === undefined) return null
  return Object.fromEntries(
    COUNTS.map((count) => [count, Number(row[COLUMN_BY_COUNT[count]] ?? 0)]),
  ) as unknown as RunCounts
}

export function filesIn(row: Row): readonly SourceFile[] {
  return row.files === null ? [] : (JSON.parse(String(row.files)) as SourceFile[])
}

export function rejectsIn(row: Row): readonly Reject[] {
  return row.rejects === null ? [] : (JSON.parse(String(row.rejects)) as Reject[])
}

export function errorIn(row: Row): { readonly code: string; readonly message: string } | null {
  return row.error_code === null ? null : { code: String(row.error_code), message: String(row.error_message) }
}
