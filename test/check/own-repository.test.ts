import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runCli } from '../support/run-cli.ts'

test('nothing in this repository and its examples fails the check, by its own configuration', async () => {
  const { status, stdout } = await runCli(['check'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  })
  expect(stdout).toContain('0 of them fail this run')
  expect(status).toBe(0)
}, 60_000)
