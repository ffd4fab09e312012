import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { check } from '../../src/check/command.ts'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

/** Severity and confidence of the one finding of that rule. */
async function weightOf(rule: string, files: Readonly<Record<string, string>>): Promise<string[]> {
  const { findings } = await checkFiles(
    files,
    RULES.filter((one) => one.id === rule),
  )
  return findings.map((finding) => `${finding.severity} ${finding.confidence}`)
}

test('a model that appends is an error, one behind a strict filter a warning: a plain rerun adds nothing there', async () => {
  const model = (operator: string): Record<string, string> => ({
    'models/o.sql': `{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere at ${operator} (select max(at) from {{ this }})\n{% endif %}\n`,
  })
  expect(await weightOf('dbt-no-key', model('>='))).toEqual(['error high'])
  expect(await weightOf('dbt-no-key', model('>'))).toEqual(['warning medium'])
})

test('an insert into a table that another file drops in a list is a hint', async () => {
  const load = { 'etl/2_fill.sql': 'insert into b select * from s;\n' }
  expect(await weightOf('insert-no-key', load)).toEqual(['error medium'])
  expect(
    await weightOf('insert-no-key', { ...load, 'etl/1_make.sql': 'drop table if exists a, b;\n' }),
  ).toEqual(['info low'])
  expect(await weightOf('insert-no-key', { ...load, 'etl/1_make.sql': 'truncate a, b cascade;\n' })).toEqual([
    'info low',
  ])
})

test.each([
  ['all rows', 'truncate table {table}', []],
  ['all rows by a delete', 'delete from {table}', []],
  ['the rows of a day', 'delete from {table} where day = %s', []],
  ['the rows of some days', 'delete from {table} where day between %s and %s', []],
  ['the rows from a day on', 'delete from {table} where day >= %s', []],
  ['a condition that is not seen', 'delete from {table} where {condition}', []],
  ['rows that are too old', "delete from {table} where at < now() - interval '30 days'", ['error low']],
])('an insert behind a helper that deletes %s', async (_, statement, weights) => {
  const code = `import psycopg2\ndef clear(cur, table):\n    cur.execute(f"${statement}")\ndef load(cur, table):\n    clear(cur, table)\n    cur.execute(f"insert into {table} select * from s")\n`
  expect(await weightOf('insert-no-key', { 'dags/load.py': code })).toEqual(weights)
})

test('what a wrapper of the configuration runs once is a hint', async () => {
  const root = mkdtempSync(join(tmpdir(), 'stet-wrapper-'))
  try {
    mkdirSync(join(root, 'jobs'))
    writeFileSync(
      join(root, 'jobs', 'a.ts'),
      'import { io } from "./io";\nexport const load = () => io.runTask("load", () => db.query("insert into t select * from s"));\nexport const other = () => db.query("insert into u select * from s");\n',
    )
    const weights = async (safeWrappers: readonly string[]): Promise<string[]> =>
      (await check({ root, config: { safeWrappers } })).findings
        .filter((one) => one.rule === 'insert-no-key')
        .map((one) => `${one.from.line} ${one.severity}`)
    expect(await weights([])).toEqual(['2 error', '3 error'])
    expect(await weights(['io.runTask'])).toEqual(['2 info', '3 error'])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
