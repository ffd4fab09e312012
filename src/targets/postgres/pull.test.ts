import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { contractFor, type Load, load, startOf } from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import { postgres } from './index.ts'

const UPSERT = { strategy: 'upsert', key: ['k'] } as const

/** Values that a comparison must find equal to themselves, each in the spelling of the source and as the server prints it. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  smallint: ['-32768', '32767'],
  integer: ['-2147483648', '2147483647'],
  bigint: ['9007199254740993', '-9223372036854775808', '9223372036854775807'],
  'numeric(12,2)': ['1.50', '-0.01', '9999999999.99'],
  'numeric(38,10)': ['1234567890123456789012345678.0123456789'],
  'numeric(40,2)': ['12345678901234567890123456789012345678.01'],
  numeric: ['1.50', '1.5', '12345678901234567890.12345678901234567890', 'NaN', 'Infinity'],
  real: ['0.1', '1.6777216e+07', '3.4028235e+38', 'NaN', 'Infinity', '-Infinity'],
  'double precision': ['0.1', '1e-320', '1.7976931348623157e+308', 'NaN', 'Infinity'],
  boolean: ['true', 'false'],
  date: ['2024-02-29', '0001-01-01', '9999-12-31', 'infinity', '-infinity'],
  timestamp: ['2024-02-29 10:00:00.123456', 'infinity'],
  timestamptz: ['2024-02-29 10:00:00.123456+00', '-infinity'],
  time: ['10:00:00.000001', '24:00:00'],
  uuid: ['c0ffee00-0000-4000-8000-000000000001'],
  text: [
    '',
    ' ',
    '\r',
    '\n',
    '\r\n',
    '"',
    ',',
    '\\.',
    '\\N',
    '\ufeffbom',
    'é',
    'e\u0301',
    'NULL',
    '#',
    'x'.repeat(3_000_000),
  ],
  'varchar(5)': ['', 'abc', 'ab   '],
  'char(5)': ['ab', 'abcde'],
  json: ['{"b": 1,  "a": 1.0}', 'null'],
  jsonb: ['{"a": 1, "b": [1, 2.50]}'],
  bytea: ['\\x616263', '\\x'],
  interval: ['1 mon', '30 days', '-1 days +02:03:00', '24:00:00', '1 day'],
  'int4[]': ['{1,2}', '{}', '{NULL}'],
  'text[]': ['{a,"b c",NULL,"NULL"}'],
  inet: ['10.0.0.1/32', '10.0.0.0/8'],
  money: ['$1,234.50'],
  timetz: ['10:00:00+02'],
  int4range: ['[1,6)'],
  'bit(3)': ['101'],
  mood: ['happy'],
  citext_like: ['ABC'],
}

/** Values that the local engine cannot hold in the column's own type. */
const WIDE_VALUES: Readonly<Record<string, readonly string[]>> = {
  'numeric(12,2)': ['NaN', '1.50'],
  date: ['0044-03-15 BC', '12000-01-01', '2024-02-29'],
  timestamp: ['0044-03-15 10:00:00 BC', '2024-02-29 10:00:00'],
  timestamptz: ['0044-03-15 10:00:00+00 BC', '294000-01-01 00:00:00+00', '2024-02-29 10:00:00+00'],
}

const SETUP = `
  create type mood as enum ('sad', 'happy');
  create domain citext_like as text check (value <> 'no')`

for (const { name, url } of postgresServers()) {
  test(`every type comes back as it is: the same values again are no difference (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(SETUP)
    const target = postgres({ url: database })
    const narrow = Object.entries(VALUES).map(([type, values]) => ({ type, values, asText: [] }))
    const wide = Object.entries(WIDE_VALUES).map(([type, values]) => ({ type, values, asText: ['c1'] }))
    for (const { type, values, asText } of [...narrow, ...wide]) {
      await db.client.query(`drop table if exists t; create table t (k integer primary key, v ${type})`)
      const rows = [...values.map((value, n) => [String(n), value]), [String(values.length), null]]
      const request: Load = { table: 't', write: UPSERT, columns: { k: 'integer', v: type }, rows, asText }
      expect(await load(target, request), type).toMatchObject({ inserted: rows.length })
      const stored = await db.client.query({
        text: 'select k::text, v::text from t order by t.k',
        rowMode: 'array',
      })
      expect(stored.rows, type).toEqual(rows)
      const before = await db.client.query('select xmin::text, ctid::text from t order by k')
      expect(await load(target, request), type).toMatchObject({ inserted: 0, updated: 0, unchanged: 0 })
      expect((await db.client.query('select xmin::text, ctid::text from t order by k')).rows, type).toEqual(
        before.rows,
      )
    }
  })

  test(`a value that the local engine cannot hold is named, never read as another or as NULL (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const target = postgres({ url: database })
    for (const [type, values] of Object.entries(WIDE_VALUES)) {
      await db.client.query(`drop table if exists t; create table t (k integer primary key, v ${type})`)
      await db.client.query('insert into t values (1, $1)', [values[0]])
      const columns = { k: 'integer', v: type }
      for (const wanted of [null, values.at(-1) ?? null]) {
        expect(
          await load(target, { table: 't', write: UPSERT, columns, rows: [['1', wanted]] }),
          type,
        ).toMatchObject({ updated: 1 })
        expect((await db.client.query('select v::text from t')).rows, type).toEqual([{ v: wanted }])
        await db.client.query('update t set v = $1', [values[0]])
      }
    }
  })

  test(`a role with other settings changes nothing of what is read (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const settings = {
      datestyle: "'German'",
      extra_float_digits: '-3',
      intervalstyle: 'iso_8601',
      bytea_output: 'escape',
      timezone: "'Asia/Tokyo'",
      client_encoding: "'LATIN1'",
      row_security: 'on',
    }
    for (const [setting, value] of Object.entries(settings)) {
      await db.client.query(`alter database ${new URL(database).pathname.slice(1)} set ${setting} = ${value}`)
    }
    await db.client.query(
      `create table t (k integer primary key, d date, z timestamptz, f double precision, i interval, b bytea, t text)`,
    )
    const columns = {
      k: 'integer',
      d: 'date',
      z: 'timestamptz',
      f: 'double precision',
      i: 'interval',
      b: 'bytea',
      t: 'text',
    }
    const rows = [
      [
        '1',
        '2024-02-01',
        '2024-02-01 03:04:05+00',
        '0.30000000000000004',
        '1 mon -1 days +02:03:00',
        '\\x61ff',
        'é',
      ],
    ]
    const target = postgres({ url: database })
    const request: Load = { table: 't', write: UPSERT, columns, rows }
    expect(await load(target, request)).toMatchObject({ inserted: 1 })
    expect(await load(target, request)).toMatchObject({ inserted: 0, updated: 0, unchanged: 0 })
    // Held as values, not as text in whatever spelling the role has: only then is the comparison one of values.
    await using local = await openLocalEngine()
    await using session = await target.open({
      table: 't',
      write: UPSERT,
      local,
      mode: 'plan',
      lockTimeoutMs: 1_000,
      leaseTimeoutMs: 15_000,
      signal: new AbortController().signal,
      notice: () => undefined,
    })
    const contract = contractFor(request, await session.describe())
    await session.prepare(contract)
    await session.begin()
    const pulled = await session.rowsInScope(contract, { kind: 'table' })
    expect(pulled.unheld).toEqual([])
    const [held] = await local.rows(
      `select c1::varchar as d, c2::varchar as z, c3::varchar as f, c4 as i, c5 as b, c6 as t from ${pulled.table}`,
    )
    expect(Object.values(held ?? {})).toEqual(rows[0]?.slice(1))
    // Both ways with a wrong encoding would look right, so the server is asked as well.
    await using check = await connect(database)
    const { rows: stored } = await check.client.query('select length(t) as n from t')
    expect(stored).toEqual([{ n: 1 }])
  })

  test(`values that differ only beyond a coarser type are differences (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    const pairs: readonly (readonly [string, string, string])[] = [
      ['numeric', '1.005', '1.01'],
      ['numeric', '9007199254740993', '9007199254740992'],
      ['bigint', '9007199254740993', '9007199254740992'],
      ['text', '007', '7'],
      ['text', 'yes', 'true'],
      ['date', '0044-03-15 BC', '0044-03-15'],
      ['timestamp', '2024-01-01 00:00:00', '2024-01-01 10:00:00'],
      ['interval', '1 mon', '30 days'],
      ['jsonb', '{"a": 1}', '{"a": 2}'],
      ['text', 'é', 'e\u0301'],
    ]
    const target = postgres({ url: database })
    for (const [type, held, wanted] of pairs) {
      await db.client.query(`drop table if exists t; create table t (k integer primary key, v ${type})`)
      await db.client.query('insert into t values (1, $1)', [held])
      const columns = { k: 'integer', v: type }
      expect(
        await load(target, { table: 't', write: UPSERT, columns, rows: [['1', wanted]] }),
        `${type} ${held}`,
      ).toMatchObject({ updated: 1 })
      expect((await db.client.query('select v::text from t')).rows, type).toEqual([{ v: wanted }])
    }
  })

  test(`rows are found by their keys as in the whole table, whatever the key holds (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(`
      create table t (a text, b date, "Order" varchar(9), primary key (a, b));
      insert into t select 'k' || i, '2024-01-01'::date + i, 'v' from generate_series(1, 1000) as i;
      insert into t values ('it''s "x" \\ {1,2}', '2024-01-01', 'v'), ('', 'infinity', 'v'), ('NULL', '2024-01-01', 'v')`)
    const rows = [
      ['it\'s "x" \\ {1,2}', '2024-01-01', 'v'],
      ['', 'infinity', 'v'],
      ['NULL', '2024-01-01', 'v'],
      ['k7', '2024-01-08', 'new'],
      ['k7', '2024-01-09', 'v'],
    ]
    const columns = { a: 'text', b: 'date', Order: 'varchar(9)' }
    const applied = await load(postgres({ url: database }), {
      table: 't',
      write: { strategy: 'upsert', key: ['a', 'b'] },
      columns,
      rows,
      scope: 'keys',
    })
    expect(applied).toMatchObject({ inserted: 1, updated: 1, unchanged: 0 })
  })

  test(`more keys than a query carries go by a table, with the same answer (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(
      `create table t (k text primary key, v text); insert into t select 'k' || i, 'v' from generate_series(1, 50) as i`,
    )
    await using local = await openLocalEngine()
    const write = { strategy: 'upsert', key: ['k'] } as const
    await using session = await postgres({ url: database }).open({
      table: 't',
      write,
      local,
      mode: 'run',
      lockTimeoutMs: 1000,
      leaseTimeoutMs: 15_000,
      signal: new AbortController().signal,
      notice: () => undefined,
    })
    await session.acquire(startOf({ write }))
    const contract = contractFor(
      { table: 't', write, columns: { k: 'text', v: 'text' }, rows: [] },
      await session.describe(),
    )
    await session.prepare(contract)
    await session.begin()
    await local.run(`create table keys as select 'k' || i as c0 from range(100001, 0, -1) as r (i)`)
    const pulled = await session.rowsInScope(contract, { kind: 'keys', keys: 'keys', count: 100_001 })
    expect(pulled.rows).toBe(50)
  })

  test(`pulling and comparing gives the transaction no number, so that vacuum is not held back (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(`create table t (k integer primary key, v text); insert into t values (1, 'a')`)
    let numbers: unknown
    await load(postgres({ url: database }), {
      table: 't',
      write: UPSERT,
      columns: { k: 'integer', v: 'text' },
      rows: [['1', 'b']],
      scope: 'keys',
      beforeApply: async () => {
        numbers = (
          await db.client.query(
            `select backend_xid from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`,
          )
        ).rows
      },
    })
    expect(numbers).toEqual([{ backend_xid: null }])
  })

  test(`only the partitions of the load's keys are visited (${name})`, async () => {
    const database = await freshDatabase(url)
    await using db = await connect(database)
    await db.client.query(`
      create table t (k integer, d date, v text, primary key (k, d)) partition by range (d);
      create table t_1 partition of t for values from ('2024-01-01') to ('2024-02-01');
      create table t_2 partition of t for values from ('2024-02-01') to ('2024-03-01');
      insert into t values (1, '2024-01-05', 'a'), (1, '2024-02-05', 'b')`)
    const locked: string[] = []
    const applied = await load(postgres({ url: database }), {
      table: 't',
      write: { strategy: 'upsert', key: ['k', 'd'] },
      columns: { k: 'integer', d: 'date', v: 'text' },
      rows: [['1', '2024-02-05', 'c']],
      scope: 'keys',
      beforeApply: async () => {
        const { rows } = await db.client.query(
          `select relation::regclass::text as name from pg_locks where relation in ('t_1'::regclass, 't_2'::regclass) and mode = 'AccessShareLock' and not fastpath is null`,
        )
        locked.push(...rows.map((row) => row.name))
      },
    })
    expect(applied).toMatchObject({ updated: 1, inserted: 0 })
    expect(new Set(locked)).toEqual(new Set(['t_2']))
  })
}
