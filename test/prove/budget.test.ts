import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { junitReport } from '../../src/prove/report/junit.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { runCli } from '../support/run-cli.ts'
import { PATIENCE_MS, proveIt, testFence } from './support.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-budget-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Safe: the file is there as a whole or not at all. */
const JOB = ['sh', '-c', 'echo 1 > out.tmp && mv out.tmp out.txt']

test('a budget that ends before the first fault leaves nothing to go by', {
  timeout: PATIENCE_MS,
}, async () => {
  const proof = await proveIt({ command: JOB, workFolder: folder, budgetMs: 0 })
  const report = terminalReport(proof, DEFAULT_FAIL_ON)
  expect(proof.counts.planned, report).toBeGreaterThan(0)
  expect(proof.counts.pointsTried, report).toBe(0)
  expect(proof.verdict, report).toBe('inconclusive')
  expect(report).toContain('INCONCLUSIVE  no fault was tried: --budget ended before the first one')
  expect(junitReport(proof, DEFAULT_FAIL_ON)).toContain('inconclusive: no fault was tried')
})

test('its exit status is that of no verdict', { timeout: PATIENCE_MS }, async () => {
  await using fence = await testFence()
  const network = fence.isClosed ? [] : ['--allow-network']
  const { status, stdout } = await runCli(['prove', '--budget', '1ms', ...network, '--', ...JOB], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
  })
  expect(status, stdout).toBe(3)
})

test('whoever asks for no faults gets a verdict on what was asked', { timeout: PATIENCE_MS }, async () => {
  const proof = await proveIt({ command: JOB, workFolder: folder, kinds: [], budgetMs: 0 })
  expect(proof.verdict, terminalReport(proof, DEFAULT_FAIL_ON)).toBe('survives')
})
