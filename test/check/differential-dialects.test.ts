/** Kind and target against a second parser (sqlparser-rs) in the dialects PostgreSQL's own parser cannot read. */
import { init, parse } from '@guanmingchiu/sqlparser-ts'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { lexSql } from '../../src/check/sql/lexer.ts'
import { splitStatements } from '../../src/check/sql/split.ts'

beforeAll(async () => {
  await init()
})

type Dialect = NonNullable<Parameters<typeof parse>[1]>

const KINDS: Readonly<Record<string, string>> = {
  Insert: 'insert',
  Update: 'update',
  Delete: 'delete',
  Merge: 'merge',
  Truncate: 'truncate',
  Query: 'select',
  CreateTable: 'create-table',
  AlterTable: 'alter-table',
  CopyIntoSnowflake: 'copy',
  Drop: 'drop',
  LoadData: 'load',
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** The first list of identifiers in the tree, depth first in the order of the fields that hold a table. */
function tableOf(body: unknown): string {
  if (!isRecord(body)) return ''
  const parts = Array.isArray(body) ? body : undefined
  if (parts?.every((part) => isRecord(part) && 'Identifier' in part))
    return parts
      .map((part) => (isRecord(part.Identifier) ? String(part.Identifier.value) : ''))
      .join('.')
      .toLowerCase()
  for (const field of [
    'table',
    'TableName',
    'relation',
    'Table',
    'WithFromKeyword',
    'from',
    'name',
    'names',
    'into',
    'table_name',
    'table_names',
    '0',
  ]) {
    const found = field in body ? tableOf(body[field]) : ''
    if (found !== '') return found
  }
  return ''
}

function byParser(sql: string, dialect: Dialect): string[] {
  const tree: unknown = parse(sql, dialect)
  return (Array.isArray(tree) ? tree : []).map((statement: unknown) => {
    const [kind = '', body] = isRecord(statement) ? (Object.entries(statement)[0] ?? []) : []
    return `${KINDS[kind] ?? kind} ${kind === 'Query' ? '' : tableOf(body)}`.trim()
  })
}

function byShape(sql: string): string[] {
  return splitStatements(lexSql(sql)).map(({ kind, target }) =>
    `${kind} ${kind === 'select' ? '' : (target?.parts.join('.') ?? '')}`.trim(),
  )
}

interface Grammar {
  readonly dialect: Dialect
  readonly names: readonly string[]
  readonly statements: readonly ((table: string) => string)[]
}

const GRAMMARS: readonly Grammar[] = [
  {
    dialect: 'mysql',
    names: ['t', 'a.b', '`odd name`', '`a`.`b`'],
    statements: [
      (t) => `insert ignore into ${t} (a, b) values (1, 'it\\'s; x')`,
      (t) => `insert into ${t} values (1), (2) on duplicate key update a = values(a), b = b + 1`,
      (t) => `replace into ${t} (a) select a from s`,
      (t) => `update ${t} set a = 1, b = concat(b, ';') where c = 2 limit 3`,
      (t) => `delete from ${t} where a in (select a from s)`,
      (t) => `truncate table ${t}`,
      (t) => `create table if not exists ${t} (id int auto_increment primary key, a text)`,
      (t) => `alter table ${t} add column z int not null`,
      (t) => `drop table if exists ${t}`,
    ],
  },
  {
    dialect: 'bigquery',
    names: ['d.t', '`p.d.t`', '`p`.d.t', '`p-1.d.t`'],
    statements: [
      (t) => `insert into ${t} (a, b) select a, r'\\d' from s qualify row_number() over (partition by a) = 1`,
      (t) => `insert ${t} (a) values (1)`,
      (t) =>
        `merge into ${t} m using (select 1 as id) s on m.id = s.id when matched then update set a = 1 when not matched then insert (id) values (s.id)`,
      (t) =>
        `merge ${t} using s on false when not matched then insert row when not matched by source then delete`,
      (t) => `delete from ${t} where true`,
      (t) => `create or replace table ${t} partition by day as select current_date() as day`,
      (t) => `update ${t} set a = 1 where b = "x;y"`,
      (t) => `truncate table ${t}`,
    ],
  },
  {
    dialect: 'snowflake',
    names: ['t', 'a.b.c', '"Odd Name"', 'a."B"'],
    statements: [
      (t) => `insert overwrite into ${t} select $1, $2 from s`,
      (t) => `copy into ${t} from @stage/path file_format = (type = csv)`,
      (t) =>
        `merge into ${t} using s on ${t}.a = s.a when matched and s.b <> 1 then update set b = s.b when not matched then insert (a) values (s.a)`,
      (t) => `create or replace transient table ${t} as select v:a.b::string as x from s`,
      (t) => `create table if not exists ${t} (a number autoincrement, v variant)`,
      (t) => `truncate table if exists ${t}`,
      (t) => `drop table if exists ${t}`,
      (t) => `delete from ${t} using s where ${t}.a = s.a`,
    ],
  },
  {
    dialect: 'hive',
    names: ['t', 'd.t', '`t`'],
    statements: [
      (t) => `insert overwrite table ${t} partition (day = '2025-02-03') select a, b from s`,
      (t) => `insert into table ${t} select a from s`,
      (t) => `load data inpath 's3://x' into table ${t}`,
      (t) => `truncate table ${t}`,
      (t) => `drop table if exists ${t}`,
      (t) => `create table ${t} as select 1 as a`,
    ],
  },
  {
    dialect: 'mssql',
    names: ['t', 'dbo.t', '[dbo].[odd name]'],
    statements: [
      (t) => `insert into ${t} (a) values (N'x;y')`,
      (t) =>
        `merge into ${t} as m using s on m.a = s.a when matched then update set m.b = s.b when not matched then insert (a) values (s.a)`,
      (t) => `update ${t} set a = getdate() where b = 1`,
      (t) => `delete from ${t} where a = 1`,
      (t) => `truncate table ${t}`,
    ],
  },
  {
    dialect: 'sqlite',
    names: ['t', 'main.t', '"odd name"'],
    statements: [
      (t) => `insert or replace into ${t} (a) values (1)`,
      (t) => `insert or ignore into ${t} select a from s`,
      (t) => `insert into ${t} (a) values (1) on conflict (a) do update set b = excluded.b`,
      (t) => `update ${t} set a = a || ';'`,
      (t) => `delete from ${t}`,
    ],
  },
  {
    dialect: 'duckdb',
    names: ['t', 's.t', '"odd name"'],
    statements: [
      (t) => `insert into ${t} (a) select 1 as a`,
      (t) => `create or replace table ${t} as select * from read_parquet('*.parquet')`,
      (t) => `create temp table ${t} (a int)`,
      (t) => `insert into ${t} select unnest([1, 2, 3])`,
    ],
  },
]

test.each(GRAMMARS)(
  'kind and target agree with the second parser: $dialect',
  ({ dialect, names, statements }) => {
    const one = fc
      .tuple(fc.constantFrom(...statements), fc.constantFrom(...names), fc.boolean())
      .map(([build, name, upper]) => (upper ? `/* ; */ ${build(name)}` : build(name)))
    // Each on its own once, so that a form which the second parser refuses is seen and not counted as agreement.
    for (const build of statements)
      for (const name of names) {
        const sql = build(name)
        expect(byShape(sql), sql).toEqual(byParser(sql, dialect))
      }
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 5 }), (list) => {
        // One by one for the second parser, which reads on behind the options of a Snowflake copy.
        expect(byShape(list.join(';\n'))).toEqual(list.flatMap((sql) => byParser(sql, dialect)))
      }),
      { numRuns: 100 },
    )
  },
)
