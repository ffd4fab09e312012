/** A front end that fails on one file: the failure is planted in the parser and in the lexer that all files pass. */
import { Parser } from 'web-tree-sitter'
import { afterEach, expect, test, vi } from 'vitest'
import { exitStatusOf } from '../../src/check/command.ts'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

const planted = vi.hoisted(() => ({ mark: 'never' }))

vi.mock('../../src/check/sql/lexer.ts', async (original) => {
  const lexer = await original<typeof import('../../src/check/sql/lexer.ts')>()
  return {
    ...lexer,
    lexSql: (text: string) => {
      if (text.includes(planted.mark)) throw new RangeError('the lexer ran out')
      return lexer.lexSql(text)
    },
  }
})

afterEach(() => {
  planted.mark = 'never'
  vi.restoreAllMocks()
})

const APPENDS = 'import pandas as pd\ndef load(df, e):\n    df.to_sql("t", e, if_exists="append")\n'
const rules = RULES.filter((rule) => ['insert-no-key', 'dataframe-append'].includes(rule.id))

test('a file that the parser crashes on is listed, and the files behind it are read', async () => {
  const { parse } = Parser.prototype
  const spoilt = new WeakSet<Parser>()
  vi.spyOn(Parser.prototype, 'parse').mockImplementation(function (this: Parser, text, ...rest) {
    // A parser that has crashed once does not come round.
    if (typeof text === 'string' && text.includes('# crash')) spoilt.add(this)
    if (spoilt.has(this)) throw new Error('memory access out of bounds')
    return parse.call(this, text, ...rest)
  })
  const { findings, files, notRead, failures } = await checkFiles(
    { 'jobs/a.py': APPENDS, 'jobs/b.py': `${APPENDS}# crash\n`, 'jobs/c.py': APPENDS },
    rules,
  )
  expect(findings.map(({ path }) => path)).toEqual(['jobs/a.py', 'jobs/c.py'])
  expect(notRead).toEqual([
    { path: 'jobs/b.py', reason: 'the reader of python failed on it: memory access out of bounds' },
  ])
  expect(files).toBe(2)
  expect(exitStatusOf({ failures }, findings.length)).toBe(2)
})

test('so is one that the SQL lexer fails on, whose tables are then unknown', async () => {
  planted.mark = 'planted'
  const insert = 'insert into t select * from s;\n'
  const { findings, notRead, failures } = await checkFiles(
    { 'etl/a.sql': insert, 'etl/schema.sql': 'create table t (planted int primary key);\n' },
    rules,
  )
  expect(findings.map(({ path, confidence }) => `${path} ${confidence}`)).toEqual(['etl/a.sql medium'])
  expect(notRead).toEqual([
    { path: 'etl/schema.sql', reason: 'the reader of sql failed on it: the lexer ran out' },
  ])
  expect(failures).toBe(1)
})
