import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  openTestSession,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import { openLocalEngine } from '../../local/engine.ts'
import type { Contract } from '../../model/columns.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { findTable } from './catalog.ts'
import { duckdb } from './index.ts'
import { duckdbTableName } from './table-name.ts'

const UPSERT: WriteStrategy = { strategy: 'upsert', key: ['id'] }
const CONTRACT = contractOf({ id: 'text', mail: 'text' }, ['id'])

/** What `prepare` says to a table that somebody else has made. */
async function prepare(
  statements: readonly string[],
  contract: Contract = CONTRACT,
  write = UPSERT,
  table = 't',
): Promise<void> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'select 1', ...statements)
  for (const mode of ['plan', 'run'] as const) {
    await using opened = await openTestSession(duckdb({ file }), table, write, { mode })
    if (mode === 'run') await opened.session.acquire(startOf())
    await opened.session.describe()
    await opened.session.prepare(contract)
  }
}

test.each([
  ['a primary key on the key', ['create table t(id varchar primary key, mail varchar)']],
  [
    'a unique index on the key',
    ['create table t(id varchar, mail varchar)', 'create unique index i on t(id)'],
  ],
  [
    'no constraint, and every key once',
    ['create table t(id varchar, mail varchar)', `insert into t values ('a', '1'), ('b', '1')`],
  ],
  [
    'no constraint, and rows without a key',
    ['create table t(id varchar, mail varchar)', `insert into t values (null, '1'), (null, '1')`],
  ],
  ['names in another case', ['create table T(ID varchar, Mail varchar)']],
  [
    'another column with a default',
    [`create table t(id varchar, mail varchar, n integer not null default 1)`],
  ],
])('a table with %s is accepted', async (_, statements) => {
  await prepare(statements)
})

test('a key that is doubled in the table is shown, with the statement that would keep it unique', async () => {
  const statements = [
    'create table t(id varchar, mail varchar)',
    `insert into t values ('a', '1'), ('b', '1'), ('b', '2')`,
  ]
  await expect(prepare(statements)).rejects.toMatchObject({
    code: 'STET_KEY_CONSTRAINT',
    message: expect.stringContaining('2 of its rows have the key id=b'),
    hint: expect.stringContaining('alter table t add primary key (id)'),
  })
})

test('a unique rule on more columns than the key does not make it unique', async () => {
  const statements = [
    'create table t(id varchar, mail varchar, unique(id, mail))',
    `insert into t values ('b', '1'), ('b', '2')`,
  ]
  await expect(prepare(statements)).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT' })
})

test('a unique index over an expression does not make the key unique', async () => {
  const statements = [
    'create table t(id varchar, mail varchar)',
    `insert into t values ('b', '1'), ('b', '2')`,
    'create unique index i on t((id || mail))',
  ]
  await expect(prepare(statements)).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT' })
})

test('unique rules are read from constraints and from indexes, also on odd names', async () => {
  await using local = await openLocalEngine()
  const odd = `"it's ""odd"", or"`
  for (const statement of [
    `attach ':memory:' as "my file"`,
    `create table "my file".main.t(a integer primary key, b integer, ${odd} integer, unique(a, b))`,
    `create unique index i on "my file".main.t(${odd}, b)`,
    `create unique index j on "my file".main.t((b + 1))`,
    `create index k on "my file".main.t(b)`,
  ]) {
    await local.run(statement)
  }
  const table = await findTable(local, '"my file"', duckdbTableName('t'))
  expect(table?.unique.map(({ columns }) => columns.join('|')).sort()).toEqual([
    '((b + 1))',
    'a',
    'a|b',
    `it's "odd", or|b`,
  ])
})

test('a unique rule lets many NULLs in, so it does not serve a key that matches NULL', async () => {
  const statements = [
    'create table t(id varchar unique, mail varchar)',
    `insert into t values (null, '1'), (null, '2')`,
  ]
  await prepare(statements)
  await expect(prepare(statements, CONTRACT, { ...UPSERT, nullKeys: 'match' })).rejects.toMatchObject({
    code: 'STET_KEY_CONSTRAINT',
    message: expect.stringContaining('id=NULL'),
  })
})

test('a key that somebody doubles between two runs is found by the next', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  await writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', 'a', '1', null, null)`])
  await writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', 'b', '1', null, null)`])
  await byHand(file, `insert into t(id, mail) values ('a', '2')`)
  await expect(writeByHand(target, 't', UPSERT, CONTRACT, [])).rejects.toMatchObject({
    code: 'STET_KEY_CONSTRAINT',
  })
})

test('a table that was unique by one key is looked at again by another', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'x.duckdb') })
  await writeByHand(target, 't', UPSERT, CONTRACT, [
    `('insert', 'a', '1', null, null)`,
    `('insert', 'b', '1', null, null)`,
  ])
  const byMail = contractOf({ id: 'text', mail: 'text' }, ['mail'])
  await expect(
    writeByHand(target, 't', { strategy: 'upsert', key: ['mail'] }, byMail, []),
  ).rejects.toMatchObject({ code: 'STET_KEY_CONSTRAINT', message: expect.stringContaining('mail=1') })
})

test('missing columns are named with the statements that add them', async () => {
  const contract = contractOf({ id: 'text', amount: 'numeric(12,2)', 'Odd one': 'jsonb' }, ['id'], {
    keep: { updatedAt: 'seen_at' },
  })
  await expect(prepare(['create table t(id varchar)'], contract)).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    details: {
      statements: [
        'alter table t add column amount DECIMAL(12,2)',
        'alter table t add column "Odd one" JSON',
        'alter table t add column seen_at TIMESTAMP WITH TIME ZONE',
      ],
    },
  })
})

test('a column that the table needs and the source lacks is named', async () => {
  await expect(
    prepare(['create table t(id varchar, mail varchar, needed integer not null)']),
  ).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    message: expect.stringContaining('needed'),
  })
})

test('a generated column is described as one and not written; a default that looks like one is', async () => {
  const statements = [
    `create table t(id varchar, mail varchar generated always as (id || '@x'), n varchar default cast(5 as varchar))`,
  ]
  await expect(prepare(statements)).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    message: expect.stringContaining('mail'),
  })
  await prepare(statements, contractOf({ id: 'text', n: 'text' }, ['id']))
})

test('a view is refused', async () => {
  await expect(prepare([`create view t as select 'a' as id, 'x' as mail`])).rejects.toMatchObject({
    code: 'STET_CONFIG',
    message: expect.stringContaining('view'),
  })
})

test('the schema of the record is refused as a place for rows', async () => {
  await expect(prepare([], CONTRACT, UPSERT, 'stet.run')).rejects.toMatchObject({ code: 'STET_CONFIG' })
})

test.each([
  ['numeric', 'numeric without precision'],
  ['numeric(39,2)', 'numeric(39,2)'],
  ['numeric(5,-2)', 'numeric(5,-2)'],
  ['numeric(2,5)', 'numeric(2,5)'],
  ['inet', 'no type inet'],
])(
  'a new table is refused a column of type %s, which DuckDB would hold with a loss or not at all',
  async (type, named) => {
    await expect(prepare([], contractOf({ id: 'text', mail: type }, ['id']))).rejects.toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining(named),
    })
  },
)

test('two columns that differ only in case are refused, because DuckDB takes them for one', async () => {
  await expect(prepare([], contractOf({ id: 'text', ID: 'text' }, ['id']))).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    message: expect.stringContaining('ID'),
  })
})

test('every type of DuckDB is described, those that Stet does not interpret as DuckDB’s own', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    `create type mood as enum ('a', 'b')`,
    `create table t(a varchar, b decimal(9,3), c json, d blob, e timestamptz, f timestamp_ns, g hugeint, h integer[], i mood, j float, k tinyint, l uuid)`,
  )
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan' })
  const table = await opened.session.describe()
  expect(table?.columns.map(({ type }) => type)).toEqual([
    { kind: 'text' },
    { kind: 'numeric', precision: 9, scale: 3 },
    { kind: 'jsonb' },
    { kind: 'bytea' },
    { kind: 'timestamptz' },
    { kind: 'other', native: 'TIMESTAMP_NS' },
    { kind: 'other', native: 'HUGEINT' },
    { kind: 'other', native: 'INTEGER[]' },
    { kind: 'other', native: `ENUM('a', 'b')` },
    { kind: 'real' },
    { kind: 'other', native: 'TINYINT' },
    { kind: 'uuid' },
  ])
})
