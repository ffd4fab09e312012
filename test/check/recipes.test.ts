import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..', '..')

test('the recipes of docs/check.md are YAML, and hold the steps and hooks they promise', () => {
  const blocks = [
    ...readFileSync(join(root, 'docs/check.md'), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g),
  ].map((match): unknown => parse(match[1] ?? ''))
  expect(blocks).toHaveLength(2)
  expect(JSON.stringify(blocks[0])).toContain(
    'npx stet check --diff origin/${{ github.base_ref }} --format github',
  )
  expect(JSON.stringify(blocks[1])).toContain('"entry":"npx stet check"')
})

test('the hook file names a command that exists', () => {
  const hooks: unknown = parse(readFileSync(join(root, '.pre-commit-hooks.yaml'), 'utf8'))
  expect(hooks).toMatchObject([{ id: 'stet-check', entry: 'stet check', language: 'node' }])
})
