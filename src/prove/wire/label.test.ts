import { expect, test } from 'vitest'
import { labelOf } from './label.ts'

test.each([
  ['comments and white space are gone', 'select 1 -- one\n /* a /* nested */ b */ ,  2', 'select ?'],
  [
    'literals are ?',
    "insert into t values ('it''s', E'a\\'b', $$c'd$$, 1.5e3, -2)",
    'insert into t values (?)',
  ],
  [
    'a list of rows is one row',
    "insert into t(a, b) values (1,'x'), ($1, $2),(3,4)",
    'insert into t (a, b) values (?)',
  ],
  [
    'words are folded, quoted names kept',
    'SELECT "Col", COUNT(*) FROM S.T;',
    'select "Col", count (*) from s.t',
  ],
  [
    'an operator stays',
    "select a::text || 'x' from t where b >= 3",
    'select a::text || ? from t where b >= ?',
  ],
])('%s', (_, sql, label) => {
  expect(labelOf(sql)).toBe(label)
})

test('digits in names stay apart unless folded', () => {
  expect(labelOf('drop table stg_1709_29437')).toBe('drop table stg_1709_29437')
  expect(labelOf('drop table stg_1709_29437', { foldDigits: true })).toBe('drop table stg_#_#')
})

test('a long text is cut, and two that differ at the end stay two', () => {
  const text = (last: string) => `select ${'column_name + '.repeat(100)}${last}`
  expect(labelOf(text('a')).length).toBeLessThan(420)
  expect(labelOf(text('a'))).not.toBe(labelOf(text('b')))
})

test('a statement of megabytes takes no time to speak of', () => {
  const sql = `insert into t values ${'(1, $$x$$), '.repeat(200_000)}(2, 3)`
  expect(labelOf(sql)).toBe('insert into t values (?)')
})
