import { StetError } from '../../../errors.ts'
import type { Connection } from '../connection.ts'
import { sqlstateOf } from '../errors.ts'

/**
 * The record's schema, one entry a version, append only: a released entry is never edited, because databases exist that
 * have run it. `stet.version` says how many have run.
 */
const MIGRATIONS: readonly string[] = [
  `create table stet.lease (
  table_name text not null,
  slice text not null,
  epoch bigint not null,
  attempt_id text,
  run_id text,
  holder text,
  taken_at timestamptz,
  heartbeat_at timestamptz,
  timeout_ms bigint,
  backend_pid integer,
  backend_start timestamptz,
  primary key (table_name, slice)
);
create table stet.run (
  attempt_id text primary key,
  run_id text not null,
  pipeline text not null,
  source text not null,
  table_name text not null,
  slice text not null,
  strategy text not null,
  truth text not null,
  holder text not null,
  stet_version text not null,
  epoch bigint,
  status text not null check (status in ('running', 'succeeded', 'failed', 'interrupted')),
  started_at timestamptz not null default clock_timestamp(),
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
  files jsonb not null default '[]',
  rejects jsonb not null default '[]',
  error_code text,
  error_message text
);
create index run_by_start on stet.run (started_at desc);
create index run_by_run_id on stet.run (run_id);
comment on table stet.run is 'One row for each attempt of a Stet pipeline; written in the commit of its rows';
comment on table stet.lease is 'Which attempt may write which table and slice'`,
  `alter table stet.run
  add column window_from text,
  add column window_to text,
  add column logical_time text,
  add column code text,
  add column rerun_of text,
  add column rows_outside bigint,
  add column rows_marked bigint,
  add column rows_restored bigint,
  add column rows_missing bigint;
update stet.run
   set rows_outside = 0, rows_marked = 0, rows_restored = 0, rows_missing = 0
 where rows_read is not null;
create index run_by_slice on stet.run (table_name, slice);
create table stet.watermark (
  pipeline text not null,
  table_name text not null,
  cursor_column text not null,
  value text not null,
  definition text not null,
  set_at timestamptz not null,
  set_by text not null,
  primary key (pipeline, table_name)
);
create table stet.event (
  at timestamptz not null,
  kind text not null,
  pipeline text,
  table_name text not null,
  slice text,
  detail text not null,
  done_by text not null
);
create table stet.quarantine (
  pipeline text not null,
  table_name text not null,
  slice text not null,
  file text not null,
  file_sha256 text not null,
  line bigint not null,
  column_name text,
  value text,
  reason text not null,
  raw text,
  attempt_id text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (pipeline, table_name, slice, file_sha256, line)
);
comment on table stet.watermark is 'How far each Stet pipeline has read its source; moved in the commit of the rows';
comment on table stet.event is 'What people did to the record: stet thaw, stet watermark set';
comment on table stet.quarantine is 'Rows that could not be loaded, whole; kept in the commit of the run that met them first';
comment on column stet.quarantine.file_sha256 is 'Of the file; of the row itself where it came from no file'`,
]

/** The first version with watermarks, events and the quarantine. */
export const SLICES_VERSION = 2

/** What the user that loads has to be granted, no more, by the version that brought the tables. */
const GRANTS: readonly ((user: string) => readonly string[])[] = [
  (user) => [
    `grant usage on schema stet to ${user};`,
    `grant select on stet.version to ${user};`,
    `grant select, insert, update on stet.lease, stet.run to ${user};`,
  ],
  (user) => [
    `grant select, insert, update, delete on stet.watermark to ${user};`,
    `grant select, insert on stet.event, stet.quarantine to ${user};`,
  ],
]

/** Any two starts of Stet meet here and nowhere else. */
const MIGRATION_LOCK = '8391362750153982513'

/**
 * Brings schema `stet` up to date, in the caller's transaction. Processes that start at once wait for one another.
 *
 * @throws {StetError} `STET_VERSION` when a newer Stet has been here, `STET_PRIVILEGE` with the SQL to run once.
 */
export async function migrate(connection: Connection): Promise<void> {
  try {
    if ((await versionOf(connection)) === MIGRATIONS.length) return
    await connection.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    // Another process may have done it while this one waited.
    const version = await versionOf(connection)
    const pending = MIGRATIONS.slice(version)
    if (pending.length > 0) await connection.query(migrationSql(version, pending))
  } catch (error) {
    if (sqlstateOf(error) !== '42501') throw error
    throw new StetError(
      'STET_PRIVILEGE',
      'The user of the target may not make or use schema "stet", where runs are recorded',
      {
        hint: `Run once as an owner of the database:\n${await setupSql(connection)}`,
        cause: error,
      },
    )
  }
}

/** How many migrations the database has run; 0 where there is no schema `stet`. */
export async function versionOf(connection: Connection): Promise<number> {
  const [found] = await connection.query(
    `select exists (select from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
                     where n.nspname = 'stet' and c.relname = 'version') as there`,
  )
  if (found?.there !== 't') return 0
  const [row] = await connection.query('select max(version) as version from stet.version')
  const version = Number(row?.version ?? 0)
  if (version > MIGRATIONS.length) {
    throw new StetError(
      'STET_VERSION',
      `Schema "stet" of the target has version ${version}; this Stet knows ${MIGRATIONS.length}`,
      { hint: 'Use the newer Stet that wrote it: npm install stet@latest' },
    )
  }
  return version
}

function migrationSql(from: number, pending: readonly string[]): string {
  const steps = pending.map(
    (sql, position) => `${sql};\ninsert into stet.version (version) values (${from + position + 1});`,
  )
  const start =
    from === 0
      ? [
          'create schema if not exists stet;',
          'create table stet.version (version integer primary key, applied_at timestamptz not null default clock_timestamp());',
        ]
      : []
  return [...start, ...steps].join('\n')
}

/** For an owner to run once, where the user that loads may not create a schema, or not change one that is there. */
async function setupSql(connection: Connection): Promise<string> {
  const user = await currentUser(connection)
  const version = await versionByCatalogue(connection)
  const pending = MIGRATIONS.slice(version)
  return [
    'begin;',
    ...(pending.length === 0 ? [] : [migrationSql(version, pending)]),
    ...GRANTS.flatMap((grants) => grants(user)),
    'commit;',
  ].join('\n')
}

/** As everybody can see it: who was refused may not be able to read `stet.version`. */
async function versionByCatalogue(connection: Connection): Promise<number> {
  try {
    const [row] = await connection.query(
      `select count(*) as version
         from pg_class as c
         join pg_namespace as n
           on n.oid = c.relnamespace
        where n.nspname = 'stet' and c.relname in ('run', 'watermark')`,
    )
    return Number(row?.version ?? 0)
  } catch {
    return 0
  }
}

async function currentUser(connection: Connection): Promise<string> {
  try {
    // The statement that was refused has spoilt the transaction.
    await connection.query('rollback')
    const [row] = await connection.query('select quote_ident(current_user) as name')
    return row?.name ?? 'the_user'
  } catch {
    return 'the_user'
  }
}
