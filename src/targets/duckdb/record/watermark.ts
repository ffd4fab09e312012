import type { DuckDBValue } from '@duckdb/node-api'
import { StetError } from '../../../errors.ts'
import type { LocalConnection } from '../../../model/local.ts'
import type { Watermark } from '../../../model/slice.ts'
import type { CommitExtras } from '../../../model/target.ts'
import { hostTime, isoSql } from './clock.ts'
import { recordSchema } from './schema.ts'

/** The watermark of a pipeline in a table, or null. The record has to have tables for it. */
export async function findWatermark(
  local: LocalConnection,
  catalog: string,
  pipeline: string,
  table: string,
): Promise<Watermark | null> {
  const [found] = await selectWatermarks(local, catalog, 'where pipeline = $1 and table_name = $2', [
    pipeline,
    table,
  ])
  return found ?? null
}

/** All watermarks of a record. */
export async function listWatermarks(local: LocalConnection, catalog: string): Promise<readonly Watermark[]> {
  return selectWatermarks(local, catalog, 'order by pipeline, table_name', [])
}

/** Sets a watermark in the transaction that the connection is in. */
export async function writeWatermark(
  local: LocalConnection,
  catalog: string,
  watermark: Omit<Watermark, 'setAt'>,
): Promise<void> {
  const { pipeline, table, cursor, value, definition, setBy } = watermark
  // Later than the one before by all means: by this moment a run finds out that it is not the one it has read.
  await local.duckdb.run(
    `insert into ${recordSchema(catalog)}.watermark (pipeline, table_name, cursor_column, value, definition, set_at, set_by)
     select $1, $2, $3, $4, $5,
            greatest(${hostTime()}, (select max(set_at) + interval 1 microsecond
                                       from ${recordSchema(catalog)}.watermark
                                      where pipeline = $1
                                        and table_name = $2)),
            $6
     on conflict (pipeline, table_name) do update
        set cursor_column = excluded.cursor_column,
            value = excluded.value,
            definition = excluded.definition,
            set_at = excluded.set_at,
            set_by = excluded.set_by`,
    [pipeline, table, cursor, value, definition, setBy],
  )
}

/** Forgets a watermark, in the transaction that the connection is in. */
export async function forgetWatermark(
  local: LocalConnection,
  catalog: string,
  pipeline: string,
  table: string,
): Promise<void> {
  await local.duckdb.run(
    `delete from ${recordSchema(catalog)}.watermark where pipeline = $1 and table_name = $2`,
    [pipeline, table],
  )
}

/**
 * Moves the watermark that a run has read to where it has come (G4), in the transaction of its rows.
 *
 * @throws {StetError} `STET_SERIALIZATION` when the watermark is no longer the one that was read.
 */
export async function moveWatermark(
  local: LocalConnection,
  catalog: string,
  table: string,
  watermark: NonNullable<CommitExtras['watermark']>,
): Promise<void> {
  const { readAt, ...moved } = watermark
  const next = { ...moved, table }
  const current = await findWatermark(local, catalog, next.pipeline, table)
  if ((current?.setAt ?? null) !== readAt) {
    const became =
      current === null
        ? 'it is forgotten now'
        : `${current.setBy} set it to ${current.value} at ${current.setAt}`
    throw new StetError(
      'STET_SERIALIZATION',
      `The watermark of ${next.pipeline} in ${table} was set by someone else while this run read: ${became}; nothing was written`,
      { hint: 'Run again: it then reads from the watermark as it is now' },
    )
  }
  await writeWatermark(local, catalog, next)
}

async function selectWatermarks(
  local: LocalConnection,
  catalog: string,
  rest: string,
  values: readonly DuckDBValue[],
): Promise<readonly Watermark[]> {
  const reader = await local.duckdb.runAndReadAll(
    `select pipeline, table_name, cursor_column, value, definition, ${isoSql('set_at')} as set_at_text, set_by
       from ${recordSchema(catalog)}.watermark
      ${rest}`,
    [...values],
  )
  return reader.getRowObjects().map((row) => ({
    pipeline: String(row.pipeline),
    table: String(row.table_name),
    cursor: String(row.cursor_column),
    value: String(row.value),
    definition: String(row.definition),
    setAt: String(row.set_at_text),
    setBy: String(row.set_by),
  }))
}
