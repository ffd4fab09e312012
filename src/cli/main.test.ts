import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../../test/support/run-cli.ts'
import { violations } from '../../test/support/schemas.ts'
import { StetError } from '../errors.ts'
import { VERSION } from '../version.ts'
import { COMMANDS } from './commands.ts'
import { failureOf, worstStatus } from './failure.ts'

let cwd = ''
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-cli-'))
})

describe('the command line', () => {
  test('without a command shows the help and ends with 2', async () => {
    const { status, stdout, stderr } = await runCli([], { cwd })
    expect(status).toBe(2)
    expect(stdout).toBe('')
    for (const { name, summary } of COMMANDS) expect(stderr).toMatch(new RegExp(`${name} .*${summary}`))
  })

  test('shows help and version on stdout and ends with 0', async () => {
    expect(await runCli(['--version'], { cwd })).toMatchObject({ status: 0, stdout: `${VERSION}\n` })
    for (const argv of [
      ['--help'],
      ['help'],
      ['load', '--help'],
      ['help', 'load'],
      ['runs', 'show', '--help'],
    ]) {
      const { status, stdout, stderr } = await runCli(argv, { cwd })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout).toContain('Usage: stet')
    }
    expect((await runCli(['help', 'load'], { cwd })).stdout).toContain('--newest')
  })

  test('every command says in the list what it says in its own help', async () => {
    for (const { name, summary, load } of COMMANDS) {
      const command = (await load())(() => async () => {})
      expect([command.name(), command.summary()]).toEqual([name, summary])
    }
  })

  test('a wrong word is told with a suggestion, on stderr, and ends with 2', async () => {
    expect(await runCli(['laod', 'x.csv'], { cwd })).toMatchObject({
      status: 2,
      stdout: '',
      stderr: "error: unknown command 'laod'\nhint:  Did you mean load?\ncode:  STET_USAGE (exit status 2)\n",
    })
    const { status, stderr } = await runCli(['load', 'x.csv', '--kye', 'a'], { cwd })
    expect(status).toBe(2)
    expect(stderr).toContain("error: unknown option '--kye'\nhint:  Did you mean --key?")
  })

  test('a wrong command line is one JSON document under --json', async () => {
    const ran = await runCli(['load', '--json', '--lock-timeout', '30', 'x.csv'], { cwd })
    expect(ran.status).toBe(2)
    expect(ran.document()).toMatchObject({ format: 'stet-error-1', error: { code: 'STET_USAGE' } })
  })

  test('colours only what may be coloured', async () => {
    const { stderr } = await runCli(['load'], { cwd, env: { FORCE_COLOR: '1' } })
    expect(stderr).toContain('\u001b[31m')
    const plain = await runCli(['load'], { cwd, env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
    expect(plain.stderr).not.toContain('\u001b')
  })
})

describe('a load that cannot be meant', () => {
  test.each([
    [['load', 'orders.csv'], 'needs a key; without one a rerun would append every row again'],
    [['load', 'orders.csv', '--key', 'a', '--into', 'orders.csv'], 'Cannot load into "orders.csv"'],
    [['load', 'orders.csv', '--key', 'a', '--into', 'mysql://u:secret@h/d'], '"mysql://u:***@h/d"'],
    [['load', 'orders.csv', 'refunds.csv', '--key', 'a'], 'Cannot name one table'],
    [['load', '-', '--key', 'a'], 'Cannot name a table after standard input'],
    [['load', 'orders', '--key', 'a'], 'Cannot tell the format of "orders"'],
    [['load', 'o.parquet', '--key', 'a', '--delimiter', ';'], '--delimiter has no meaning for parquet'],
    [['load', 'o.csv', '--key', 'a', '--allow-empty'], '--allow-empty has no meaning with --strategy upsert'],
    [['load', 'o-2024-05.csv', '--strategy', 'replace-table'], 'Refused to replace the table "o"'],
    [['load', 'o.csv', '--key', 'a', '--strategy', 'append'], 'Allowed choices are upsert, insert-once'],
    [['load', 'o.csv', '--key', 'a', '--max-rejects', '1e3'], 'a whole number, 0 or more'],
    [['plan', 'pipeline.ts', 'orders.csv'], 'Cannot plan pipeline files and data files'],
    [
      ['plan', 'pipeline.ts', '--key', 'a', '--strategy', 'upsert'],
      '--key, --strategy has no meaning for pipeline',
    ],
    [['plan', 'orders.csv', '--only', 'a'], '--only has no meaning for data files'],
    [['load', 'o.csv', '--key', 'a', '--out', 'plan.json'], '--out has no meaning without --plan'],
    [['run', 'missing.ts'], 'There is no pipeline file "missing.ts"'],
  ])('%j: %s', async (argv, message) => {
    const { status, stdout, stderr } = await runCli(argv, { cwd })
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('secret')
    expect(await readdir(cwd)).toEqual([])
  })
})

describe('failures', () => {
  test('an unknown error is a defect, and shows its stack only when asked', async () => {
    const thrown = new Error('postgres://u:secret@h/d is gone')
    expect(failureOf(thrown)).toMatchObject({
      code: 'STET_INTERNAL',
      message: 'postgres://u:***@h/d is gone',
    })
    await writeFile(join(cwd, 'broken.ts'), 'throw new Error("out of order")')
    const quiet = await runCli(['run', 'broken.ts'], { cwd })
    expect(quiet.stderr).toContain('out of order')
    expect(quiet.stderr).not.toContain('    at ')
    for (const loud of [
      await runCli(['run', 'broken.ts', '--debug'], { cwd }),
      await runCli(['run', 'broken.ts'], { cwd, env: { STET_DEBUG: '1' } }),
    ]) {
      expect(loud.stderr).toMatch(/caused by: Error: out of order\n {4}at .*broken\.ts/)
    }
  })

  test('an error of another copy of Stet keeps its code', () => {
    const foreign = Object.assign(new Error('tie'), { name: 'StetError', code: 'STET_TIE', hint: 'look' })
    expect(failureOf(foreign)).toEqual({ code: 'STET_TIE', message: 'tie', hint: 'look', details: null })
    const stranger = Object.assign(new Error('x'), { name: 'StetError', code: 'toString' })
    expect(failureOf(stranger).code).toBe('STET_INTERNAL')
    expect(failureOf(new StetError('STET_TIE', 'x')).code).toBe('STET_TIE')
  })

  test('of several statuses the gravest counts', () => {
    expect(worstStatus([])).toBe(0)
    expect(worstStatus([0, 4, 75])).toBe(4)
    expect(worstStatus([1, 130, 2])).toBe(130)
    expect(worstStatus([75, 76])).toBe(76)
  })
})

describe('stet init', () => {
  test('writes the starter, and refuses to overwrite any of it', async () => {
    const first = await runCli(['init', 'my pipeline'], { cwd })
    expect(first).toMatchObject({ status: 0, stderr: '' })
    expect(first.stdout).toContain("stet run 'my pipeline/pipeline.ts'")
    expect((await readdir(join(cwd, 'my pipeline'))).sort()).toEqual(['orders.csv', 'pipeline.ts'])

    const document = (await runCli(['init', 'another', '--json'], { cwd })).document()
    expect(violations('init.json', document)).toEqual([])

    await writeFile(join(cwd, 'orders.csv'), 'mine')
    const second = await runCli(['init', '--json'], { cwd })
    expect(second.status).toBe(2)
    expect(second.document()).toMatchObject({ error: { message: 'Refused to overwrite "orders.csv"' } })
    expect(await readFile(join(cwd, 'orders.csv'), 'utf8')).toBe('mine')
    expect(await readdir(cwd)).not.toContain('pipeline.ts')
  })
})
