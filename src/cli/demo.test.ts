import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const demo = fileURLToPath(new URL('../../examples/orders/demo.mjs', import.meta.url))

test('the demo shows its five acts, and every number is as it says (G1, G2, G5, G6)', async () => {
  // It ends with 1 when one of its own checks does not hold.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [demo])
  expect(stderr).toBe('')
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
