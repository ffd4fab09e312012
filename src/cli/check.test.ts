import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { runCli } from '../../test/support/run-cli.ts'
import { violations } from '../../test/support/schemas.ts'

let cwd = ''
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-check-cli-'))
  await writeFile(join(cwd, 'load.sql'), 'insert into orders_daily select * from stage_orders;\n')
})

test('check shows a finding and ends with 1, with 0 when there is none', async () => {
  const { status, stdout } = await runCli(['check'], { cwd })
  expect(status).toBe(1)
  expect(stdout).toContain('load.sql:1:1 error insert-no-key')
  await writeFile(join(cwd, 'load.sql'), 'select 1;\n')
  expect((await runCli(['check'], { cwd })).status).toBe(0)
})

test('check --json and explain --json are as their schemas say', async () => {
  const check = await runCli(['check', '--json'], { cwd })
  expect(violations('check.json', JSON.parse(check.stdout))).toEqual([])
  const explain = await runCli(['explain', '--json'], { cwd })
  expect(violations('explain.json', JSON.parse(explain.stdout))).toEqual([])
})

test.each([
  ['sarif', '"version": "2.1.0"'],
  ['github', '::error file=load.sql'],
  ['junit', '<testsuites name="stet check"'],
  ['json', '"format": "stet-check-1"'],
])('--format %s', async (format, text) => {
  const { status, stdout } = await runCli(['check', '--format', format], { cwd })
  expect(status).toBe(1)
  expect(stdout).toContain(text)
})

test('a path or a rule that does not exist ends with 2', async () => {
  expect((await runCli(['check', 'nowhere'], { cwd })).status).toBe(2)
  expect((await runCli(['explain', 'nothing-like-it'], { cwd })).status).toBe(2)
})

test('explain prints the page of a rule, and all rules without one', async () => {
  expect((await runCli(['explain', 'insert-no-key'], { cwd })).stdout).toContain('# insert-no-key')
  expect((await runCli(['explain'], { cwd })).stdout).toContain('delete-insert-no-tx')
})

test('stet.config.ts is followed, a broken one is refused', async () => {
  await writeFile(
    join(cwd, 'stet.config.ts'),
    "export default { check: { rules: { 'insert-no-key': 'off' as const } } }\n",
  )
  expect((await runCli(['check'], { cwd })).status).toBe(0)
  await writeFile(join(cwd, 'broken.config.ts'), 'export default {{\n')
  expect((await runCli(['check', '--config', 'broken.config.ts'], { cwd })).status).toBe(2)
  expect((await runCli(['check', '--config', 'missing.config.ts'], { cwd })).status).toBe(2)
})

test('--fix writes the edit and names what is left', async () => {
  await writeFile(join(cwd, 'load.sql'), 'copy into t from @s force = true;\n')
  const { status } = await runCli(['check', '--fix'], { cwd })
  expect(status).toBe(0)
  expect(await readFile(join(cwd, 'load.sql'), 'utf8')).toBe('copy into t from @s;\n')
})

test('--rule takes one list and leaves the paths behind it alone', async () => {
  const { status, stdout } = await runCli(['check', '--rule', 'insert-no-key,copy-force', '.'], { cwd })
  expect({ status, found: stdout.includes('insert-no-key') }).toEqual({ status: 1, found: true })
  const twice = await runCli(['check', '--rule', 'copy-force', '--rule', 'insert-no-key', '.'], { cwd })
  expect(twice.status).toBe(1)
  expect((await runCli(['check', '--rule', 'copy-force', '.'], { cwd })).status).toBe(0)
})

test('a rule that does not exist is answered with those that were meant', async () => {
  const { status, stderr } = await runCli(['check', '--rule', 'insert-no-keys'], { cwd })
  expect(status).toBe(2)
  expect(stderr).toContain('Did you mean: insert-no-key')
})

test('one of a thing is not called several', async () => {
  const { stdout } = await runCli(['check'], { cwd })
  expect(stdout).toMatch(/1 file: 1 error, 0 warnings, 0 windows, 0 hints/)
  expect(stdout).toContain('1 of them fails this run')
})

test('what goes wrong inside ends with 2, because 1 means findings', async () => {
  const { status, stderr } = await runCli(['check', '--baseline', '.'], { cwd })
  expect(status).toBe(2)
  expect(stderr).toContain('exit status 2')
})

test('--update-baseline and --prune-baseline say what they wrote', async () => {
  const updated = await runCli(['check', '--update-baseline'], { cwd })
  expect(updated.stderr).toContain('note: stet-baseline.json holds 1 finding now')
  await writeFile(join(cwd, 'load.sql'), 'select 1;\n')
  const pruned = await runCli(['check', '--prune-baseline'], { cwd })
  expect(pruned.stderr).toContain('note: stet-baseline.json holds 0 findings now')
  expect((await runCli(['check'], { cwd })).stderr).not.toContain('holds')
})
