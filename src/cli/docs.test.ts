import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../scripts/make-cli-docs.mjs', import.meta.url))

test('docs/cli.md and docs/exit-codes.md are what the commands and codes say', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--check'])
  expect(stdout).toBe('')
})
