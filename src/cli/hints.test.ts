import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Ran, runCli } from '../../test/support/run-cli.ts'
import { StetError } from '../errors.ts'
import { failureOf, renderFailure } from './failure.ts'
import { colorsFor } from './text.ts'

let cwd = ''
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-hints-'))
  await writeFile(join(cwd, 'orders.csv'), 'id,day,updated_at\n1,2026-05-01,x\n')
  await writeFile(join(cwd, 'marked.csv'), '\u{feff}id\n1\n')
})

function load(file: string, ...argv: readonly string[]): Promise<Ran> {
  return runCli(['load', file, '--into', join(cwd, 'stet.duckdb'), ...argv], { cwd })
}

describe('a hint of stet load names the flag first, and the option of a pipeline beside it', () => {
  const KEY = ['--key', 'id']
  test.each([
    ['marked.csv', [...KEY, '--encoding', 'windows-1252'], '--encoding utf-8 (encoding in a pipeline)'],
    [
      'orders.csv',
      [...KEY, '--on-reject', 'quarantine'],
      '--max-rejects 100 (maxRejects: 100 in a pipeline)',
    ],
    [
      'orders.csv',
      [
        '--strategy',
        'replace-partition',
        '--partition-by',
        'day',
        '--slice',
        '2026-05-01',
        '--newest',
        'day',
      ],
      "--key order_ref (key: ['order_ref'] in a pipeline)",
    ],
    [
      'orders.csv',
      [...KEY, '--cursor', 'day', '--truth', 'snapshot'],
      "--strategy insert-once (strategy: 'insert-once' in a pipeline)",
    ],
    [
      'orders.csv',
      [...KEY, '--cursor', 'day', '--strategy', 'replace-table'],
      "--strategy upsert (strategy: 'upsert' in a pipeline)",
    ],
    ['orders.csv', [...KEY, '--cursor', 'day', '--missing', 'mark'], 'Leave --missing out'],
    ['orders.csv', [...KEY, '--cursor', 'updated_at'], "--columns 'updated_at:timestamptz,…' (columns: {"],
    [
      'orders.csv',
      [...KEY, '--keep-updated-at', 'updated_at'],
      '--keep-updated-at (keep.updatedAt in a pipeline)',
    ],
  ])('%s %j: %s', async (file, argv, hint) => {
    const { status, stderr } = await load(file, ...argv)
    expect(status).toBeGreaterThan(0)
    expect(stderr.slice(stderr.indexOf('hint:'))).toContain(hint)
  })

  test('{slice} in a path leads in no circle: each of two hints names another way than the last command', async () => {
    const without = await load('orders-{slice}.csv', ...KEY)
    expect(without.stderr).toContain('else name the files without {slice}')
    const withSlice = await load('orders-{slice}.csv', ...KEY, '--slice', '2026-05-01')
    expect(withSlice.stderr).toContain(
      "Leave --slice out, and {slice} out of the files' names; or cut it: --strategy replace-partition",
    )
  })
})

describe('a failure in words', () => {
  const plain = colorsFor(false)

  test('names its pipeline once', () => {
    const named = failureOf(new StetError('STET_CONFIG', 'Pipeline "duck": the key names id twice'))
    expect(renderFailure(named, plain, 'duck')).toContain('error: duck: the key names id twice\n')
    expect(renderFailure(named, plain, 'duck 2026-05-01')).toContain('error: duck 2026-05-01: the key names')
    expect(renderFailure(named, plain, 'duc')).toContain('error: duc: Pipeline "duck": the key')
    const verb = failureOf(new StetError('STET_USAGE', 'Pipeline "duck" is protected'))
    expect(renderFailure(verb, plain, 'duck')).toContain('error: duck: is protected\n')
    expect(renderFailure(verb, plain)).toContain('error: Pipeline "duck" is protected\n')
  })

  test('keeps the code of another command, within its hint, apart from its own', () => {
    const quoted = failureOf(
      new StetError('STET_CONFIG', 'It failed', { hint: 'It said:\nerror: x\ncode:  A' }),
    )
    expect(renderFailure(quoted, plain).split('\n')).toEqual([
      'error: It failed',
      'hint:  It said:',
      '       error: x',
      '       code:  A',
      'code:  STET_CONFIG (exit status 2)',
    ])
  })
})

test('help of a load takes one slice, and a second one is refused with the way', async () => {
  const help = async (command: string) =>
    (await runCli([command, '--help'], { cwd })).stdout.replaceAll(/\s+/g, ' ')
  expect(await help('load')).toContain('--slice <name> the slice to load, such as 2026-08-07 --at')
  expect(await help('run')).toContain('the slice to load, such as 2026-08-07; may be repeated')
  const slices = ['--slice', '2026-05-01', '--slice', '2026-05-02']
  const two = await load('orders.csv', '--strategy', 'replace-partition', '--partition-by', 'day', ...slices)
  expect(two).toMatchObject({ status: 2, stdout: '' })
  expect(two.stderr).toContain('Give one --slice')
})

test('--only is of slices and tables, --pipeline of pipelines, in the help of every command', async () => {
  for (const command of ['run', 'plan', 'backfill', 'slices', 'rerun', 'thaw']) {
    const { stdout } = await runCli([command, '--help'], { cwd })
    expect(stdout).toMatch(/^ +--pipeline <name> /m)
    expect(stdout.includes('--only ')).toBe(command === 'backfill')
  }
})
