import { StetError } from '../../../errors.ts'
import type { LocalConnection } from '../../../model/local.ts'

/**
 * The steps that make the record's schema, oldest first. A step that has been published never changes: a new one is
 * added, and a file of any age is brought up to date by the steps that it lacks.
 */
const MIGRATIONS: readonly ((schema: string) => readonly string[])[] = [
  (schema) => [
    `create table ${schema}.run (
       attempt_id varchar not null,
       run_id varchar not null,
       pipeline varchar not null,
       source varchar not null,
       slice varchar not null,
       table_name varchar not null,
       strategy varchar not null,
       truth varchar not null,
       key_columns varchar,
       table_rows bigint,
       holder varchar not null,
       stet_version varchar not null,
       status varchar not null,
       started_at timestamptz not null,
       finished_at timestamptz,
       rows_read bigint,
       rows_filtered bigint,
       rows_added bigint,
       rows_after_transform bigint,
       rows_rejected bigint,
       rows_duplicate bigint,
       rows_inserted bigint,
       rows_updated bigint,
       rows_unchanged bigint,
       rows_stale bigint,
       rows_frozen bigint,
       rows_deleted bigint,
       files varchar,
       rejects varchar,
       error_code varchar,
       error_message varchar)`,
    `comment on table ${schema}.run is 'One line for each attempt of a run of Stet'`,
    `comment on column ${schema}.run.key_columns is 'The key by which every row was there once when the run ended'`,
    `comment on column ${schema}.run.table_rows is 'Rows of the table when the run ended'`,
  ],
  (schema) => [
    ...['window_from', 'window_to', 'logical_time', 'code', 'rerun_of'].map(
      (name) => `alter table ${schema}.run add column ${name} varchar`,
    ),
    ...['rows_outside', 'rows_marked', 'rows_restored', 'rows_missing'].map(
      (name) => `alter table ${schema}.run add column ${name} bigint`,
    ),
    `update ${schema}.run
        set rows_outside = 0, rows_marked = 0, rows_restored = 0, rows_missing = 0
      where rows_read is not null`,
    `create table ${schema}.watermark (
       pipeline varchar not null,
       table_name varchar not null,
       cursor_column varchar not null,
       value varchar not null,
       definition varchar not null,
       set_at timestamptz not null,
       set_by varchar not null,
       primary key (pipeline, table_name))`,
    `create table ${schema}.event (
       "at" timestamptz not null,
       kind varchar not null,
       pipeline varchar,
       table_name varchar not null,
       slice varchar,
       detail varchar not null,
       done_by varchar not null)`,
    `create table ${schema}.quarantine (
       pipeline varchar not null,
       table_name varchar not null,
       slice varchar not null,
       file varchar,
       file_sha256 varchar not null,
       line bigint not null,
       column_name varchar,
       value varchar,
       reason varchar not null,
       raw varchar,
       attempt_id varchar not null,
       "at" timestamptz not null,
       primary key (pipeline, table_name, slice, file_sha256, line))`,
    `comment on table ${schema}.watermark is 'How far each pipeline has read its source'`,
    `comment on table ${schema}.event is 'What people have done to the record'`,
    `comment on table ${schema}.quarantine is 'Rejected rows, whole'`,
  ],
]

/** The version since which the record knows of slices, watermarks and events. */
export const SLICES_VERSION = 2

/** The record's schema in an attached file. */
export function recordSchema(catalog: string): string {
  return `${catalog}.stet`
}

/**
 * Brings the record's schema up to date, in one commit. The file is held by this process alone, so that two migrations
 * cannot meet.
 *
 * @throws {StetError} `STET_VERSION` when a newer Stet has written the record.
 */
export async function migrateRecord(
  local: LocalConnection,
  catalog: string,
  stetVersion: string,
): Promise<void> {
  const schema = recordSchema(catalog)
  const version = await recordVersion(local, catalog)
  refuseNewerRecord(version)
  if (version === MIGRATIONS.length) return
  await local.run('begin transaction')
  try {
    await local.run(`create schema if not exists ${schema}`)
    await local.run(`
      create table if not exists ${schema}.version (
        version integer not null,
        stet_version varchar not null,
        applied_at timestamptz not null)`)
    for (const [index, statements] of MIGRATIONS.entries()) {
      if (index < version) continue
      for (const statement of statements(schema)) await local.run(statement)
      await local.duckdb.run(`insert into ${schema}.version values ($1::integer, $2, now())`, [
        index + 1,
        stetVersion,
      ])
    }
    await local.run('commit')
  } catch (error) {
    await local.run('rollback').catch(() => undefined)
    throw error
  }
}

/** How many steps the record of a file has seen; 0 where there is none. */
export async function recordVersion(local: LocalConnection, catalog: string): Promise<number> {
  const there = await local.count(`
    select count(*)
      from duckdb_tables()
     where '"' || replace(database_name, '"', '""') || '"' = '${catalog.replaceAll("'", "''")}'
       and schema_name = 'stet'
       and table_name = 'version'`)
  return there === 0
    ? 0
    : local.count(`select coalesce(max(version), 0) from ${recordSchema(catalog)}.version`)
}

/** @throws {StetError} `STET_VERSION` */
export function refuseNewerRecord(version: number): void {
  if (version <= MIGRATIONS.length) return
  throw new StetError(
    'STET_VERSION',
    `The record in this file has version ${version}; this Stet knows versions up to ${MIGRATIONS.length}`,
    { hint: 'Update Stet: npm install stet@latest' },
  )
}
