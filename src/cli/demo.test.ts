import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** It ends with 1 when one of its own checks does not hold. */
async function told(example: string): Promise<string> {
  const demo = fileURLToPath(new URL(`../../examples/${example}/demo.mjs`, import.meta.url))
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [demo])
  expect(stderr).toBe('')
  return stdout
}

test('the demo shows its five acts, and every number is as it says (G1, G2, G5, G6)', async () => {
  const stdout = await told('orders')
  const outcomes = [...stdout.matchAll(/^orders → .*"orders": (.*?)(?: \(unchanged.*)?$/gm)].map(
    ([, words]) => words,
  )
  expect(outcomes).toEqual([
    '200 inserted, 0 updated, 0 unchanged',
    '0 inserted, 0 updated, 200 unchanged',
    '0 inserted, 1 updated, 199 unchanged, 1 duplicate dropped',
    '0 inserted, 0 updated, 199 unchanged, 1 stale',
  ])
  expect(stdout).toContain('\n$ stet runs\n')
})

test('the demo of slices shows a late row and a backfill (G3, G4)', { timeout: 240_000 }, async () => {
  const stdout = await told('slices')
  expect([...stdout.matchAll(/"readings": (.*?)(?: \(unchanged.*)?$/gm)].map(([, words]) => words)).toEqual([
    '4 inserted, 0 updated, 0 unchanged',
    '2 inserted, 0 updated, 2 unchanged',
    '1 inserted, 0 updated, 6 unchanged',
  ])
  expect([...stdout.matchAll(/"visits": (.*)$/gm)].map(([, words]) => words)).toEqual([
    '5 slices: 4 changed, 1 failed',
    '5 slices: 2 changed, 3 unchanged',
  ])
})
