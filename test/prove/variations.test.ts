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
  /** What convicts beside that. */
  readonly also?: Class
  /** A part of the sentence that says the cause. */
  readonly why?: string
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
  {
    name: 'retry-in-node',
    verdict: 'convicted',
    found: 'doubled',
    also: 'claims success',
    why: 'the answer to COMMIT was lost',
  },
  {
    name: 'keys-from-a-sequence',
    verdict: 'convicted',
    twice: 'different',
    found: 'different',
    why: 'under new keys',
  },
  {
    name: 'insert-under-a-key',
    verdict: 'convicted',
    twice: 'stuck',
    found: 'stuck',
    why: 'what the first run has left makes every further run fail',
  },
  {
    name: 'source-emptied',
    verdict: 'convicted',
    twice: 'lost',
    found: 'lost',
    why: 'does not find again what they were made from',
  },
  {
    name: 'marker-file-first',
    verdict: 'convicted',
    found: 'lost',
    why: 'the mark that the rows are loaded',
  },
  {
    name: 'package-taken-up-again',
    verdict: 'convicted',
    found: 'stuck',
    also: 'lost',
    why: 'what the interrupted run left makes every further run fail',
  },
  { name: 'queue-skip-locked', verdict: 'survives', needs: 'psycopg' },
  {
    name: 'queue-claimed-first',
    verdict: 'convicted',
    found: 'lost',
    why: 'before the rows are safe',
    needs: 'psycopg',
  },
  {
    name: 'request-after-commit',
    verdict: 'convicted',
    found: 'lost',
    why: 'the request is sent before it sends it',
    needs: 'psycopg',
  },
  {
    name: 'request-key-from-a-serial',
    verdict: 'convicted',
    found: 'doubled',
    why: 'another Idempotency-Key',
    needs: 'psycopg',
  },
]

describe.skipIf(!hasPsql)('variations of the samples (they need psql)', { timeout: PATIENCE_MS }, () => {
  const lacking = { psycopg2: pythonLacks('psycopg2'), psycopg: pythonLacks('psycopg') }

  test.for(TABLE)(
    '$name: $verdict',
    async ({ name, verdict, twice, found, also, why = '', needs }, { skip }) => {
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
      expect(report).toContain(why)
      const convicting = proof.trials.flatMap(classesOf).filter((one) => DEFAULT_FAIL_ON.includes(one))
      expect([...new Set(convicting)], report).toEqual([
        ...(found === undefined ? [] : [found]),
        ...(also === undefined ? [] : [also]),
      ])
    },
  )
})
