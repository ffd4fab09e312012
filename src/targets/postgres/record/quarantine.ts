import type { Reject, SourceFile } from '../../../model/source.ts'
import { hashOfReject } from '../../shared/reject-hash.ts'
import type { Connection } from '../connection.ts'
import { jsonText } from './text.ts'

/** As much text as one statement carries; a row of its own may be longer. */
const BATCH_CHARACTERS = 4_000_000

export interface QuarantineOptions {
  readonly pipeline: string
  /** The table's name as the record has it. */
  readonly table: string
  readonly slice: string
  readonly attemptId: string
  /** Of the run: they give the hashes. */
  readonly files: readonly SourceFile[]
}

/**
 * Keeps rejected rows whole, in the transaction of the rows. A row is known by the hash of its file and its line there, so
 * that a rerun does not keep it twice. Where there is no file to hash, the row's own content stands in for it: a line number
 * alone would take another day's row for this one.
 */
export async function keepRejects(
  connection: Connection,
  rejects: readonly Reject[],
  { pipeline, table, slice, attemptId, files }: QuarantineOptions,
): Promise<void> {
  const hashes = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  const rows = rejects.map((reject, ordinal) => {
    const { file, line, column, value, reason, raw } = reject
    return jsonText({
      file: file ?? '',
      file_sha256: hashOfReject(reject, hashes),
      line: line ?? ordinal,
      column_name: column,
      value,
      reason,
      raw: raw ?? null,
    })
  })
  for (const batch of batches(rows)) {
    await connection.query(
      `insert into stet.quarantine (
         pipeline, table_name, slice, attempt_id,
         file, file_sha256, line, column_name, value, reason, raw)
       select $1, $2, $3, $4, r.*
         from jsonb_to_recordset($5::jsonb) as r (
           file text, file_sha256 text, line bigint, column_name text, value text, reason text, raw text)
       on conflict do nothing`,
      [pipeline, table, slice, attemptId, `[${batch.join(',')}]`],
    )
  }
}

function* batches(rows: readonly string[]): Generator<readonly string[]> {
  let batch: string[] = []
  let characters = 0
  for (const row of rows) {
    if (batch.length > 0 && characters + row.length > BATCH_CHARACTERS) {
      yield batch
      batch = []
      characters = 0
    }
    batch.push(row)
    characters += row.length
  }
  if (batch.length > 0) yield batch
}
