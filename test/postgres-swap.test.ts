import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { openLocalEngine } from '../src/local/engine.ts'
import type { SliceSize } from '../src/model/slice.ts'
import type { WriteStrategy } from '../src/model/write.ts'
import { run } from '../src/pipeline/run.ts'
import { postgres } from '../src/targets/postgres/index.ts'
import { pipelineOf } from '../src/testing/kit.ts'
import { connect, postgresServers } from './support/databases.ts'
import { bench } from './support/postgres-bench.ts'
import { systemBinaries } from './support/postgres-binaries.ts'
import { contractFor, type Load, load, sliceNamed } from './support/postgres-target.ts'

const SWAP: WriteStrategy = {
  strategy: 'replace-partition',
  by: 'd',
  size: 'day',
  key: ['k', 'd'],
  apply: 'swap',
}
const COLUMNS = { k: 'text', d: 'date', v: 'text' }
const SEVENTH = sliceNamed('2026-08-07', 'd', 'day')
const REQUEST = { table: 't', write: SWAP, columns: COLUMNS, slice: SEVENTH } as const

const DAYS = `create table t (k text, d date, v text, note text default 'of the table', updated_at timestamptz, primary key (k, d)) partition by range (d);
  create table t6 partition of t for values from ('2026-08-06') to ('2026-08-07');
  create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08');
  insert into t values ('a', '2026-08-06', '1', 'mine', '2020-01-01'),
                       ('a', '2026-08-07', '1', 'mine', '2020-01-01'), ('b', '2026-08-07', '1', 'mine', '2020-01-01'),
                       ('c', '2026-08-07', '1', 'mine', '2020-01-01');`
const CHANGED = [
  ['a', '2026-08-07', '1'],
  ['b', '2026-08-07', '2'],
  ['e', '2026-08-07', '1'],
]

/** Everything that the catalogue says of a partition, but for numbers that only name it. */
const STRUCTURE = `
  select json_build_object('owner', pg_get_userbyid(relowner), 'acl', (select json_agg(a::text order by a::text) from unnest(relacl) as a),
         'options', reloptions, 'identity', relreplident, 'comment', obj_description(c.oid, 'pg_class'), 'bound', pg_get_expr(relpartbound, oid),
         'toast', (select reloptions from pg_class as t where t.oid = c.reltoastrelid))::text
    from pg_class as c where oid = 't7'::regclass
  union all
  select json_build_object('column', attname, 'type', format_type(atttypid, atttypmod), 'not null', attnotnull, 'storage', attstorage,
         'compression', attcompression, 'statistics', attstattarget, 'options', attoptions, 'acl', attacl, 'local', attislocal,
         'parents', attinhcount, 'generated', attgenerated, 'default', (select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = attrelid and adnum = attnum),
         'comment', col_description(attrelid, attnum))::text
    from pg_attribute where attrelid = 't7'::regclass and attnum > 0 and not attisdropped
  union all
  select json_build_object('constraint', conname, 'is', pg_get_constraintdef(oid), 'local', conislocal, 'parents', coninhcount,
         'inherits', conparentid <> 0, 'comment', obj_description(oid, 'pg_constraint'))::text
    from pg_constraint where conrelid = 't7'::regclass
  union all
  select json_build_object('index', pg_get_indexdef(indexrelid), 'clustered', indisclustered, 'identity', indisreplident,
         'of', (select inhparent::regclass from pg_inherits where inhrelid = indexrelid), 'comment', obj_description(indexrelid, 'pg_class'))::text
    from pg_index where indrelid = 't7'::regclass
  order by 1`

async function dump(url: string): Promise<string | null> {
  const system = systemBinaries(existsSync)
  const pgDump = system?.postgres.replace(/postgres$/, 'pg_dump') ?? ''
  // PostgreSQL from npm comes without it.
  if (!existsSync(pgDump) || new URL(url).port !== new URL(inject('systemPostgresUrl') ?? 'x:').port)
    return null
  const { stdout } = await promisify(execFile)(pgDump, ['-s', '-N', 'stet', url])
  return stdout.replaceAll(/^\\(un)?restrict .*$/gm, '')
}

for (const { name, url } of postgresServers()) {
  test(`a swap leaves what writing in place would leave, and carries over what it does not change (${name})`, async () => {
    await using b = await bench(url, `${DAYS} alter table t7 alter note set default 'of the partition';`)
    const before = await b.rows(`select t.*, xmin::text, ctid::text from t6 as t`)
    const applied = await load(b.target, { ...REQUEST, rows: CHANGED, keep: { updatedAt: 'updated_at' } })
    expect(applied).toEqual({
      inserted: 1,
      updated: 1,
      unchanged: 0,
      stale: 0,
      frozen: 0,
      deleted: 1,
      marked: 0,
      restored: 0,
    })
    expect(await b.rows(`select k, v, note, updated_at > '2025-01-01' from t7 order by k`)).toEqual([
      ['a', '1', 'mine', false],
      ['b', '2', 'mine', true],
      ['e', '1', 'of the table', true],
    ])
    expect(await b.rows(`select t.*, xmin::text, ctid::text from t6 as t`)).toEqual(before)
    expect(await b.rows('select count(*)::int from t')).toEqual([[4]])
    const partition = await b.rows(`select 't7'::regclass::oid`)
    expect(await load(b.target, { ...REQUEST, rows: CHANGED })).toMatchObject({
      inserted: 0,
      updated: 0,
      deleted: 0,
    })
    expect(await b.rows(`select 't7'::regclass::oid`)).toEqual(partition)
    expect(await b.rows(`select relname from pg_class where relname like 'stet_swap%'`)).toEqual([])
  })

  test(`the exchanged partition is the old one in all but its rows, and views of the table go on (${name})`, async () => {
    await using b = await bench(
      url,
      `create role reader_${process.pid} ; create role clerk_${process.pid};
       create table other (v text primary key); insert into other values ('1'), ('2');
       create table t (k text, d date, v text references other, n integer check (n > 0), big text, twice integer generated always as (n * 2) stored,
                       constraint t_key primary key (k, d)) partition by range (d);
       create index t_v on t (v) where v <> 'x';
       create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08')
         with (fillfactor = 80, autovacuum_enabled = false, toast.autovacuum_enabled = false);
       alter table t7 alter n set default 7, alter n set statistics 50, alter k set (n_distinct = -0.5), alter big set storage external;
       alter table t7 add constraint t7_short check (length(k) < 100), add constraint t7_unique unique (d, k) deferrable initially deferred;
       create index "t7 Own" on t7 (lower(k) desc nulls last) include (n) with (fillfactor = 70);
       alter table t7 cluster on "t7 Own";
       alter table t7 replica identity using index t7_pkey;
       comment on table t7 is 'the seventh, it''s'; comment on column t7.k is 'its key'; comment on index "t7 Own" is 'own';
       comment on constraint t7_pkey on t7 is 'pk'; comment on constraint t7_short on t7 is 'short';
       grant select on t7 to reader_${process.pid} with grant option; grant insert, update (v) on t7 to clerk_${process.pid}; grant select on t7 to public;
       alter default privileges grant delete on tables to clerk_${process.pid};
       create view seen as select k, v, n from t;
       create function of_t() returns setof t language sql stable as 'select * from t';
       insert into t values ('a', '2026-08-07', '1', 1, 'x'), ('c', '2026-08-07', '1', 1, 'y');`,
    )
    const before = await b.rows(STRUCTURE)
    const dumped = await dump(b.url)
    expect(before.length).toBeGreaterThan(12)
    const oid = await b.rows(`select 't7'::regclass::oid`)
    const seen = await connect(b.url)
    await seen.client.query('prepare p as select count(*)::int as n from seen')
    await seen.client.query('execute p')
    expect(
      await load(b.target, {
        ...REQUEST,
        rows: CHANGED.map((row) => [...row, '5']),
        columns: { ...COLUMNS, n: 'integer' },
      }),
    ).toMatchObject({ inserted: 2, updated: 1, deleted: 1 })
    expect(await b.rows(`select 't7'::regclass::oid`)).not.toEqual(oid)
    expect(await b.rows(STRUCTURE)).toEqual(before)
    expect(await dump(b.url)).toBe(dumped)
    expect(await b.rows('select k, v, n from seen order by 1')).toEqual([
      ['a', '1', 5],
      ['b', '2', 5],
      ['e', '1', 5],
    ])
    expect(await b.rows('select k, twice, big from of_t() order by 1')).toEqual([
      ['a', 10, 'x'],
      ['b', 10, null],
      ['e', 10, null],
    ])
    expect((await seen.client.query('execute p')).rows).toEqual([{ n: 3 }])
    await seen[Symbol.asyncDispose]()
    await b.run(`alter default privileges revoke delete on tables from clerk_${process.pid};
      drop owned by reader_${process.pid}, clerk_${process.pid}; drop role reader_${process.pid}, clerk_${process.pid}`)
  })

  test(`the statements of a plan run as they are shown, and attaching reads no row (${name})`, async () => {
    await using b = await bench(url, DAYS)
    await using local = await openLocalEngine()
    await using session = await b.target.open({
      table: 't',
      write: SWAP,
      local,
      mode: 'plan',
      lockTimeoutMs: 1_000,
      leaseTimeoutMs: 15_000,
      signal: new AbortController().signal,
      notice: () => undefined,
    })
    const contract = contractFor({ ...REQUEST, rows: [] }, await session.describe())
    await session.prepare(contract)
    await session.begin()
    await session.rowsInScope(contract, { kind: 'slice', slice: SEVENTH })
    const statements = session.statements()
    await session[Symbol.asyncDispose]()
    await using by = await connect(b.url)
    const told: string[] = []
    by.client.on('notice', ({ message }) => told.push(String(message)))
    await by.client.query('set client_min_messages = debug1; begin')
    for (const statement of statements.filter((text) => !text.startsWith('copy')))
      await by.client.query(statement)
    await by.client.query('commit')
    expect(told.filter((text) => text.includes('implied by existing constraints'))).toHaveLength(1)
    expect(told.filter((text) => /verifying table|building index "t7_|rewriting/.test(text))).toEqual([])
    expect(await b.rows('select count(*)::int from t7')).toEqual([[3]])
  })

  for (const [why, setup, words] of [
    [
      'a foreign key',
      'create table line (k text, d date, foreign key (k, d) references t)',
      'foreign key line_k_d_fkey',
    ],
    [
      'a foreign key to the partition',
      'create table line (k text, d date, foreign key (k, d) references t7)',
      'foreign key line_k_d_fkey',
    ],
    [
      'a trigger',
      `create function f() returns trigger language plpgsql as 'begin return new; end'; create trigger log after insert on t for each row execute function f()`,
      'trigger log would not fire',
    ],
    [
      'a trigger of statements',
      `create function f() returns trigger language plpgsql as 'begin return null; end'; create trigger log after update on t for each statement execute function f()`,
      'trigger log would not fire',
    ],
    [
      'a trigger of the partition',
      `create function f() returns trigger language plpgsql as 'begin return new; end'; create trigger log before update on t7 for each row execute function f()`,
      'trigger log would not fire',
    ],
    [
      'a disabled trigger',
      `create function f() returns trigger language plpgsql as 'begin return new; end'; create trigger log before update on t7 for each row execute function f(); alter table t7 disable trigger log`,
      'disabled trigger of partition t7',
    ],
    ['a publication', 'create publication pub for table t', 'publication pub'],
    ['a publication of the partition', 'create publication pub for table t7', 'publication pub'],
    ['a publication of all', 'create publication pub for all tables', 'publication pub'],
    ['row level security', 'alter table t7 enable row level security', 'row level security of partition t7'],
    ['a rule', 'create rule r as on delete to t7 do also nothing', 'rule r of partition t7'],
    ['a view of the partition', 'create view seen as select * from t7', 'view seen reads partition t7'],
    ['a sequence of the partition', 'create sequence s owned by t7.v', 'sequence s belongs to partition t7'],
    ['statistics of the partition', 'create statistics st on k, v from t7', 'statistics st of partition t7'],
    [
      'sub-partitions',
      `drop table t7; create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08') partition by list (k); create table t7_rest partition of t7 default`,
      'itself partitioned',
    ],
    [
      'other bounds',
      `drop table t7; create table t7 partition of t for values from ('2026-08-07') to ('2026-08-09')`,
      "partition public.t7 is for values from ('2026-08-07') to ('2026-08-09')",
    ],
    [
      'a large default partition',
      `create table rest partition of t default with (fillfactor = 10); insert into t select g::text, '2027-01-01', g::text from generate_series(1, 20000) as g`,
      'default partition public.rest',
    ],
    [
      'a parent that is a partition',
      `alter table t rename to u; create table t (k text, d date, v text, note text, updated_at timestamptz, primary key (k, d)) partition by range (d); create table t_all partition of t for values from ('2026-01-01') to ('2027-01-01') partition by range (d); drop table u; create table t7 partition of t_all for values from ('2026-08-07') to ('2026-08-08')`,
      'itself a partition',
      't_all',
    ],
    [
      'no partitions',
      'drop table t; create table t (k text, d date, v text, primary key (k, d))',
      'it is not partitioned',
    ],
    ['no table', 'drop table t', 'there is no such table'],
    [
      'partitions by something else',
      'drop table t; create table t (k text, d date, v text, primary key (k, d)) partition by list (k)',
      'not partitioned by "d" alone',
    ],
    [
      'partitions of another kind',
      'drop table t; create table t (k text, d date, v text, primary key (k, d)) partition by list (d)',
      'not partitioned by range',
    ],
  ] as const satisfies readonly (readonly [string, string, string, string?])[]) {
    test(`a swap is refused because of ${why}, by name, and nothing is done (${name})`, async () => {
      await using b = await bench(url, `${DAYS} ${setup}`)
      const table = why === 'a parent that is a partition' ? 't_all' : 't'
      const there = why !== 'no table'
      const before = there
        ? await b.rows(`select tableoid, ctid::text, xmin::text from ${table} order by 1, 2`)
        : []
      await expect(load(b.target, { ...REQUEST, table, rows: CHANGED })).rejects.toMatchObject({
        code: 'STET_CONFIG',
        message: expect.stringContaining(words),
      })
      if (there)
        expect(await b.rows(`select tableoid, ctid::text, xmin::text from ${table} order by 1, 2`)).toEqual(
          before,
        )
    })
  }

  test(`an identity column refuses a swap (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text, d date, v text, n bigint generated by default as identity, primary key (k, d)) partition by range (d);
       create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08')`,
    )
    await expect(load(b.target, { ...REQUEST, rows: CHANGED })).rejects.toThrow('identity column n')
  })

  test(`a role that does not own the table is told so (${name})`, async () => {
    const role = `loader_${process.pid}`
    await using b = await bench(
      url,
      `${DAYS} create role ${role} login; grant all on t, t6, t7 to ${role}; grant create on database ${'"'}replaced${'"'} to ${role};`.replace(
        /grant create on database "replaced" to \S+;/,
        '',
      ),
    )
    await b.run(
      `do $$ begin execute format('grant create on database %I to ${role}', current_database()); end $$`,
    )
    const as = new URL(b.url)
    as.username = role
    as.password = ''
    await expect(load(postgres({ url: as.href }), { ...REQUEST, rows: CHANGED })).rejects.toThrow(
      `which ${role} is not a member of`,
    )
    await b.run(`drop schema stet cascade; drop owned by ${role}; drop role ${role}`)
  })

  test(`rows without a key, marked rows and rows with NULL in the key are swapped as they would be written (${name})`, async () => {
    for (const apply of ['diff', 'swap'] as const) {
      await using b = await bench(
        url,
        `create table bare (d date, v text, mine text default 'new') partition by range (d);
         create table bare7 partition of bare for values from ('2026-08-07') to ('2026-08-08');
         insert into bare values ('2026-08-07', 'a', 'old'), ('2026-08-07', 'a', 'old'), ('2026-08-07', null, 'old');
         create table t (k text, d date, v text, gone_at timestamptz, unique nulls not distinct (k, d)) partition by range (d);
         create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08');
         insert into t values ('a', '2026-08-07', '1', null), (null, '2026-08-07', '1', null), ('c', '2026-08-07', '1', null), ('g', '2026-08-07', '1', now())`,
      )
      const bare: WriteStrategy = { strategy: 'replace-partition', by: 'd', size: 'day', apply }
      const rows = [
        ['2026-08-07', 'a'],
        ['2026-08-07', 'b'],
        ['2026-08-07', 'b'],
      ]
      expect(
        await load(b.target, {
          table: 'bare',
          write: bare,
          columns: { d: 'date', v: 'text' },
          slice: SEVENTH,
          rows: rows.slice(1),
        }),
      ).toMatchObject({ inserted: 2, deleted: 3 })
      expect(await b.rows('select v, mine from bare7 order by 1')).toEqual([
        ['b', 'new'],
        ['b', 'new'],
      ])
      const write: WriteStrategy = { ...SWAP, apply, nullKeys: 'match', missing: 'mark' }
      const marking = {
        table: 't',
        write,
        columns: COLUMNS,
        slice: SEVENTH,
        keep: { gone: 'gone_at' },
      } as const
      const marked = [
        ['a', '2026-08-07', '1'],
        [null, '2026-08-07', '2'],
        ['g', '2026-08-07', '1'],
      ]
      expect(await load(b.target, { ...marking, rows: marked })).toMatchObject({
        inserted: 0,
        updated: 2,
        marked: 1,
        restored: 1,
        deleted: 0,
      })
      expect(await b.rows('select k, v, gone_at is null from t7 order by 1')).toEqual([
        ['a', '1', true],
        ['c', '1', false],
        ['g', '1', true],
        [null, '2', true],
      ])
      expect(await load(b.target, { ...marking, rows: marked })).toMatchObject({ updated: 0, marked: 0 })
      expect(
        await load(b.target, { ...marking, rows: [...marked, ['h', '2026-08-07', '1']], frozen: true }),
      ).toMatchObject({ inserted: 1, updated: 0, marked: 0 })
    }
  })

  test(`a key that is in another partition refuses a swap too (${name})`, async () => {
    await using b = await bench(url, `${DAYS} insert into t values ('e', '2026-08-06', '1')`)
    await expect(
      load(b.target, { ...REQUEST, write: { ...SWAP, key: ['k'] }, rows: CHANGED }),
    ).rejects.toMatchObject({
      code: 'STET_KEY_CONSTRAINT',
      message: expect.stringContaining('has the key e outside of slice 2026-08-07'),
    })
    expect(await b.rows(`select v from t7 where k = 'b'`)).toEqual([['1']])
  })

  test(`what another transaction writes while the partition is built is not overwritten (${name})`, async () => {
    await using b = await bench(url, DAYS)
    await using reader = await connect(b.url)
    await reader.client.query('begin; select count(*) from t')
    let written: Promise<unknown> | undefined
    const told = (message: string) => {
      if (!message.startsWith('Waiting for other transactions')) return
      // Let in between two tries; then the reader goes, and the next try finds the row.
      written = b
        .run(`insert into t values ('x', '2026-08-07', 'theirs')`)
        .then(() => reader.client.query('commit'))
    }
    await expect(load(b.target, { ...REQUEST, rows: CHANGED, notice: told })).rejects.toMatchObject({
      code: 'STET_SERIALIZATION',
    })
    await written
    expect(await b.rows('select k, v from t7 order by 1')).toEqual([
      ['a', '1'],
      ['b', '1'],
      ['c', '1'],
      ['x', 'theirs'],
    ])
    expect(await load(b.target, { ...REQUEST, rows: CHANGED })).toMatchObject({
      inserted: 1,
      updated: 1,
      deleted: 2,
    })
  })

  test(`a long reader is waited for in short tries that let others through; then the run gives up (${name})`, async () => {
    await using b = await bench(url, DAYS)
    await using reader = await connect(b.url)
    await reader.client.query('begin; select count(*) from t')
    const before = await b.rows('select tableoid, ctid::text, xmin::text from t order by 1, 2')
    const told: string[] = []
    let read: Promise<unknown[][]> | undefined
    const notice = (message: string) => {
      told.push(message)
      read ??= b.rows('select count(*)::int from t')
    }
    await expect(
      load(b.target, { ...REQUEST, rows: CHANGED, lockTimeoutMs: 2_000, notice }),
    ).rejects.toMatchObject({
      code: 'STET_LOCK_TIMEOUT',
      exitStatus: 75,
    })
    expect(told[0]).toContain('Waiting for other transactions, to exchange partition public.t7')
    expect(await read).toEqual([[4]])
    expect(await b.rows('select tableoid, ctid::text, xmin::text from t order by 1, 2')).toEqual(before)
    await reader.client.query('commit')
    expect(await load(b.target, { ...REQUEST, rows: CHANGED })).toMatchObject({
      inserted: 1,
      updated: 1,
      deleted: 1,
    })
  })

  test(`a repeatable-read transaction that is older than the swap sees the new partition as empty: PostgreSQL's limit (${name})`, async () => {
    for (const [apply, seen] of [
      ['diff', 4],
      ['swap', 1],
    ] as const) {
      await using b = await bench(url, DAYS)
      await using reader = await connect(b.url)
      await reader.client.query('begin isolation level repeatable read; select 1')
      await load(b.target, { ...REQUEST, write: { ...SWAP, apply }, rows: CHANGED })
      expect((await reader.client.query('select count(*)::int as n from t')).rows).toEqual([{ n: seen }])
      await reader.client.query('commit')
      expect((await reader.client.query('select count(*)::int as n from t')).rows).toEqual([{ n: 4 }])
    }
  })

  test(`auto exchanges where a third or more changes, and says why it does what it does (${name})`, async () => {
    await using b = await bench(url, DAYS)
    const auto: WriteStrategy = { ...SWAP, apply: 'auto' }
    const go = async (rows: string[][]) =>
      run(pipelineOf(b.target, { table: 't', columns: COLUMNS, rows, write: auto }), {
        slice: '2026-08-07',
        allow: { deletes: true },
      })
    const oid = async () => (await b.rows(`select 't7'::regclass::oid`))[0]?.[0]
    const first = await oid()
    const many = Array.from({ length: 9 }, (_, n) => [`n${n}`, '2026-08-07', '1'])
    expect((await go(many)).notices).toContain(
      '12 of 12 rows of slice 2026-08-07 change: its partition is exchanged (apply auto)',
    )
    const second = await oid()
    expect(second).not.toBe(first)
    const little = many.map((row, n) => (n < 2 ? [row[0] ?? '', row[1] ?? '', '2'] : row))
    expect((await go(little)).notices).toContain(
      '2 of 9 rows of slice 2026-08-07 change: the rows are written in place (apply auto)',
    )
    expect(await oid()).toBe(second)
    await b.run('create view seen as select * from t7')
    expect((await go(many.map(([k = '', d = '']) => [k, d, '3']))).notices).toContain(
      '9 of 9 rows of slice 2026-08-07 change: the rows are written in place (apply auto), because view seen reads partition t7 itself',
    )
    expect(await oid()).toBe(second)
    expect((await go(many.map(([k = '', d = '']) => [k, d, '3']))).notices).toEqual([])
  })

  for (const [size, column, slice, bounds, rest] of [
    ['day', 'd date', '2026-08-07', `from ('2026-08-06') to ('2026-08-07')`, ['2026-08-07', '2026-08-08']],
    ['month', 'd date', '2026-08', `from ('2026-07-01') to ('2026-08-01')`, ['2026-08-31', '2026-09-01']],
    [
      'hour',
      'd timestamp',
      '2026-08-07T13',
      `from ('2026-08-07 12:00') to ('2026-08-07 13:00')`,
      ['2026-08-07 13:59:59.999999', '2026-08-07 14:00:00'],
    ],
    [{ range: 1000 }, 'd integer', '2000', 'from (1000) to (2000)', ['2999', '3000']],
    // The last range of each type reaches beyond it.
    [{ range: 1000 }, 'd integer', '2147483000', 'from (1000) to (2000)', ['2147483647', '3000']],
    [
      { range: 1000 },
      'd bigint',
      '9223372036854775000',
      'from (1000) to (2000)',
      ['9223372036854775807', '3000'],
    ],
    ['value', 'd text', `it's`, `in ('KR')`, [`it's`, 'JP']],
  ] as const satisfies readonly (readonly [SliceSize, string, string, string, readonly [string, string]])[]) {
    for (const withDefault of [false, true]) {
      test(`a missing partition is made for slice ${slice} of ${JSON.stringify(size)}${withDefault ? ' out of the default' : ''} (${name})`, async () => {
        await using b = await bench(
          url,
          `create table t (k text, ${column}, v text, primary key (k, d)) partition by ${size === 'value' ? 'list' : 'range'} (d);
           create table p0 partition of t for values ${bounds};
           ${withDefault ? `create table rest partition of t default; insert into t values ('stray', '${rest[0].replace("'", "''")}', 'old'), ('other', '${rest[1]}', 'old')` : ''}`,
        )
        const write = { strategy: 'replace-partition', by: 'd', size, key: ['k', 'd'] } as WriteStrategy
        const request: Load = {
          table: 't',
          write,
          columns: { k: 'text', d: column.split(' ')[1] ?? '', v: 'text' },
          slice: sliceNamed(slice, 'd', size),
          rows: [['n', rest[0], 'new']],
        }
        expect(await load(b.target, request)).toMatchObject({ inserted: 1, deleted: withDefault ? 1 : 0 })
        const made = await b.rows(
          `select inhrelid::regclass::text from pg_inherits where inhparent = 't'::regclass and inhrelid::regclass::text like 't\\_%'`,
        )
        expect(made).toHaveLength(1)
        expect(await b.rows(`select k, v from ${made[0]?.[0]}`)).toEqual([['n', 'new']])
        if (withDefault) expect(await b.rows('select k from rest')).toEqual([['other']])
        expect(
          await load(b.target, {
            ...request,
            write: { ...write, apply: 'swap' } as WriteStrategy,
            rows: [['n', rest[0], 'newer']],
          }),
        ).toMatchObject({ updated: 1 })
      })
    }
  }

  test(`nothing is made beside partitions of another size, or where rows cannot be moved; it is said (${name})`, async () => {
    const monthly = `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
      create table july partition of t for values from ('2026-07-01') to ('2026-08-01');`
    const write: WriteStrategy = { ...SWAP, apply: 'diff' }
    await using without = await bench(url, monthly)
    await expect(load(without.target, { ...REQUEST, write, rows: CHANGED })).rejects.toThrow(
      'no partition for slice 2026-08-07',
    )
    const inside = {
      ...REQUEST,
      write,
      slice: sliceNamed('2026-07-31', 'd', 'day'),
      rows: [['a', '2026-07-31', '1']],
    }
    expect(await load(without.target, inside)).toMatchObject({ inserted: 1 })
    await using beside = await bench(url, `${monthly} create table rest partition of t default`)
    expect(await load(beside.target, { ...REQUEST, write, rows: CHANGED })).toMatchObject({ inserted: 3 })
    expect(await beside.rows('select count(*)::int from rest')).toEqual([[3]])
    await using held = await bench(
      url,
      `${DAYS} drop table t7; create table rest partition of t default; insert into t values ('a', '2026-08-07', 'old');
       create table line (k text, d date, foreign key (k, d) references t on delete cascade); insert into line values ('a', '2026-08-07')`,
    )
    const told: string[] = []
    await load(held.target, { ...REQUEST, write, rows: CHANGED, notice: (message) => told.push(message) })
    expect(told.join()).toContain('stays in default partition public.rest: foreign key line_k_d_fkey')
    expect(await held.rows('select count(*)::int from line')).toEqual([[1]])
    expect(await held.rows('select count(*)::int from rest')).toEqual([[3]])
  })
}
