import type { DuckDBValue } from '@duckdb/node-api'
import { StetError } from '../../../errors.ts'
import { openLocalEngine } from '../../../local/engine.ts'
import { type RunLog, type RunLogEntry, verdictOf } from '../../../model/run.ts'
import { attachFile } from '../attach.ts'
import { duckdbTableName } from '../table-name.ts'
import { isoSql } from './clock.ts'
import { listEvents } from './events.ts'
import { countsIn, errorIn, filesIn, rejectsIn, statusOf, textIn, windowIn } from './runs.ts'
import { recordSchema, recordVersion, refuseNewerRecord, SLICES_VERSION } from './schema.ts'
import { listWatermarks } from './watermark.ts'

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

  /** Asks a record that is there; one that has no tables yet for the question gives nothing. */
  const ask = async <Value>(
    sinceVersion: number,
    question: (catalog: string) => Promise<readonly Value[]>,
  ): Promise<readonly Value[]> => {
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
        hint: 'Name the target that the runs load into: --into FILE, or --into postgres://…',
        details: { noRecord: true },
      })
    }
    try {
      const version = await recordVersion(local, file.catalog)
      refuseNewerRecord(version)
      return version < sinceVersion ? [] : await question(file.catalog)
    } finally {
      await file.release()
    }
  }

  const select = (where: string, values: readonly DuckDBValue[]) =>
    ask(1, async (catalog) => {
      const reader = await local.duckdb.runAndReadAll(
        `select *,
                ${isoSql('started_at')} as started,
                ${isoSql('finished_at')} as finished,
                date_diff('millisecond', started_at, finished_at) as duration_ms
           from ${recordSchema(catalog)}.run
          where ${where}`,
        [...values],
      )
      return reader.getRowObjects().map(entryOf)
    })

  // Lines are written one after the other; those of one microsecond stand in the order of their writing.
  const newestFirst = 'order by started_at desc, rowid desc'
  return {
    list: async ({ pipeline, table, last }) =>
      select(
        `($1 is null or pipeline = $1) and ($2 is null or table_name = $2) ${newestFirst} limit $3::bigint`,
        [
          pipeline ?? null,
          table === undefined ? null : duckdbTableName(table).recorded,
          String(last ?? LISTED_MAX),
        ],
      ),
    find: async (id) => {
      const named = await select(`run_id = $1 or attempt_id = $1 ${newestFirst}`, [id])
      if (named.length > 0 || id === '') return named
      const begun = await select(`starts_with(run_id, $1) or starts_with(attempt_id, $1) ${newestFirst}`, [
        id,
      ])
      return new Set(begun.map((entry) => entry.runId)).size === 1 ? begun : []
    },
    watermarks: () => ask(SLICES_VERSION, (catalog) => listWatermarks(local, catalog)),
    events: () => ask(SLICES_VERSION, (catalog) => listEvents(local, catalog)),
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  }
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
    truth: row.truth === 'snapshot' ? 'snapshot' : 'source',
    logicalTime: textIn(row, 'logical_time'),
    code: textIn(row, 'code'),
    rerunOf: textIn(row, 'rerun_of'),
    holder: String(row.holder),
    stetVersion: String(row.stet_version),
    table: String(row.table_name),
    status,
    verdict: verdictOf(status, counts),
    startedAt: String(row.started),
    finishedAt: row.finished === null ? null : String(row.finished),
    durationMs: row.duration_ms === null ? null : Number(row.duration_ms),
    counts,
    window: windowIn(row),
    files: filesIn(row),
    rejects: rejectsIn(row),
    error: errorIn(row),
  }
}
