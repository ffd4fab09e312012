import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Proof } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { runCli } from '../support/run-cli.ts'
import { hasPsql, PATIENCE_MS, proveIt, pythonLacks, testFence } from './support.ts'

const example = fileURLToPath(new URL('../../examples/doubled-revenue', import.meta.url))

async function proveExample(command: readonly string[]): Promise<Proof> {
  const seed = `${example}/seed.sql`
  return proveIt({ command, workFolder: example, filling: { kind: 'seed', file: seed } })
}

const languages = [
  {
    language: 'sql',
    lacks: !hasPsql,
    job: ['sh', 'sql/job.sh'],
    cures: ['upsert', 'delete-insert', 'insert-once'],
  },
  {
    language: 'python',
    lacks: !hasPsql || pythonLacks('psycopg'),
    job: ['python', 'python/job.py'],
    cures: ['upsert', 'delete_insert', 'insert_once'],
  },
]

describe.each(languages)(
  'the doubled revenue in $language',
  { timeout: PATIENCE_MS },
  ({ language, lacks, job, cures }) => {
    test.skipIf(lacks)(
      'the job is convicted, and only because it may die between its two commits',
      async () => {
        const proof = await proveExample(job)
        const report = terminalReport(proof, DEFAULT_FAIL_ON)
        expect(proof.verdict, report).toBe('convicted')
        expect(report).toContain('twice            equal')
        expect(report).toContain('DOUBLED  4 rows in revenue')
        expect(report).toContain('A-1004    2026-03-01  310.00  1      2')
      },
    )

    for (const cure of cures) {
      const file = language === 'sql' ? ['sh', `sql/${cure}.sh`] : ['python', `python/${cure}.py`]
      test.skipIf(lacks)(`${cure} survives`, async () => {
        const proof = await proveExample(file)
        const report = terminalReport(proof, DEFAULT_FAIL_ON)
        expect(proof.verdict, report).toBe('survives')
        expect(
          proof.trials.flatMap((trial) => trial.differences),
          report,
        ).toEqual([])
      })
    }
  },
)

test.skipIf(!hasPsql)(
  'the cure by a pipeline of Stet survives, and two runs at the same time too',
  { timeout: PATIENCE_MS },
  async () => {
    await using fence = await testFence()
    const network = fence.isClosed ? [] : ['--allow-network']
    const faults = ['--try', 'crash', '--try', 'ambiguous', '--try', 'overlap']
    const { status, stdout, document } = await runCli(
      ['prove', '--json', '--seed', 'seed.sql', ...network, ...faults, 'stet/pipeline.ts'],
      { cwd: example, env: { PATH: process.env.PATH ?? '' } },
    )
    expect(status, stdout).toBe(0)
    expect(document()).toMatchObject({
      verdict: 'survives',
      command: ['stet', 'run', 'stet/pipeline.ts'],
      findings: [],
    })
    expect(JSON.stringify(document().clean)).toContain('revenue_by_order')
  },
)
