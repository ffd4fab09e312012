import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { example, HANGING, type Workshop, workshop } from './workshop.ts'

const bin = process.env.STET_DAGSTER ?? ''
const MINUTES = 60_000

async function dagster(text: string): Promise<Workshop> {
  const shop = await workshop(bin, { DAGSTER_HOME: '{folder}/home', DAGSTER_DISABLE_TELEMETRY: 'true' })
  await writeFile(join(shop.folder, 'visits.py'), text)
  return shop
}

const MATERIALIZE = ['asset', 'materialize', '--select', 'visits', '-f', 'visits.py']
const materialize = (shop: Workshop, ...partition: readonly string[]) =>
  shop.call('dagster', [...MATERIALIZE, ...partition])

describe.skipIf(bin === '')('Dagster (npm run test:orchestrators installs it)', () => {
  test('loads the slice of the partition, under its run id; again, nothing is written', {
    timeout: 10 * MINUTES,
  }, async () => {
    await using shop = await dagster(await example('dagster/visits.py'))
    for (const inserted of [3, 0]) {
      const { status, text } = await materialize(shop, '--partition', '2025-05-03')
      expect(status, text).toBe(0)
      expect(text).toContain('note: slice 2025-05-03, from DAGSTER_PIPES_CONTEXT')
      expect(text).toContain(`"visits": ${inserted} inserted`)
    }
    const runs = await shop.runs()
    expect(runs).toMatchObject([{ slice: '2025-05-03' }, { slice: '2025-05-03' }])
    for (const { runId } of runs) expect(runId).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(2)
  })

  test('runs the job of a partition, and retries after a failure', { timeout: 10 * MINUTES }, async () => {
    await using shop = await dagster(await example('dagster/visits.py', [['delay=30', 'delay=1']]))
    await shop.stetIs(`if [ -e seen ]; then exec "$STET" "$@"; fi
touch seen
exit 75`)
    const tags = JSON.stringify({ 'dagster/partition': '2025-05-01' })
    const { status, text } = await shop.call('dagster', [
      'job',
      'execute',
      '-f',
      'visits.py',
      '-j',
      'visits_job',
      '--tags',
      tags,
    ])
    expect(status, text).toBe(0)
    expect(text).toContain('failed with code 75')
    expect(await shop.runs()).toMatchObject([{ slice: '2025-05-01', status: 'succeeded' }])
  })

  test('fails where Stet fails, and its log says why', { timeout: 10 * MINUTES }, async () => {
    await using shop = await dagster(await example('dagster/visits.py', [['max_retries=3', 'max_retries=0']]))
    const { status, text } = await materialize(shop, '--partition', '2025-05-05')
    expect(status).not.toBe(0)
    expect(text).toContain('STET_SOURCE')
    await copyFile(
      join(shop.pipelines, 'inbox/visits-2025-05-04.csv'),
      join(shop.pipelines, 'inbox/visits-2025-05-05.csv'),
    )
    const wrong = await materialize(shop, '--partition', '2025-05-05')
    expect(wrong.text).toContain('STET_OUTSIDE_SLICE')
  })

  test('stops the run when it is stopped itself, and the table is as it was', {
    timeout: 10 * MINUTES,
  }, async () => {
    await using shop = await dagster(await example('dagster/visits.py'))
    await writeFile(join(shop.pipelines, 'visits.ts'), HANGING)
    const running = shop.start('dagster', [...MATERIALIZE, '--partition', '2025-05-02'])
    await expect.poll(() => running.text(), { timeout: 3 * MINUTES }).toContain('reading without end')
    running.kill('SIGTERM')
    expect((await running.ended).status).not.toBe(0)
    await expect
      .poll(async () => (await shop.runs()).map(({ status }) => status), { timeout: MINUTES })
      .toEqual(['interrupted'])
  })
})
