import type { LocalConnection } from '../../../model/local.ts'
import type { RunStart } from '../../../model/run.ts'
import type { Reject, SourceFile } from '../../../model/source.ts'
import { hashOfReject } from '../../shared/reject-hash.ts'
import { hostTime } from './clock.ts'
import { recordSchema } from './schema.ts'

/** Rows that go over in one statement, as one text. */
const BATCH_ROWS = 1_000

/**
 * Keeps rejected rows whole, in the transaction that the connection is in. Those that are there already, from this very
 * content of the file, stay as they are, so that a rerun does not double them.
 */
export async function keepQuarantined(
  local: LocalConnection,
  catalog: string,
  table: string,
  start: RunStart,
  files: readonly SourceFile[],
  rejects: readonly Reject[],
): Promise<void> {
  const sha256ByPath = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  const rows = rejects.map((reject, ordinal) => ({
    file: reject.file,
    sha256: hashOfReject(reject, sha256ByPath),
    // As text: DuckDB reads numbers of a JSON text as they are written.
    line: String(reject.line ?? ordinal),
    column: reject.column,
    value: reject.value,
    reason: reject.reason,
    raw: reject.raw ?? null,
  }))
  for (let begin = 0; begin < rows.length; begin += BATCH_ROWS) {
    await local.duckdb.run(
      `insert into ${recordSchema(catalog)}.quarantine
              (pipeline, table_name, slice, file, file_sha256, line, column_name, value, reason, raw, attempt_id, "at")
       select distinct on (r.sha256, r.line) $1, $2, $3, r.file, r.sha256, r.line, r."column", r.value, r.reason, r.raw, $4, ${hostTime()}
         from (select unnest(from_json($5::json, '[${ROW}]')) as r)
       on conflict do nothing`,
      [
        start.pipeline,
        table,
        start.slice,
        start.attemptId,
        JSON.stringify(rows.slice(begin, begin + BATCH_ROWS)),
      ],
    )
  }
}

const ROW = JSON.stringify({
  file: 'VARCHAR',
  sha256: 'VARCHAR',
  line: 'BIGINT',
  column: 'VARCHAR',
  value: 'VARCHAR',
  reason: 'VARCHAR',
  raw: 'VARCHAR',
})
