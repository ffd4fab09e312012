import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lexSql } from '../../src/check/sql/lexer.ts'
import { splitStatements } from '../../src/check/sql/split.ts'

const kinds = (sql: string): string[] => splitStatements(lexSql(sql)).map((statement) => statement.kind)
const target = (sql: string): string | undefined => splitStatements(lexSql(sql))[0]?.target?.text

const PIECES = [
  'insert into ',
  't',
  ' values ',
  '(',
  ')',
  "'",
  '"',
  '`',
  '$$',
  '$a$',
  '/*',
  '*/',
  '--',
  '\n',
  ';',
  '{{',
  '}}',
  '{%',
  '%}',
  '{#',
  '#}',
  '{',
  '}',
  '${',
  '⟦',
  '⟧',
  '%s',
  ':x',
  '@y',
  '?',
  '\\',
  ',',
  '.',
  '=',
  'merge into ',
  'using ',
  'when matched then update set ',
  ' on conflict ',
  'do update set ',
  'delete from ',
  'with x as (',
  'begin',
  'commit',
  'create table ',
  '0x1',
  '1e5',
  'ä',
  '😀',
  '[',
  ']',
  '::',
  ' as ',
  "E'",
  '"""',
  "'''",
  '#',
  'update ',
  ' set ',
  '||',
]
const sqlLike = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((parts) => parts.join(''))

test('no text makes the lexer or the recogniser throw, and positions never leave it', () => {
  fc.assert(
    fc.property(fc.oneof(sqlLike, fc.string({ unit: 'grapheme' })), (text) => {
      const lexed = lexSql(text)
      let last = 0
      for (const token of lexed.tokens) {
        expect(token.start).toBeGreaterThanOrEqual(last)
        expect(token.end).toBeLessThanOrEqual(text.length)
        last = token.end
      }
      for (const statement of splitStatements(lexed)) {
        expect(statement.start).toBeLessThanOrEqual(statement.end)
        expect(statement.end).toBeLessThanOrEqual(text.length)
      }
    }),
    { numRuns: 3000 },
  )
})

test('every word and number of plain SQL is in some token', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('select', 'a', '1', 'from', 't', '=', '(', ')', ',', '+'), { maxLength: 40 }),
      (parts) => {
        const text = parts.join(' ')
        expect(lexSql(text).tokens.map((token) => token.text)).toEqual(parts)
      },
    ),
  )
})

test.each(PIECES.map((piece) => [piece]))('time is linear for a text of many %j', (piece) => {
  // Processor time, and the best of some tries: other processes share the machine.
  const measure = (times: number): number => {
    const text = `${piece} `.repeat(times)
    const tries = Array.from({ length: 4 }, () => {
      const before = process.cpuUsage()
      splitStatements(lexSql(text))
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    })
    return Math.min(...tries)
  }
  measure(1000)
  // 15 times the text may take 15 times as long and some; a quadratic step would take 225 times.
  const small = Math.max(measure(2000), 1)
  expect(measure(30_000)).toBeLessThan(small * 120)
})

test('template holes are tokens of their own', () => {
  const holes = (sql: string): string[] =>
    lexSql(sql)
      .tokens.filter((token) => token.kind === 'hole')
      .map((token) => token.value)
  expect(holes("select {{ ref('x') }}, {y}, ${z}, %s, %(day)s, :d, @e, $1, ? from t")).toEqual([
    "ref('x')",
    'y',
    'z',
    '%s',
    '%(day)s',
    ':d',
    '@e',
    '$1',
    '?',
  ])
  expect(holes("{{ config({'a': {'b': 1}}) }} select 1")).toEqual(["config({'a': {'b': 1}})"])
})

test('casts, paths and modulo are no holes', () => {
  const { tokens } = lexSql('select a::date, data:field, b % 2 from t')
  expect(tokens.some((token) => token.kind === 'hole')).toBe(false)
})

test('comments of all dialects are kept apart', () => {
  const lexed = lexSql('-- one\n# two\nselect 1 /* three /* nested */ */ {# four #}\n, \'--no\', "/*no*/"')
  expect(lexed.comments.map((comment) => comment.text)).toEqual([
    '-- one',
    '# two',
    '/* three /* nested */ */',
    '{# four #}',
  ])
})

test('a hash is an operator of PostgreSQL within a line', () => {
  expect(lexSql("select a #> '{x}', b # c").comments).toEqual([])
})

test('quotes of all dialects', () => {
  const strings = (sql: string): string[] =>
    lexSql(sql)
      .tokens.filter((token) => token.kind === 'string')
      .map((token) => token.value)
  expect(strings("select 'it''s', $$a;b$$, $tag$ $$ $tag$, '''x'y'''")).toEqual([
    "it''s",
    'a;b',
    ' $$ ',
    "x'y",
  ])
  expect(strings("select 'a\\'b', 'c'")).toEqual(["a\\'b", 'c'])
  expect(strings("select '\\', 'c'")).toEqual(['\\', 'c'])
})

test('a semicolon inside quotes, brackets and bodies ends nothing', () => {
  expect(
    kinds(
      "insert into t values (';'); create function f() returns void as $$ begin delete from x; end $$ language plpgsql; select 1 from t",
    ),
  ).toEqual(['insert', 'create-routine', 'select'])
})

test('statements without semicolons are split at the head of a line', () => {
  expect(kinds('delete from a where d = 1\ninsert into a select * from b\nupdate c set x = 1')).toEqual([
    'delete',
    'insert',
    'update',
  ])
  expect(
    kinds(
      'merge into t using s on t.id = s.id\nwhen matched then\nupdate set a = 1\nwhen not matched then\ninsert (a) values (1)',
    ),
  ).toEqual(['merge'])
  expect(kinds('insert into t select 1\non conflict (a) do\nupdate set b = 1')).toEqual(['insert'])
})

test.each([
  ['insert into a.b (x) values (1)', 'insert', 'a.b'],
  ['INSERT INTO `p.d.t$20240101` SELECT 1', 'insert', 'p.d.t$20240101'],
  ['insert {ds}.runs values (1)', 'insert', '{ds}.runs'],
  ["insert overwrite table t partition (d = '1') select 1", 'insert', 't'],
  ['with q as (select 1) insert into t select * from q', 'insert', 't'],
  ['replace into t (a) values (1)', 'insert', 't'],
  ['merge into d.t as x using s on x.a = s.a when matched then delete', 'merge', 'd.t'],
  ['delete from only t where a = 1', 'delete', 't'],
  ['truncate table a.b', 'truncate', 'a.b'],
  ['update t set a = 1', 'update', 't'],
  ['create temp table if not exists x as select 1', 'create-table', 'x'],
  ["copy t from 's3://b' iam_role default", 'copy', 't'],
  ['copy into t from @stage', 'copy', 't'],
  ["load data local infile 'x' into table t", 'load', 't'],
  ['insert into [dbo].[t] (a) values (1)', 'insert', 'dbo.t'],
  ["insert into {{ source('a', 'b') }} select 1", 'insert', "{source('a','b')}"],
  ['insert into {schema}.stage_{table} select 1', 'insert', '{schema}.stage_{table}'],
])('%s', (sql, kind, name) => {
  expect(kinds(sql)).toEqual([kind])
  expect(target(sql)).toBe(name)
})
