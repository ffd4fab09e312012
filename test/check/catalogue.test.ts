import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readDdl } from '../../src/check/catalogue/ddl.ts'
import { catalogueBuilder } from '../../src/check/catalogue/index.ts'
import { readPostgresDdl } from '../../src/check/catalogue/postgres.ts'
import type { Table } from '../../src/check/catalogue/table.ts'
import { lexSql } from '../../src/check/sql/lexer.ts'
import { nameFromText } from '../../src/check/sql/name.ts'
import { splitStatements } from '../../src/check/sql/split.ts'
import { checkFiles } from './support.ts'

async function strictly(sql: string): Promise<Table | undefined> {
  const catalogue = catalogueBuilder()
  for (const fact of (await readPostgresDdl(sql, 'a.sql', 0)) ?? []) catalogue.add(fact, 'a.sql')
  return catalogue.build().find(nameFromText('t'), 'a.sql')
}

function tolerantly(sql: string): Table | undefined {
  const catalogue = catalogueBuilder()
  for (const statement of splitStatements(lexSql(sql))) {
    const fact = readDdl(statement, 'a.sql', (offset) => offset)
    if (fact !== undefined) catalogue.add(fact, 'a.sql')
  }
  return catalogue.build().find(nameFromText('t'), 'a.sql')
}

/** What the rules ask of a table. */
function facts(table: Table | undefined): unknown {
  return (
    table && {
      columns: table.columns.map(({ name, notNull, generated, defaulted }) => ({
        name,
        notNull,
        generated,
        defaulted,
      })),
      keys: table.keys.map(({ columns, primary, nullsNotDistinct, generated, partial }) => ({
        columns,
        primary,
        nullsNotDistinct,
        generated,
        partial,
      })),
      temporary: table.temporary,
      unknown: table.fromQuery,
      touch: table.touchTrigger,
    }
  )
}

const column = fc.constantFrom(
  'a int',
  'a text not null',
  "a text default 'not null'",
  'a bigserial primary key',
  'a uuid default gen_random_uuid() primary key',
  'a int generated always as identity',
  'a int unique',
  'a numeric(10, 2) not null default 0',
  'a timestamptz default now() not null',
)
const more = fc.constantFrom(
  '',
  ', b text, unique (a, b)',
  ', b text not null, primary key (a, b)',
  ', b text, constraint k unique nulls not distinct (b)',
  ", b text, check (b <> 'unique')",
  ', b int references p (q) on delete cascade',
)
const later = fc.constantFrom(
  '',
  ';\nalter table t add column z serial',
  ';\nalter table t add constraint k2 unique (a)',
  ';\nalter table t alter column a set not null',
  ';\ncreate unique index on t (a)',
  ';\ncreate unique index concurrently u on t using btree (a) where a is not null',
  ';\ncreate trigger set_updated_at before update on t for each row execute function touch()',
)

test('the tolerant reader and the parser of PostgreSQL agree on columns and keys', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('create table t', 'create temp table if not exists t', 'create unlogged table t'),
      column,
      more,
      later,
      async (head, first, rest, change) => {
        const sql = `${head} (${first}${rest})${change}`
        expect(facts(tolerantly(sql)), sql).toEqual(facts(await strictly(sql)))
      },
    ),
    { numRuns: 400 },
  )
})

describe('what only the parser of PostgreSQL reads right', () => {
  test.each([
    [
      'two columns in one alter table',
      'create table t (a int, b int); alter table t alter column a set not null, alter column b set not null',
      (table: Table) => table.columns.every((one) => one.notNull),
    ],
    [
      'not null that is taken away again',
      'create table t (a int not null); alter table t alter a drop not null',
      (table: Table) => !table.columns[0]?.notNull,
    ],
    [
      'a key that goes with its column',
      'create table t (a int unique, b int); alter table t drop column a',
      (table: Table) => table.keys.length === 0,
    ],
    [
      'a column made identity later',
      'create table t (a int); alter table t alter column a add generated always as identity',
      (table: Table) => table.columns[0]?.generated === true,
    ],
    ['a copy of another table', 'create table t (like s including all)', (table: Table) => table.fromQuery],
    ['a child by inheritance', 'create table t (b int) inherits (s)', (table: Table) => table.fromQuery],
    [
      'a partition',
      "create table t partition of s for values from ('2025-01-01') to ('2025-02-01')",
      (table: Table) => table.fromQuery,
    ],
  ] as const)('%s', async (_, sql, holds) => {
    const table = await strictly(sql)
    expect(table !== undefined && holds(table)).toBe(true)
  })
})

test('what PostgreSQL refuses is left to the tolerant reader', async () => {
  expect(await readPostgresDdl('create table {{ t }} (id int primary key)', 'a.sql', 0)).toBeUndefined()
  const { findings } = await checkFiles(
    {
      'db/schema.sql':
        "-- postgres\ncreate table shop (shop_no varchar(9) not null primary key, x int comment 'odd');\n",
      'etl/load.sql': 'insert into shop select shop_no, 1 from stage_shop;\n',
    },
    (await import('../../src/check/rules/index.ts')).RULES,
  )
  expect(findings.filter((one) => one.rule === 'insert-no-key')).toEqual([])
})

test('a partition has the keys of its parent, so nothing is said of it for sure', async () => {
  const { RULES } = await import('../../src/check/rules/index.ts')
  const { findings } = await checkFiles(
    {
      'db/schema.sql':
        "-- postgres\ncreate table day_1 partition of days for values from ('2025-01-01') to ('2025-01-02');\n",
      'etl/load.sql': 'insert into day_1 select * from stage;\n',
    },
    RULES.filter((rule) => rule.id === 'insert-no-key'),
  )
  expect(findings.map((one) => one.confidence)).toEqual(['medium'])
})

test('statements that PostgreSQL reads and that change no rows are not listed as not understood', async () => {
  const { notUnderstood } = await checkFiles(
    {
      'a.sql': 'refuse this;\ncreate table t (id serial);\n',
      'b.sql':
        "create table t (id serial);\nimport foreign schema x from server s into y;\nsecurity label on table t is 'x';\n",
    },
    [],
  )
  expect(notUnderstood).toEqual([{ path: 'a.sql', count: 1 }])
})
