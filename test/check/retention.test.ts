/** What is deleted in another function or file makes room for a load only if it can hit what the load adds. */
import { expect, test } from 'vitest'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

const rules = RULES.filter((rule) => rule.id === 'insert-no-key')

const dag = (deletes: string): string =>
  `from airflow.decorators import task
import psycopg2
@task
def clean(cur, day):
    cur.execute("${deletes}", (day,))

@task
def load(cur, day):
    cur.execute("INSERT INTO visits SELECT * FROM raw_visits WHERE day = %s", (day,))
`

test.each([
  ["DELETE FROM visits WHERE at < now() - interval '90 days'", 'error'],
  ['DELETE FROM visits WHERE at <= %s', 'error'],
  ["DELETE FROM visits WHERE at < now() - interval '90 days' OR day = %s", 'info'],
  ['DELETE FROM visits WHERE day = %s', 'info'],
  ['DELETE FROM visits WHERE day >= %s', 'info'],
  ["DELETE FROM visits WHERE at >= now() - interval '14 days'", 'info'],
  ["DELETE FROM visits WHERE now() - at > interval '90 days'", 'error'],
  ['DELETE FROM visits', 'info'],
  ['TRUNCATE TABLE visits', 'info'],
  ["ALTER TABLE visits DELETE WHERE day >= '2025-01-01'", 'info'],
])('another task: %s', async (deletes, severity) => {
  const { findings } = await checkFiles({ 'dags/visits.py': dag(deletes) }, rules)
  expect(findings.map((one) => one.severity)).toEqual([severity])
})

test.each([
  ["delete from visits where at < now() - interval '90 days';\n", 'error'],
  ['delete from visits where day = :day;\n', 'info'],
  ['drop table if exists visits;\n', 'info'],
])('another file: %s', async (text, severity) => {
  const { findings } = await checkFiles(
    { 'etl/1_clean.sql': text, 'etl/2_load.sql': 'insert into visits select * from raw_visits;\n' },
    rules,
  )
  expect(findings.map((one) => one.severity)).toEqual([severity])
})
