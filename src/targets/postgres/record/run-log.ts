import type { RunLog, RunLogEntry, RunStatus, Truth } from '../../../model/run.ts'
import { verdictOf } from '../../../model/run.ts'
import type { WriteStrategy } from '../../../model/write.ts'
import { parseTableName } from '../../shared/table-name.ts'
import { identify } from '../catalog.ts'
import type { Connection, Row } from '../connection.ts'
import { readEvents } from './events.ts'
import { SLICES_VERSION, versionOf } from './migrations.ts'
import { countsOf, filesOf, rejectsOf, windowOf } from './runs.ts'
import { utcSql } from './text.ts'
import { readWatermarks } from './watermark.ts'

/** A line that says `running` is only believed while its attempt holds a lease that beats: it may have died without a word. */
const LINES = `
  select r.*,
         case when r.status = 'running' and not exists (
                select from stet.lease as l
                 where l.attempt_id = r.attempt_id
                   and l.heartbeat_at >= clock_timestamp() - make_interval(secs => l.timeout_ms / 1000.0)
                   and (l.backend_pid is null
                     or exists (select from pg_stat_activity as a
                                 where a.pid = l.backend_pid
                                   and coalesce(a.backend_start = l.backend_start, true))))
              then 'interrupted' else r.status end as seen_status,
         ${utcSql('r.started_at')} as started,
         ${utcSql('r.finished_at')} as finished,
         round(extract(epoch from r.finished_at - r.started_at) * 1000) as duration_ms
    from stet.run as r`

/** Opens the record for reading; a database without one has no runs. */
export async function readRunLog(connection: Connection): Promise<RunLog> {
  const version = await versionOf(connection)
  const exists = version > 0
  const read = async (sql: string, parameters: readonly (string | null)[]) =>
    exists ? (await connection.query(`${LINES} ${sql}`, parameters)).map(entryOf) : []
  return {
    list: async ({ pipeline, table, last }) =>
      read(
        `where ($1::text is null or r.pipeline = $1)
           and ($2::text is null or r.table_name = $2)
         order by r.started_at desc, r.attempt_id
         limit $3::bigint`,
        [
          pipeline ?? null,
          // As the record names it: the user may have left the schema out.
          table === undefined ? null : (await identify(connection, parseTableName(table))).qualified,
          last === undefined ? null : String(last),
        ],
      ),
    find: async (id) => {
      const exact = await read(
        'where r.run_id = $1 or r.attempt_id = $1 order by r.started_at desc, r.attempt_id',
        [id],
      )
      if (exact.length > 0) return exact
      const begun = await read(
        `where starts_with(r.run_id, $1) or starts_with(r.attempt_id, $1)
         order by r.started_at desc, r.attempt_id`,
        [id],
      )
      return new Set(begun.map((entry) => entry.runId)).size === 1 ? begun : []
    },
    watermarks: async () => (version < SLICES_VERSION ? [] : readWatermarks(connection)),
    events: async () => (version < SLICES_VERSION ? [] : readEvents(connection)),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

function entryOf(row: Row): RunLogEntry {
  const text = (name: string) => row[name] ?? ''
  const status = text('seen_status') as RunStatus
  const counts = countsOf(row)
  const code = row.error_code ?? null
  return {
    attemptId: text('attempt_id'),
    runId: text('run_id'),
    pipeline: text('pipeline'),
    source: text('source'),
    table: text('table_name'),
    slice: text('slice'),
    strategy: text('strategy') as WriteStrategy['strategy'],
    truth: text('truth') as Truth,
    logicalTime: row.logical_time ?? null,
    code: row.code ?? null,
    rerunOf: row.rerun_of ?? null,
    holder: text('holder'),
    stetVersion: text('stet_version'),
    status,
    verdict: verdictOf(status, counts),
    startedAt: text('started'),
    finishedAt: row.finished ?? null,
    durationMs: row.duration_ms === null ? null : Number(text('duration_ms')),
    counts,
    window: windowOf(row),
    files: filesOf(row),
    rejects: rejectsOf(row),
    error: code === null ? null : { code, message: text('error_message') },
  }
}
