import type { DuckDBValue } from '@duckdb/node-api'
import { StetError } from '../../../errors.ts'
import { openLocalEngine } from '../../../local/engine.ts'
import { type RunLog, type RunLogEntry, verdictOf } from '../../../model/run.ts'
import { attachFile } from '../attach.ts'
import { countsIn, errorIn, filesIn, rejectsIn, statusOf } from './runs.ts'
import { recordSchema, recordVersion, refuseNewerRecord } from './schema.ts'

/** People wait for this; a run that holds the file for longer is named instead. */
const WAIT_MS = 2_000
const LISTED_MAX = 1_000_000

/**
 * Opens the record of a file for reading. The file is held only while a question is answered, because a reader keeps
 * every run of another process waiting.
 *
 * @throws {StetError} `STET_CONFIG` when there is no such file, `STET_LOCKED` while a run holds it.
 */
export async function openRunLog(path: string, shown: string, signal: AbortSignal): Promise<RunLog> {
  const local = await openLocalEngine({ threads: 1 })

  const select = async (where: string, values: readonly DuckDBValue[]): Promise<readonly RunLogEntry[]> => {
    const file = await attachFile({
      local,
      path,
      shown,
      readOnly: true,
      timeoutMs: WAIT_MS,
      signal,
      notice: () => undefined,
    })
    if (file === null) {
      throw new StetError('STET_CONFIG', `No run has been recorded: ${shown} does not exist`, {
        hint: 'Name the file that the runs load into',
      })
    }
    try {
      const version = await recordVersion(local, file.catalog)
      refuseNewerRecord(version)
      if (version === 0) return []
      const reader = await local.duckdb.runAndReadAll(
        `select *,
                ${isoSql('started_at')} as started,
                ${isoSql('finished_at')} as finished,
                date_diff('millisecond', started_at, finished_at) as duration_ms
           from ${recordSchema(file.catalog)}.run
          where ${where}`,
        [...values],
      )
      return reader.getRowObjects().map(entryOf)
    } finally {
      await file.release()
    }
  }

  // Lines are written one after the other; those of one microsecond stand in the order of their writing.
  const newestFirst = 'order by started_at desc, rowid desc'
  return {
    list: ({ pipeline, last }) =>
      select(`($1 is null or pipeline = $1) ${newestFirst} limit $2::bigint`, [
        pipeline ?? null,
        String(last ?? LISTED_MAX),
      ]),
    find: async (id) => {
      const named = await select(`run_id = $1 or attempt_id = $1 ${newestFirst}`, [id])
      if (named.length > 0 || id === '') return named
      const begun = await select(`starts_with(run_id, $1) or starts_with(attempt_id, $1) ${newestFirst}`, [
        id,
      ])
      return new Set(begun.map((entry) => entry.runId)).size === 1 ? begun : []
    },
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  }
}

function isoSql(column: string): string {
  return `strftime(${column} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')`
}

function entryOf(row: Readonly<Record<string, DuckDBValue>>): RunLogEntry {
  const status = statusOf(row)
  const counts = countsIn(row)
  return {
    attemptId: String(row.attempt_id),
    runId: String(row.run_id),
    pipeline: String(row.pipeline),
    source: String(row.source),
    slice: String(row.slice),
    strategy: String(row.strategy) as RunLogEntry['strategy'],
    truth: 'source',
    holder: String(row.holder),
    stetVersion: String(row.stet_version),
    table: String(row.table_name),
    status,
    verdict: verdictOf(status, counts),
    startedAt: String(row.started),
    finishedAt: row.finished === null ? null : String(row.finished),
    durationMs: row.duration_ms === null ? null : Number(row.duration_ms),
    counts,
    files: filesIn(row),
    rejects: rejectsIn(row),
    error: errorIn(row),
  }
}
