import { expect, test } from 'vitest'
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
