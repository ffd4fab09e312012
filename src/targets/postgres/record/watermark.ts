import { StetError } from '../../../errors.ts'
import type { Watermark } from '../../../model/slice.ts'
import type { CommitExtras } from '../../../model/target.ts'
import type { Connection, Row } from '../connection.ts'
import { utcSql } from './text.ts'

const COLUMNS = `pipeline, table_name, cursor_column, value, definition, ${utcSql('set_at')} as set_at_text, set_by`

/** @param table The table's name as the record has it. */
export async function readWatermark(
  connection: Connection,
  pipeline: string,
  table: string,
): Promise<Watermark | null> {
  const [row] = await connection.query(
    `select ${COLUMNS} from stet.watermark where pipeline = $1 and table_name = $2`,
    [pipeline, table],
  )
  return row === undefined ? null : watermarkOf(row)
}

export async function readWatermarks(connection: Connection): Promise<readonly Watermark[]> {
  const rows = await connection.query(`select ${COLUMNS} from stet.watermark order by pipeline, table_name`)
  return rows.map(watermarkOf)
}

function watermarkOf(row: Row): Watermark {
  return {
    pipeline: row.pipeline ?? '',
    table: row.table_name ?? '',
    cursor: row.cursor_column ?? '',
    value: row.value ?? '',
    definition: row.definition ?? '',
    setAt: row.set_at_text ?? '',
    setBy: row.set_by ?? '',
  }
}

/**
 * Moves the watermark in the transaction of the rows, if it still is the one that the run has read (G4). One that a person
 * has set back meanwhile must not be moved on over rows that this run did not read.
 *
 * @param table The table's name as the record has it.
 * @throws {StetError} `STET_SERIALIZATION` when it is another one.
 */
export async function moveWatermark(
  connection: Connection,
  { pipeline, cursor, value, definition, readAt }: NonNullable<CommitExtras['watermark']>,
  table: string,
  attemptId: string,
): Promise<void> {
  const row = [pipeline, table, cursor, value, definition, attemptId]
  const moved =
    readAt === null
      ? await connection.query(
          `insert into stet.watermark (pipeline, table_name, cursor_column, value, definition, set_by, set_at)
           values ($1, $2, $3, $4, $5, $6, clock_timestamp())
           on conflict (pipeline, table_name) do nothing
           returning 1`,
          row,
        )
      : await connection.query(
          // One microsecond on at the least: a clock that was set back must not give an old moment to a new watermark.
          `update stet.watermark
              set cursor_column = $3, value = $4, definition = $5, set_by = $6,
                  set_at = greatest(clock_timestamp(), set_at + interval '1 microsecond')
            where pipeline = $1 and table_name = $2 and ${utcSql('set_at')} = $7
            returning 1`,
          [...row, readAt],
        )
  if (moved.length === 1) return
  throw new StetError(
    'STET_SERIALIZATION',
    `The watermark of ${pipeline} on ${table} was set by someone else while this run read`,
    {
      hint: 'Nothing was written; run again, it reads from the new one. See who: stet watermark',
      details: { pipeline, table, value, readAt },
    },
  )
}
