import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { contractFor, type Load, load } from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import { postgres } from './index.ts'

interface Refusal {
  readonly why: string
  readonly setup: string
  readonly load?: Partial<Load>
  readonly code: string
  readonly message: RegExp
  readonly hint?: string
}

const LOAD: Load = {
  table: 't',
  write: { strategy: 'upsert', key: ['k'] },
  columns: { k: 'text', v: 'text' },
  rows: [],
}

/** For connections that come later. */
function searchPath(path: string): string {
  const set = `alter database %I set search_path = ${path}`
  return `do $do$ begin execute format($sql$${set}$sql$, current_database()); end $do$`
}

const REFUSALS: readonly Refusal[] = [
  {
    why: 'a view',
    setup: `create table b (k text primary key, v text); create view t as select * from b`,
    code: 'STET_CONFIG',
    message: /t: it is a view/,
  },
  {
    why: 'a materialized view',
    setup: `create materialized view t as select 'a'::text as k, 'b'::text as v`,
    code: 'STET_CONFIG',
    message: /materialized view/,
  },
  {
    why: 'a foreign table',
    setup: `create foreign data wrapper w; create server s foreign data wrapper w; create foreign table t (k text, v text) server s`,
    code: 'STET_CONFIG',
    message: /foreign table/,
  },
  {
    why: 'a parent of other tables',
    setup: `create table t (k text primary key, v text); create table child () inherits (t)`,
    code: 'STET_CONFIG',
    message: /inherit/,
  },
  {
    why: 'a table with rules',
    setup: `create table t (k text primary key, v text); create rule quiet as on insert to t do instead nothing`,
    code: 'STET_CONFIG',
    message: /rule quiet/,
  },
  {
    why: 'no unique constraint',
    setup: `create table t (k text, v text)`,
    code: 'STET_KEY_CONSTRAINT',
    message: /no unique constraint covers exactly these columns/,
    hint: 'Run: alter table public.t add constraint "t_k_key" unique ("k")',
  },
  {
    why: 'a unique constraint on more than the key',
    setup: `create table t (k text, v text, unique (k, v))`,
    code: 'STET_KEY_CONSTRAINT',
    message: /exactly/,
  },
  {
    why: 'a unique constraint on less than the key',
    setup: `create table t (k text unique, v text)`,
    load: { write: { strategy: 'upsert', key: ['k', 'v'] } },
    code: 'STET_KEY_CONSTRAINT',
    message: /exactly/,
    hint: 'Run: alter table public.t add constraint "t_k_v_key" unique ("k", "v")',
  },
  {
    why: 'a unique index over an expression',
    setup: `create table t (k text, v text); create unique index on t (lower(k))`,
    code: 'STET_KEY_CONSTRAINT',
    message: /exactly/,
  },
  {
    why: 'a partial unique index',
    setup: `create table t (k text, v text); create unique index partly on t (k) where v is not null`,
    code: 'STET_KEY_CONSTRAINT',
    message: /"partly" holds only where/,
  },
  {
    why: 'a deferrable constraint',
    setup: `create table t (k text, v text, constraint late unique (k) deferrable)`,
    code: 'STET_KEY_CONSTRAINT',
    message: /"late" is deferrable/,
  },
  {
    why: 'NULL in the key more than once',
    setup: `create table t (k text unique, v text)`,
    load: { write: { strategy: 'upsert', key: ['k'], nullKeys: 'match' } },
    code: 'STET_KEY_CONSTRAINT',
    message: /NULL in more than once/,
    hint: 'Run: alter table public.t add constraint "t_k_key1" unique nulls not distinct ("k")',
  },
  {
    why: 'a collation that is blind to case',
    setup: `create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false); create table t (k text collate blind primary key, v text)`,
    code: 'STET_KEY_CONSTRAINT',
    message: /"k": its collation "blind" takes different texts for equal/,
  },
  {
    why: 'a type with several spellings',
    setup: `create table t (k interval primary key, v text)`,
    load: { columns: { k: 'interval', v: 'text' } },
    code: 'STET_KEY_CONSTRAINT',
    message: /interval can take different texts for equal/,
  },
  {
    why: 'a float as key',
    setup: `create table t (k double precision primary key, v text)`,
    load: { columns: { k: 'double precision', v: 'text' } },
    code: 'STET_KEY_CONSTRAINT',
    message: /-0 and 0/,
  },
  {
    why: 'a column that the table lacks',
    setup: `create table t (k text primary key)`,
    code: 'STET_COLUMNS',
    message: /no column "v"/,
    hint: 'Run: alter table public.t add column "v" text',
  },
  {
    why: 'a column that the load lacks',
    setup: `create table t (k text primary key, v text, needed integer not null)`,
    code: 'STET_COLUMNS',
    message: /demands a value for "needed"/,
  },
  {
    why: 'a generated column',
    setup: `create table t (k text primary key, v text generated always as (k || '!') stored)`,
    code: 'STET_COLUMNS',
    message: /computes "v" itself/,
  },
  {
    why: 'an identity that is always generated',
    setup: `create table t (k integer generated always as identity primary key, v text)`,
    load: { columns: { k: 'integer', v: 'text' } },
    code: 'STET_COLUMNS',
    message: /numbers "k" itself/,
    hint: 'Leave the column out, or run: alter table public.t alter column "k" set generated by default',
  },
  {
    why: 'a kept column that is not there',
    setup: `create table t (k text primary key, v text)`,
    load: { keep: { updatedAt: 'changed', contentHash: null } },
    code: 'STET_COLUMNS',
    message: /no column "changed"/,
    hint: 'Run: alter table public.t add column "changed" timestamptz',
  },
  {
    why: 'a kept column of another type',
    setup: `create table t (k text primary key, v text, changed integer)`,
    load: { keep: { updatedAt: 'changed', contentHash: null } },
    code: 'STET_COLUMNS',
    message: /"changed" of public.t is integer/,
  },
  {
    why: 'a column for marks that is not there',
    setup: `create table t (k text primary key, v text)`,
    load: { keep: { gone: 'deleted at' } },
    code: 'STET_COLUMNS',
    message: /no column "deleted at", which Stet is to keep/,
    hint: 'Run: alter table public.t add column "deleted at" timestamptz',
  },
  {
    why: 'a column for marks that live rows cannot leave empty',
    setup: `create table t (k text primary key, v text, gone timestamptz not null default now())`,
    load: { keep: { gone: 'gone' } },
    code: 'STET_COLUMNS',
    message: /"gone" of public.t refuses NULL/,
    hint: 'Run: alter table public.t alter column "gone" drop not null',
  },
  {
    why: 'a schema that is not there',
    setup: '',
    load: { table: 'nowhere.t' },
    code: 'STET_CONFIG',
    message: /no schema "nowhere"/,
    hint: 'Run: create schema "nowhere"',
  },
  {
    why: 'a search path that names no schema',
    setup: searchPath('nowhere'),
    code: 'STET_CONFIG',
    message: /Cannot tell in which schema "t" is: the search path \(nowhere\) names none that is there/,
    hint: 'Name the schema: --table public."t" (table in a pipeline)',
  },
  {
    why: 'an empty search path',
    setup: searchPath("''"),
    code: 'STET_CONFIG',
    message: /Cannot tell in which schema "t" is: the search path \(""\) names none/,
  },
  {
    why: 'a search path of pg_catalog alone',
    setup: searchPath('pg_catalog'),
    code: 'STET_CONFIG',
    message: /pg_catalog\.t: the schema pg_catalog is PostgreSQL's own/,
    hint: 'Name a table in another schema, such as --table public."t" (table in a pipeline)',
  },
  {
    why: 'a table of PostgreSQL itself, by a name without a schema',
    setup: '',
    load: { table: 'pg_class' },
    code: 'STET_CONFIG',
    message: /pg_catalog\.pg_class: the schema pg_catalog is PostgreSQL's own/,
  },
  {
    why: 'a temporary table, which would be gone with the connection',
    setup: '',
    load: { table: 'pg_temp.t' },
    code: 'STET_CONFIG',
    message: /the schema pg_temp is PostgreSQL's own/,
  },
  {
    why: 'the information schema',
    setup: '',
    load: { table: 'information_schema.t' },
    code: 'STET_CONFIG',
    message: /the schema information_schema is PostgreSQL's own/,
  },
  {
    why: "the schema of Stet's own record",
    setup: '',
    load: { table: 'stet.run' },
    code: 'STET_CONFIG',
    message: /Cannot load into stet\.run: the schema stet holds Stet's own record/,
  },
  {
    why: 'more columns than a table can have',
    setup: '',
    load: {
      columns: Object.fromEntries(
        ['k', ...Array.from({ length: 1600 }, (_, n) => `c${n}`)].map((c) => [c, 'text']),
      ),
    },
    code: 'STET_COLUMNS',
    message: /Cannot create public\.t with 1,601 columns: PostgreSQL holds 1,600/,
  },
  {
    why: 'a table name over 63 bytes',
    setup: '',
    load: { table: 'x'.repeat(64) },
    code: 'STET_CONFIG',
    message: /64 bytes/,
  },
  {
    why: 'a column name over 63 bytes',
    setup: '',
    load: { columns: { k: 'text', ['ü'.repeat(32)]: 'text' } },
    code: 'STET_CONFIG',
    message: /64 bytes/,
  },
  {
    why: 'a long name that cut would be another column',
    setup: `create table t (k text primary key, ${'x'.repeat(63)} text)`,
    load: { columns: { k: 'text', ['x'.repeat(64)]: 'text' } },
    code: 'STET_CONFIG',
    message: /64 bytes/,
  },
]

/** What `prepare` says of a load, in the mode that needs no rights to write. */
async function prepare(url: string, request: Load): Promise<void> {
  await using local = await openLocalEngine()
  await using session = await postgres({ url }).open({
    table: request.table,
    write: request.write,
    local,
    mode: 'plan',
    lockTimeoutMs: 1_000,
    leaseTimeoutMs: 15_000,
    signal: new AbortController().signal,
    notice: () => undefined,
  })
  const table = await session.describe()
  await session.prepare(contractFor(request, table))
}

for (const { name, url } of postgresServers()) {
  for (const { why, setup, load: changes, code, message, hint } of REFUSALS) {
    test(`refused before anything is written: ${why} (${name})`, async () => {
      const database = await freshDatabase(url)
      await using db = await connect(database)
      await db.client.query(setup)
      const error: unknown = await prepare(database, { ...LOAD, ...changes }).catch(
        (thrown: unknown) => thrown,
      )
      expect(error).toMatchObject({
        code,
        message: expect.stringMatching(message),
        ...(hint === undefined ? {} : { hint }),
      })
      expect((await db.client.query(`select 1 from pg_namespace where nspname = 'stet'`)).rows).toEqual([])
      if (code !== 'STET_KEY_CONSTRAINT' || hint === undefined) return
      await db.client.query((hint ?? '').replace('Run: ', ''))
      await prepare(database, { ...LOAD, ...changes })
    })
  }

  test(`a key is enforced by a primary key, a unique constraint or a unique index, in any order of columns (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    for (const constraint of ['primary key (v, k)', 'unique (k, v)', 'unique (v, k)']) {
      await db.client.query(`drop table if exists t; create table t (k text, v text, ${constraint})`)
      await prepare(database, { ...LOAD, write: { strategy: 'upsert', key: ['k', 'v'] } })
    }
    await db.client.query(
      'drop table t; create table t (k text, v text); create unique index on t (v, k) include (k)',
    )
    await prepare(database, { ...LOAD, write: { strategy: 'upsert', key: ['k', 'v'] } })
  })

  test(`a table is described with its types, defaults, domains and kept columns (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(`
      create domain price as numeric(12,2) check (value >= 0);
      create domain fair_price as price;
      create schema "Sales";
      create table "Sales"."Orders" (
        id integer generated by default as identity, ref varchar(20) not null, p fair_price not null default 0,
        doubled numeric generated always as (id * 2) stored, tags text[], stamp timestamptz);
      comment on column "Sales"."Orders".stamp is 'stet:updated_at';
      insert into "Sales"."Orders" (ref) values ('a'), ('b')`)
    await using local = await openLocalEngine()
    await using session = await postgres({ url: database }).open({
      table: '"Sales"."Orders"',
      write: LOAD.write,
      local,
      mode: 'plan',
      lockTimeoutMs: 1_000,
      leaseTimeoutMs: 15_000,
      signal: new AbortController().signal,
      notice: () => undefined,
    })
    expect(await session.describe()).toEqual({
      name: '"Sales"."Orders"',
      rowsEstimate: 2,
      uniques: [],
      columns: [
        {
          name: 'id',
          type: { kind: 'integer' },
          native: 'integer',
          nullable: false,
          generated: false,
          optional: true,
          kept: undefined,
        },
        {
          name: 'ref',
          type: { kind: 'varchar', length: 20 },
          native: 'character varying(20)',
          nullable: false,
          generated: false,
          optional: false,
          kept: undefined,
        },
        {
          name: 'p',
          type: { kind: 'numeric', precision: 12, scale: 2 },
          native: 'fair_price',
          nullable: false,
          generated: false,
          optional: true,
          kept: undefined,
        },
        {
          name: 'doubled',
          type: { kind: 'numeric' },
          native: 'numeric',
          nullable: true,
          generated: true,
          optional: true,
          kept: undefined,
        },
        {
          name: 'tags',
          type: { kind: 'other', native: 'text[]' },
          native: 'text[]',
          nullable: true,
          generated: false,
          optional: true,
          kept: undefined,
        },
        {
          name: 'stamp',
          type: { kind: 'timestamptz' },
          native: 'timestamp with time zone',
          nullable: true,
          generated: false,
          optional: true,
          kept: 'updatedAt',
        },
      ],
    })
  })

  test(`a plan needs no more than select, and leaves nothing (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const role = `reader_${new URL(database).pathname.slice(1)}`
    await db.client.query(`
      create table t (k text primary key, v text); insert into t values ('a', '1');
      create role ${role} login; grant select on t to ${role}`)
    const asReader = new URL(database)
    asReader.username = role
    await using local = await openLocalEngine()
    await using session = await postgres({ url: asReader.href }).open({
      table: 't',
      write: LOAD.write,
      local,
      mode: 'plan',
      lockTimeoutMs: 1_000,
      leaseTimeoutMs: 15_000,
      signal: new AbortController().signal,
      notice: () => undefined,
    })
    const contract = contractFor(LOAD, await session.describe())
    await session.prepare(contract)
    await session.begin()
    expect((await session.rowsInScope(contract, { kind: 'table' })).rows).toBe(1)
    await local.run(
      `create table keys as select 'k' || i as c0 from range(100001) as r (i) union all select 'a'`,
    )
    expect((await session.rowsInScope(contract, { kind: 'keys', keys: 'keys', count: 100_002 })).rows).toBe(1)
    const statements = session.statements().join(';\n')
    expect(statements).toMatch(/on conflict \("k"\) do update/)
    await db.client.query(`drop owned by ${role}`)
  })

  test(`a user who may not make schema stet is told the SQL to run once, and it is enough (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const role = `loader_${new URL(database).pathname.slice(1)}`
    await db.client.query(
      `create table t (k text primary key, v text); create role ${role} login; grant select, insert, update, delete on t to ${role}`,
    )
    const asLoader = new URL(database)
    asLoader.username = role

    const target = postgres({ url: asLoader.href })
    const request: Load = { ...LOAD, rows: [['a', '1']] }
    const error = await load(target, request).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STET_PRIVILEGE', hint: expect.stringContaining(`to ${role}`) })
    const hint = (error as { hint: string }).hint
    await db.client.query(hint.slice(hint.indexOf('\n')))
    expect(await load(target, request)).toMatchObject({ inserted: 1 })
    expect(
      await load(target, {
        ...request,
        write: { strategy: 'replace-table', key: ['k'] },
        rows: [['b', '1']],
      }),
    ).toMatchObject({ inserted: 1, deleted: 1 })
  })

  test(`a target written by a newer Stet is refused (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)

    const target = postgres({ url: database })
    await load(target, { ...LOAD, rows: [['a', '1']] })
    await db.client.query('insert into stet.version (version) values (999)')
    await expect(load(target, { ...LOAD, rows: [['a', '1']] })).rejects.toMatchObject({
      code: 'STET_VERSION',
    })
    await expect(target.openRunLog({ signal: new AbortController().signal })).rejects.toMatchObject({
      code: 'STET_VERSION',
    })
  })
}

test('a url that cannot be read is refused without showing it', () => {
  expect(() => postgres({ url: 'not a url:secret' })).toThrow(
    expect.objectContaining({ code: 'STET_CONFIG', message: expect.not.stringContaining('secret') }),
  )
})

test('a description shows where, and never the password', () => {
  expect(postgres({ url: 'postgres://me:secret@db.example:5433/shop?sslmode=require' }).description).toBe(
    'postgres://me@db.example:5433/shop',
  )
})

test('a server that is not there is a lost connection, to be tried again', async () => {
  await expect(prepare('postgres://postgres@127.0.0.1:1/x', { ...LOAD })).rejects.toMatchObject({
    code: 'STET_CONNECTION',
  })
})

test.each([
  ['database', { pathname: '/nowhere' }, 'STET_CONFIG', /create database/],
  ['user', { username: 'nobody_here' }, 'STET_PRIVILEGE', /PGUSER/],
])('a %s that is not there is said with where it was named', async (_, other, code, hint) => {
  const url = Object.assign(new URL(await freshDatabase()), other)
  await expect(prepare(url.href, { ...LOAD })).rejects.toMatchObject({
    code,
    hint: expect.stringMatching(hint),
  })
})
