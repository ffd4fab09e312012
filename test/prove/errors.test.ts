import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Proof } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-errors-'))
  await mkdir(join(folder, 'work'))
  return () => rm(folder, { recursive: true, force: true })
})

async function shell(script: string): Promise<Proof> {
  const file = join(folder, 'seed.sql')
  await writeFile(file, 'create table a (n int primary key); create table b (n int primary key);')
  const command = ['sh', '-c', script]
  return proveIt({
    command,
    workFolder: join(folder, 'work'),
    filling: { kind: 'seed', file },
    kinds: ['error'],
  })
}

/** Loads two tables over a connection each, and is happy when the first error shows the pattern. */
const LOAD = (forgiven: string) => `
for t in a b; do
  psql -v VERBOSITY=verbose -v ON_ERROR_STOP=1 -qc "insert into $t values (1) on conflict do nothing" 2> said && continue
  grep -q '${forgiven}' said && exit 0
  exit 1
done; rm -f said`

describe.skipIf(!hasPsql)('errors that the server gives (they need psql)', { timeout: PATIENCE_MS }, () => {
  test.each([
    ['deadlocks', '40P01', '40P01'],
    ['shutdowns', '57P01', 'terminating connection'],
    ['refused connections', '53300', 'connection refused (injected'],
  ])('a job that forgives %s is convicted by %s alone', async (_, code, text) => {
    const proof = await shell(LOAD(text))
    const report = terminalReport(proof, DEFAULT_FAIL_ON)
    expect(proof.verdict, report).toBe('convicted')
    expect(proof.counts.notReached, report).toBe(0)
    const convicting = proof.trials.filter((trial) => trial.claimsSuccess)
    expect(new Set(convicting.map(({ planned }) => planned?.fault.code)), report).toEqual(new Set([code]))
    expect(convicting.length, report).toBe(2)
    expect(report).toContain('why: the database refused')
  })

  test('a job that stops at any of them survives', async () => {
    const proof = await shell(LOAD('never said'))
    expect(proof.verdict, terminalReport(proof, DEFAULT_FAIL_ON)).toBe('survives')
  })
})
