import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { classesOf, type Proof, type Verdict } from '../../src/prove/prove.ts'
import { proofDocument } from '../../src/prove/report/document.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { type Class, DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { violations } from '../support/schemas.ts'
import { hasPsql, PATIENCE_MS, proveIt, pythonLacks, samples } from './support.ts'

interface Expected {
  readonly sample: string
  readonly verdict: Verdict
  /** What a plain second run shows. */
  readonly twice: readonly Class[]
  /** What is seen in all trials together. */
  readonly classes: readonly Class[]
  readonly touched?: string
  /** In the default order of trials nothing but these faults shows it. */
  readonly onlyBy?: readonly string[]
  readonly needs?: 'psycopg2'
}

const NOTHING: readonly Class[] = []

const TABLE: readonly Expected[] = [
  { sample: '01_bad_insert_nokey', verdict: 'convicted', twice: ['doubled'], classes: ['doubled'] },
  { sample: '02_good_upsert_hash', verdict: 'survives', twice: NOTHING, classes: NOTHING },
  {
    sample: '03_touch_upsert_now',
    verdict: 'survives',
    twice: NOTHING,
    classes: NOTHING,
    touched: 'fact_k 30 of 30',
  },
  {
    sample: '04_torn_delete_insert_no_tx',
    verdict: 'survives',
    twice: NOTHING,
    classes: ['not two at once', 'gap'],
    touched: 'fact 10 of 10',
  },
  {
    sample: '05_good_delete_insert_tx',
    verdict: 'survives',
    twice: NOTHING,
    classes: NOTHING,
    touched: 'fact 10 of 10',
  },
  {
    sample: '05b_race_delete_insert_tx_nolock',
    verdict: 'survives',
    twice: NOTHING,
    classes: ['not two at once'],
    touched: 'fact 10 of 10',
  },
  { sample: '06_bad_counter', verdict: 'convicted', twice: ['doubled'], classes: ['doubled'] },
  {
    sample: '07_bad_watermark_before_load',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['lost', 'not two at once'],
    touched: 'wm 1 of 1',
  },
  {
    sample: '08_bad_watermark_after_other_tx',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['doubled', 'not two at once'],
    touched: 'wm 1 of 1',
  },
  {
    sample: '09_good_watermark_same_tx',
    verdict: 'survives',
    twice: NOTHING,
    classes: NOTHING,
    touched: 'wm 1 of 1',
  },
  { sample: '10_bad_append_file', verdict: 'convicted', twice: ['doubled'], classes: ['doubled'] },
  { sample: '11_good_file_rename', verdict: 'survives', twice: NOTHING, classes: NOTHING },
  {
    sample: '12_bad_post_random_key',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['doubled', 'not two at once'],
    needs: 'psycopg2',
  },
  {
    sample: '13_good_post_derived_key',
    verdict: 'survives',
    twice: NOTHING,
    classes: NOTHING,
    needs: 'psycopg2',
  },
  {
    sample: '14_bad_blind_retry',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['doubled', 'claims success', 'not two at once'],
    onlyBy: ['cut after'],
    needs: 'psycopg2',
  },
  {
    sample: '15_bad_psql_ignores_errors',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['lost', 'claims success', 'not two at once'],
    touched: 'fact 30 of 30',
    onlyBy: ['error'],
  },
  {
    sample: '16_bad_temp_left_behind',
    verdict: 'survives',
    twice: NOTHING,
    classes: ['left behind'],
    touched: 'fact 30 of 30',
  },
  {
    sample: '17_loop_10k_upserts',
    verdict: 'survives',
    twice: NOTHING,
    classes: ['gap'],
    touched: 'wm 1 of 1',
  },
  {
    sample: '18_bad_loop_10k_resume_by_count',
    verdict: 'convicted',
    twice: NOTHING,
    classes: ['doubled', 'not two at once', 'gap'],
  },
  {
    sample: '19_good_delete_insert_serial',
    verdict: 'survives',
    twice: ['renumbered'],
    classes: ['renumbered'],
  },
  { sample: '20_bad_append_runlog_ok', verdict: 'convicted', twice: ['doubled'], classes: ['doubled'] },
]

/** STET_PROVE_REPEAT=10 proves each of them ten times in a row, each time with the same outcome. */
const TIMES = Number(process.env['STET_PROVE_REPEAT'] ?? 1)
const RUNS = Array.from({ length: TIMES }, (_, at) => TABLE.map((one) => ({ ...one, round: at + 1 }))).flat()

/** Two checkpoints of a thousand show what ten show; STET_PROVE_FULL runs all 10,000. */
const isFull = process.env['STET_PROVE_FULL'] !== undefined

function loopLength(sample: string): number {
  if (isFull) return 10_000
  return sample.startsWith('17') ? 500 : 2000
}

async function proveSample(sample: string, ignore: readonly string[] = []): Promise<Proof> {
  return proveIt({
    command: ['bash', 'run'],
    workFolder: `${samples}/${sample}`,
    filling: { kind: 'seed', file: `${samples}/common.sql` },
    passed: [
      `SAMPLES_REQUIRE_FROM=${fileURLToPath(import.meta.url)}`,
      'HTTP_ENDPOINT={http}',
      `N=${loopLength(sample)}`,
    ],
    ignore,
  })
}

const sorted = (classes: Iterable<Class>) => [...new Set(classes)].sort()

describe.skipIf(!hasPsql)('the sample pipelines (they need psql)', { timeout: PATIENCE_MS }, () => {
  const lacksPsycopg2 = pythonLacks('psycopg2')

  test.for(RUNS)(
    TIMES === 1 ? '$sample: $verdict' : '$sample: $verdict, round $round',
    { timeout: PATIENCE_MS },
    async ({ sample, verdict, twice, classes, touched, onlyBy, needs }, { skip }) => {
      skip(needs === 'psycopg2' && lacksPsycopg2, 'python has no psycopg2')
      const proof = await proveSample(sample)
      const report = terminalReport(proof, DEFAULT_FAIL_ON)
      expect(proof.verdict, report).toBe(verdict)
      const [plain] = proof.trials
      expect(sorted(plain === undefined ? [] : classesOf(plain)), report).toEqual(sorted(twice))
      expect(sorted(proof.trials.flatMap((trial) => classesOf(trial))), report).toEqual(sorted(classes))
      expect(
        proof.touched.map(({ table, rows, of }) => `${table} ${rows} of ${of}`),
        report,
      ).toEqual(touched === undefined ? [] : [touched])
      expect(proof.counts.notReached, report).toBe(0)
      if (onlyBy !== undefined) {
        const faults = proof.trials
          .filter((trial) => classesOf(trial).some((name) => DEFAULT_FAIL_ON.includes(name)))
          .map((trial) => trial.planned?.fault.kind ?? 'twice')
        expect([...new Set(faults)], report).toEqual(onlyBy)
      }
      const document: unknown = JSON.parse(JSON.stringify(proofDocument(proof, DEFAULT_FAIL_ON)))
      expect(document).toMatchObject({ verdict })
      expect(violations('prove.json', document)).toEqual([])
    },
  )

  test('a log of runs is convicted with a hint, and survives when it is left out', async () => {
    const proof = await proveSample('20_bad_append_runlog_ok')
    expect(terminalReport(proof, DEFAULT_FAIL_ON)).toContain('--ignore etl_runs')
    expect((await proveSample('20_bad_append_runlog_ok', ['etl_runs'])).verdict).toBe('survives')
  })

  test('the report shows the cut, the rows, the cause and how to see it again', async () => {
    const report = terminalReport(await proveSample('08_bad_watermark_after_other_tx'), DEFAULT_FAIL_ON)
    for (const part of [
      'DOUBLED  30 rows in fact',
      'the first load, killed after commit 1 of 2',
      '✂  - - - - - - - - killed here',
      'after the rerun: 60 rows where a clean run leaves 30',
      'order_no  amount  day         clean  here',
      'O1        10.00   2024-03-02  1      2',
      'committed apart',
      'stet prove --replay 4',
      'not tried',
      'CONVICTED',
    ]) {
      expect(report).toContain(part)
    }
  })
})
