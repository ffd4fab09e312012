import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { classesOf, type Verdict } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { type Class, DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { hasPsql, PATIENCE_MS, proveIt, pythonLacks } from './support.ts'

const variations = fileURLToPath(new URL('variations', import.meta.url))

interface Variation {
  readonly name: string
  readonly verdict: Verdict
  /** What a plain second run shows. */
  readonly twice?: Class
  /** What convicts. */
  readonly found?: Class
  readonly needs?: 'psycopg2' | 'psycopg'
}

/** The mistakes of the samples in other languages, drivers and shapes of statements, and what cures them. */
const TABLE: readonly Variation[] = [
  { name: 'copy-in-one-transaction', verdict: 'survives' },
  { name: 'mark-first-under-autocommit', verdict: 'convicted', found: 'lost', needs: 'psycopg2' },
  { name: 'merge', verdict: 'survives' },
  { name: 'merge-that-adds', verdict: 'convicted', found: 'doubled', needs: 'psycopg' },
  { name: 'batches-under-an-advisory-lock', verdict: 'survives', needs: 'psycopg2' },
  { name: 'outbox-without-key', verdict: 'convicted', found: 'doubled', needs: 'psycopg' },
  { name: 'outbox-with-key', verdict: 'survives', needs: 'psycopg' },
  { name: 'lines-replaced-at-once', verdict: 'survives', needs: 'psycopg2' },
  { name: 'append-with-an-offset-file', verdict: 'convicted', found: 'doubled', needs: 'psycopg2' },
  { name: 'batch-from-a-sequence', verdict: 'convicted', twice: 'different', found: 'different' },
  { name: 'trigger-behind-a-guarded-upsert', verdict: 'survives' },
  { name: 'trigger-behind-an-upsert', verdict: 'convicted', twice: 'doubled', found: 'doubled' },
  { name: 'two-schemas-prepared', verdict: 'survives' },
  { name: 'two-schemas-apart', verdict: 'convicted', found: 'doubled' },
  { name: 'retry-that-looks-first', verdict: 'survives', needs: 'psycopg2' },
]

describe.skipIf(!hasPsql)('variations of the samples (they need psql)', { timeout: PATIENCE_MS }, () => {
  const lacking = { psycopg2: pythonLacks('psycopg2'), psycopg: pythonLacks('psycopg') }

  test.for(TABLE)('$name: $verdict', async ({ name, verdict, twice, found, needs }, { skip }) => {
    skip(needs !== undefined && lacking[needs], `python has no ${needs}`)
    const proof = await proveIt({
      command: ['bash', 'run'],
      workFolder: `${variations}/${name}`,
      filling: { kind: 'seed', file: `${variations}/seed.sql` },
      passed: [`SAMPLES_REQUIRE_FROM=${fileURLToPath(import.meta.url)}`, 'HTTP_ENDPOINT={http}'],
    })
    const report = terminalReport(proof, DEFAULT_FAIL_ON)
    expect(proof.verdict, report).toBe(verdict)
    expect(proof.counts.notReached, report).toBe(0)
    expect(
      proof.trials[0]?.differences.map((one) => one.class),
      report,
    ).toEqual(twice === undefined ? [] : [twice])
    const convicting = proof.trials.flatMap(classesOf).filter((one) => DEFAULT_FAIL_ON.includes(one))
    expect([...new Set(convicting)], report).toEqual(found === undefined ? [] : [found])
  })
})
