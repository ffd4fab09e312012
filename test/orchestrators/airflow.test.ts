import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { example, HANGING, type Workshop, workshop } from './workshop.ts'

const VERSIONS = [
  {
    name: 'Airflow 3',
    bin: process.env.STET_AIRFLOW3,
    file: 'airflow/visits_airflow3.py',
    schedule: 'CronDataIntervalTimetable("0 0 * * *", timezone="UTC")',
    variable: 'AIRFLOW_CTX_LOGICAL_DATE',
  },
  {
    name: 'Airflow 2',
    bin: process.env.STET_AIRFLOW2,
    file: 'airflow/visits_airflow2.py',
    schedule: '"@daily"',
    variable: 'AIRFLOW_CTX_EXECUTION_DATE',
  },
] as const

const QUICK_RETRY = ['retry_delay": timedelta(seconds=30)', 'retry_delay": timedelta(seconds=1)'] as const
const MINUTES = 60_000

/** An Airflow of its own, with SQLite, and the DAG of the recipe. */
async function airflow(bin: string, dag: string): Promise<Workshop> {
  const shop = await workshop(bin, {
    AIRFLOW_HOME: '{folder}/home',
    AIRFLOW__CORE__DAGS_FOLDER: '{folder}/dags',
    AIRFLOW__CORE__LOAD_EXAMPLES: 'False',
  })
  await mkdir(join(shop.folder, 'dags'))
  await writeFile(join(shop.folder, 'dags', 'visits.py'), dag)
  const migrated = await shop.call('airflow', ['db', 'migrate'])
  expect(migrated.status, migrated.text).toBe(0)
  return shop
}

const dagTest = (shop: Workshop, day: string) => shop.call('airflow', ['dags', 'test', 'visits', day])

/** Logical date of the next scheduled run, and when it starts, as the scheduler has them. */
async function nextRun(shop: Workshop): Promise<readonly string[]> {
  const planned = await shop.call('airflow', ['dags', 'reserialize'])
  expect(planned.status, planned.text).toBe(0)
  const code = `import sqlite3
row = sqlite3.connect(${JSON.stringify(join(shop.folder, 'home/airflow.db'))}).execute(
    "select next_dagrun, next_dagrun_create_after from dag where dag_id = 'visits'").fetchone()
print(*(text[:10] for text in row))`
  const { text } = await shop.call('python', ['-c', code])
  return text.trim().split(' ')
}

const dayBefore = (day: string | undefined) =>
  new Date(Date.parse(day ?? '') - 86_400_000).toISOString().slice(0, 10)

for (const { name, bin = '', file, schedule, variable } of VERSIONS) {
  describe.skipIf(bin === '')(`${name} (npm run test:orchestrators installs it)`, () => {
    test('loads the day of the logical date, under its run id; again, nothing is written', {
      timeout: 10 * MINUTES,
    }, async () => {
      await using shop = await airflow(bin, await example(file))
      for (const inserted of [3, 0]) {
        const { status, text } = await dagTest(shop, '2025-05-02')
        expect(status, text).toBe(0)
        expect(text).toContain(`note: logical time 2025-05-02T00:00:00+00:00, from ${variable}`)
        expect(text).toContain(`"visits": ${inserted} inserted`)
      }
      const runs = await shop.runs()
      expect(runs).toMatchObject([{ slice: '2025-05-02' }, { slice: '2025-05-02' }])
      for (const { runId } of runs) expect(runId).toMatch(/^manual__.*\/load$/)
    })

    test('retries after a lost connection (75), and skips at 99', { timeout: 10 * MINUTES }, async () => {
      await using shop = await airflow(bin, await example(file, [QUICK_RETRY]))
      await shop.stetIs(`if [ -e seen ]; then exec "$STET" "$@"; fi
touch seen
exit 75`)
      const retried = await dagTest(shop, '2025-05-01')
      expect(retried.status, retried.text).toBe(0)
      expect(retried.text).toContain('return code 75')
      expect(await shop.runs()).toMatchObject([{ slice: '2025-05-01', status: 'succeeded' }])
      await shop.stetIs('exit 99')
      const skipped = await dagTest(shop, '2025-05-03')
      expect(skipped.text).toContain('Bash command returned exit code 99. Skipping.')
    })

    test('stops a run that takes too long by SIGTERM, and the table is as it was', {
      timeout: 10 * MINUTES,
    }, async () => {
      await using shop = await airflow(
        bin,
        await example(file, [
          ['"retries": 3', '"retries": 0'],
          ['timedelta(hours=1)', 'timedelta(seconds=15)'],
        ]),
      )
      await writeFile(join(shop.pipelines, 'visits.ts'), HANGING)
      const { text } = await dagTest(shop, '2025-05-02')
      expect(text).toMatch(/Sending SIGTERM signal to process group/)
      await expect
        .poll(async () => (await shop.runs()).map(({ status }) => status), { timeout: MINUTES })
        .toEqual(['interrupted'])
    })

    test('starts the run of a day when the day is over', { timeout: 10 * MINUTES }, async () => {
      await using shop = await airflow(bin, await example(file))
      const [logical, start] = await nextRun(shop)
      expect(logical).toBe(dayBefore(start))
    })

    test.runIf(name === 'Airflow 3')(
      'with a plain schedule the logical date is the moment of the start, a day too late',
      { timeout: 10 * MINUTES },
      async () => {
        await using shop = await airflow(bin, await example(file, [[schedule, '"0 0 * * *"']]))
        const [logical, start] = await nextRun(shop)
        expect(logical).toBe(start)
      },
    )
  })
}
