import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { check } from '../../src/check/command.ts'
import { connect, freshDatabase, postgresServers } from '../support/databases.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'stet-schema-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const TABLES = `
create schema shop;
create table shop.keyed (no text primary key, n int);
create table shop.counted (id bigint generated always as identity primary key, n int);
create table shop.loose (region text, shop text not null, n int, unique (region, shop));
create table shop.day (day date not null, n int, primary key (day)) partition by range (day);
create table shop.day_1 partition of shop.day for values from ('2025-01-01') to ('2025-02-01');
create function shop.touch() returns trigger language plpgsql as $$ begin new.at = now(); return new; end $$;
create table shop.stamped (no text primary key, n int, at timestamptz);
create trigger touch before update on shop.stamped for each row execute function shop.touch();
`
const LOAD = `insert into shop.keyed select no, n from s;
insert into shop.counted (n) select n from s;
insert into shop.loose select region, shop, n from s on conflict (region, shop) do update set n = excluded.n;
insert into shop.day_1 select day, n from s;
insert into shop.stamped (no, n) select no, n from s on conflict (no) do update set n = excluded.n;
insert into shop.missing select no from s;
`

test.each(postgresServers())(
  '--schema postgres://: keys, nullability, stamping triggers of $name',
  async ({ url }) => {
    const database = await freshDatabase(url)
    {
      await using session = await connect(database)
      await session.client.query(TABLES)
    }
    mkdirSync(join(root, 'etl'))
    writeFileSync(join(root, 'etl', 'load.sql'), LOAD)
    const { findings } = await check({ root, schema: database })
    const loud = findings.filter((one) => one.severity !== 'info')
    expect(loud.map((one) => `${one.from.line} ${one.rule} ${one.severity} ${one.confidence}`)).toEqual([
      '2 insert-no-key error high',
      '3 nullable-key warning high',
      '5 upsert-no-guard warning medium',
      '6 insert-no-key error medium',
    ])
    // Nothing is written, not even a temporary table.
    await using session = await connect(database)
    const { rows } = await session.client.query(
      'select count(*)::int as n from pg_stat_user_tables where n_tup_ins + n_tup_upd + n_tup_del > 0',
    )
    expect(rows).toEqual([{ n: 0 }])
  },
)

test('a database that is not reached is told without its password', async () => {
  writeFileSync(join(root, 'a.sql'), 'select 1;\n')
  const error = await check({ root, schema: 'postgres://u:secret@127.0.0.1:1/none' }).catch(
    (thrown: unknown) => thrown,
  )
  expect(error).toMatchObject({ code: 'STET_CONNECTION' })
  expect(String(error)).not.toContain('secret')
})

test('the dump of a schema counts before the DDL of the repository', async () => {
  mkdirSync(join(root, 'etl'))
  writeFileSync(join(root, 'etl', 'tables.sql'), 'create table shop (no text, n int);\n')
  writeFileSync(join(root, 'etl', 'load.sql'), 'insert into shop select no, n from s;\n')
  expect((await check({ root })).failing).toBe(1)
  writeFileSync(
    join(root, 'dump.sql'),
    'create table public.shop (no text not null, n int);\nalter table only public.shop add constraint shop_pkey primary key (no);\n',
  )
  expect((await check({ root, paths: ['etl'], schema: 'dump.sql' })).failing).toBe(0)
})

test('target/manifest.json says what a macro or a package sets; the file has the last word', async () => {
  mkdirSync(join(root, 'models'))
  mkdirSync(join(root, 'target'))
  writeFileSync(join(root, 'dbt_project.yml'), 'name: shop\n')
  const body =
    "select * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere at >= (select max(at) from {{ this }})\n{% endif %}\n"
  writeFileSync(join(root, 'models', 'by_macro.sql'), `{{ config(**settings()) }}\n${body}`)
  writeFileSync(join(root, 'models', 'keyed.sql'), `{{ config(materialized='incremental') }}\n${body}`)
  writeFileSync(
    join(root, 'models', 'own.sql'),
    `{{ config(materialized='incremental', unique_key='id') }}\n${body}`,
  )
  const lines = async (): Promise<string[]> =>
    (await check({ root })).findings
      .filter((one) => one.rule === 'dbt-no-key' || one.rule === 'nullable-key')
      .map((one) => `${one.path} ${one.rule} ${one.severity}`)
  expect(await lines()).toEqual(['models/keyed.sql dbt-no-key error'])
  const model = (name: string, config: object): object => ({
    [`model.shop.${name}`]: {
      resource_type: 'model',
      original_file_path: `models/${name}.sql`,
      config,
      columns: { id: {}, other: {} },
    },
  })
  writeFileSync(
    join(root, 'target', 'manifest.json'),
    JSON.stringify({
      nodes: {
        ...model('by_macro', { materialized: 'incremental', unique_key: null }),
        ...model('keyed', { materialized: 'incremental', unique_key: 'id' }),
        ...model('own', { materialized: 'incremental', unique_key: 'other' }),
        'test.shop.n': {
          attached_node: 'model.shop.keyed',
          test_metadata: { name: 'not_null', kwargs: { column_name: 'id' } },
        },
        'test.shop.o': {
          attached_node: 'model.shop.own',
          test_metadata: { name: 'not_null', kwargs: { column_name: 'id' } },
        },
      },
    }),
  )
  expect(await lines()).toEqual(['models/by_macro.sql dbt-no-key error'])
})
