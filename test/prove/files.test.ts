import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whyNoTrace } from '../../src/prove/files/trace.ts'
import type { Proof, ProveOptions } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { openGround } from '../../src/prove/sandbox/fence.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { PATIENCE_MS, proveIt } from './support.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-files-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function proveScript(script: string, options: Partial<ProveOptions> = {}): Promise<Proof> {
  const work = await mkdtemp(join(folder, 'work-'))
  await writeFile(join(work, 'job.sh'), script)
  return proveIt({ command: ['sh', 'job.sh'], workFolder: work, ...options })
}

const report = (proof: Proof) => terminalReport(proof, DEFAULT_FAIL_ON)
const classesAt = (proof: Proof) =>
  proof.trials.map(({ planned, differences }) => [
    planned?.fault.point.what.join() ?? 'twice',
    differences.map((one) => one.class).join(),
  ])

/** Marks the day as done, and only then writes its file. */
const MARK_FIRST = '[ -f done ] && exit 0; : > done; echo 1 >> out.txt; echo 2 >> out.txt'

describe('files as targets', { timeout: PATIENCE_MS }, async () => {
  const missing = await whyNoTrace(openGround(), process.env['PATH'] ?? '')

  test('a mark written before the file loses it, whatever call the crash comes after', async ({ skip }) => {
    skip(missing !== null, missing ?? '')
    const proof = await proveScript(MARK_FIRST)
    expect(proof.verdict, report(proof)).toBe('convicted')
    expect(classesAt(proof), report(proof)).toEqual([
      ['twice', ''],
      ['open done, which empties it', 'lost'],
      ['open out.txt', 'different'],
      ['write to out.txt', 'different'],
      ['open out.txt', 'different'],
      ['write to out.txt', ''],
    ])
    expect(proof.counts.notReached).toBe(0)
    expect(report(proof)).toContain('the first load, killed after file change 1 of 5')
  })

  test('a file left half written is taken for a whole one', async ({ skip }) => {
    skip(missing !== null, missing ?? '')
    const whole = 'for n in 1 2 3; do echo $n; done'
    const proof = await proveScript(`[ -f out.txt ] || { ${whole}; } > out.txt`)
    expect(proof.verdict, report(proof)).toBe('convicted')
    expect(proof.trials[0]?.differences).toEqual([])
    const renamed = await proveScript(`[ -f out.txt ] || { { ${whole}; } > new.txt; mv new.txt out.txt; }`)
    expect(renamed.verdict, report(renamed)).toBe('survives')
  })

  test('temporary files with random names are met again, and what stays of them is said', async ({
    skip,
  }) => {
    skip(missing !== null, missing ?? '')
    const proof = await proveScript('t=$(mktemp ./XXXXXXXX.part); echo 1 > $t; mv $t out.txt')
    expect(proof.verdict, report(proof)).toBe('survives')
    expect(proof.counts.notReached).toBe(0)
    expect(report(proof)).toMatch(/left behind {6}\w{8}\.part/)
  })

  test('without strace there are moments of time, and the report says so', async () => {
    // A third of its time lies between mark and file: some moment falls into it.
    const slow = MARK_FIRST.replace(': > done;', 'sleep 0.6; : > done; sleep 0.6;').concat('; sleep 0.6')
    const proof = await proveScript(slow, { traceFiles: false })
    expect(proof.verdict, report(proof)).toBe('convicted')
    expect(report(proof)).toContain('killed after moment')
    expect(report(proof)).toContain('crashes between chosen file calls')
  })
})
