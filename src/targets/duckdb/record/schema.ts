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
]

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
