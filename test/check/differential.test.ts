import fc from 'fast-check'
import { parse } from 'libpg-query'
import { expect, test } from 'vitest'
import { lexSql } from '../../src/check/sql/lexer.ts'
import { splitStatements } from '../../src/check/sql/split.ts'

/** Kind and table of each statement, as PostgreSQL's own parser has them. */
async function byPostgres(sql: string): Promise<string[]> {
  const tree: unknown = await parse(sql)
  const statements = isRecord(tree) && Array.isArray(tree.stmts) ? tree.stmts : []
  return statements.map((one: unknown) => {
    const statement = isRecord(one) && isRecord(one.stmt) ? one.stmt : {}
    const [kind = '', body] = Object.entries(statement)[0] ?? []
    return `${KINDS[kind] ?? kind} ${isRecord(body) ? tableOf(body) : ''}`.trim()
  })
}

const KINDS: Readonly<Record<string, string>> = {
  InsertStmt: 'insert',
  UpdateStmt: 'update',
  DeleteStmt: 'delete',
  MergeStmt: 'merge',
  TruncateStmt: 'truncate',
  SelectStmt: 'select',
  CreateStmt: 'create-table',
  CreateTableAsStmt: 'create-table',
  AlterTableStmt: 'alter-table',
  CopyStmt: 'copy',
  IndexStmt: 'create-index',
  ViewStmt: 'create-view',
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function tableOf(body: Record<string, unknown>): string {
  const into = isRecord(body.into) ? body.into.rel : undefined
  const first =
    Array.isArray(body.relations) && isRecord(body.relations[0]) ? body.relations[0].RangeVar : undefined
  const relation = body.relation ?? into ?? first ?? body.view
  if (!isRecord(relation)) return ''
  return [relation.catalogname, relation.schemaname, relation.relname]
    .filter((part) => typeof part === 'string')
    .join('.')
    .toLowerCase()
}

function byShape(sql: string): string[] {
  return splitStatements(lexSql(sql)).map((statement) => {
    const table = ['select', 'create-view'].includes(statement.kind) ? '' : (statement.target?.text ?? '')
    return `${statement.kind} ${table}`.trim()
  })
}

const name = fc.constantFrom('t', 'a.b', '"Odd Name"', 's."x"', 'orders', 'x_1')
const columns = fc.constantFrom('', '(a, b)', '(a, "b")')
const rows = fc.constantFrom(
  'values (1, 2)',
  "values ('it''s', $$;$$)",
  'select 1, 2',
  'select a, b from s where c > 1',
  '(select 1, 2)',
  'with q as (select 1, 2) select * from q',
  'default values',
)
const conflict = fc.constantFrom(
  '',
  'on conflict do nothing',
  'on conflict (a) do update set b = excluded.b',
  'on conflict (a) where b > 1 do update set (a, b) = (excluded.a, 2) where t.b is distinct from excluded.b',
  'on conflict on constraint k do nothing',
)
const returning = fc.constantFrom('', 'returning *')
const comment = fc.constantFrom('', '/* insert into z */ ', '-- delete from z\n', '/* a /* b */ ; */ ')
const statement = fc.oneof(
  fc
    .tuple(comment, name, columns, rows, conflict, returning)
    .map(
      ([note, table, list, source, clause, back]) =>
        `${note}insert into ${table} ${source === 'default values' ? '' : list} ${source} ${clause} ${back}`,
    ),
  fc
    .tuple(
      name,
      fc.constantFrom('a = a + 1', "a = 'x;y', b = (select max(c) from d)", '(a, b) = (1, 2)'),
      fc.constantFrom('', 'from s', 'where c = 1', 'from s where s.id = 1'),
    )
    .map(([table, set, tail]) => `update ${table} as u set ${set} ${tail}`),
  fc
    .tuple(name, fc.constantFrom('', 'using s where s.a = 1', 'where a in (select 1)'))
    .map(([table, tail]) => `delete from ${table} ${tail}`),
  name.map(
    (table) =>
      `merge into ${table} as m using (select 1 as id) as s on m.id = s.id when matched then update set a = 1 when not matched then insert (id) values (s.id)`,
  ),
  name.map((table) => `truncate table ${table}`),
  fc
    .tuple(
      fc.constantFrom('', 'temp ', 'unlogged '),
      fc.constantFrom('', 'if not exists '),
      name.filter((one) => !one.includes('.')),
    )
    .map(
      ([temporary, guard, table]) =>
        `create ${temporary}table ${guard}${table} (id int primary key, a text default 'x', check (id > 0))`,
    ),
  name.map((table) => `create table ${table} as select 1 as a`),
  name.map((table) => `alter table ${table} add column z int`),
  name.map((table) => `copy ${table} from stdin`),
  fc.constantFrom(
    'select 1',
    'select a from b where c in (select d from e)',
    'with q as (select 1) select * from q',
  ),
)

test('kind and target agree with the parser of PostgreSQL, statement by statement', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(statement, { minLength: 1, maxLength: 5 }), async (statements) => {
      const sql = statements.join(';\n')
      const expected = await byPostgres(sql)
      const unquoted = byShape(sql)
      expect(unquoted).toEqual(expected)
    }),
    { numRuns: 500 },
  )
})

test('also where the semicolons between statements of a line each are missing', async () => {
  const sql = [
    'insert into t values (1)',
    'delete from t where a = 2',
    'update t set a = 3',
    'truncate table t',
  ]
  expect(byShape(sql.join('\n'))).toEqual(await byPostgres(sql.join(';\n')))
})
