import { spawn, spawnSync } from 'node:child_process'
import { existsSync, watch } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'

// What is built, as it ships; test/support/global-setup.ts builds it when it is older than its source.
const bin = fileURLToPath(new URL('../../dist/cli/bin.js', import.meta.url))
/** Of util-linux: runs a command on a terminal of its own. */
const SCRIPT = 'script'
const hasScript = spawnSync(SCRIPT, ['--version']).status === 0
if (!hasScript) process.stdout.write('Progress on a terminal not tested: script of util-linux is missing\n')

/** A pipeline whose source writes `reading`, and then waits until somebody writes `go on` or stops it. */
const WAITING_PIPELINE = `import { existsSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { definePipeline } from 'stet'
import { rows } from 'stet/sources/rows'
import { duckdb } from 'stet/targets/duckdb'

const here = import.meta.dirname
export default definePipeline({
  name: 'slow',
  source: rows({
    columns: { id: 'text' },
    rows: async function* () {
      yield { id: 'a' }
      writeFileSync(join(here, 'reading'), '')
      await new Promise<void>((resolve) => {
        const look = () => {
          if (existsSync(join(here, 'go on'))) resolve()
        }
        watch(here, look)
        look()
      })
    },
  }),
  target: duckdb({ file: join(here, 'stet.duckdb') }),
  table: 'slow',
  write: { strategy: 'upsert', key: ['id'] },
})
`

let cwd = ''
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-process-'))
  await writeFile(join(cwd, 'slow.ts'), WAITING_PIPELINE)
  await writeFile(join(cwd, 'orders.csv'), 'id,v\n1,a\n2,b\n')
})

/** A running command line with what it has written so far. */
function start(program: string, args: readonly string[]) {
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env
  const child = spawn(program, args, { cwd, env })
  const written = { stdout: '', stderr: '' }
  let wake = () => {}
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
      wake()
    })
  }
  return {
    child,
    written,
    ended: new Promise<{ status: number | null; signal: NodeJS.Signals | null }>((resolve) => {
      child.once('close', (status, signal) => resolve({ status, signal }))
    }),
    /** Waits until something was written that makes the condition true. */
    until: (condition: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        child.once('close', () => reject(new Error(`it ended too early: ${written.stdout}${written.stderr}`)))
        wake = () => {
          if (condition()) resolve()
        }
        wake()
      }),
  }
}

function startStet(...args: readonly string[]) {
  return start(process.execPath, [bin, ...args])
}

/** Waits until the pipeline has written the file; fails with what the process said when it ends before. */
async function appears(name: string, { child, written }: ReturnType<typeof start>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const watcher = watch(cwd)
    const look = () => {
      if (!existsSync(join(cwd, name))) return
      watcher.close()
      resolve()
    }
    watcher.on('change', look)
    child.once('close', () => reject(new Error(`it ended too early: ${written.stderr}`)))
    look()
  })
}

describe('the process', () => {
  test('SIGINT ends it with 130, the table as it was and the run on record', async () => {
    const run = startStet('run', 'slow.ts')
    await appears('reading', run)
    run.child.kill('SIGINT')
    expect(await run.ended).toEqual({ status: 130, signal: null })
    expect(run.written.stderr).toContain('error: Stopped by SIGINT')
    const log = startStet('runs', '--json')
    expect(await log.ended).toMatchObject({ status: 0 })
    expect(JSON.parse(log.written.stdout)).toMatchObject({
      runs: [{ pipeline: 'slow', verdict: 'interrupted', error: { code: 'STET_INTERRUPTED' } }],
    })
  })

  test('SIGTERM does the same, under --json as a document', async () => {
    const run = startStet('run', 'slow.ts', '--json')
    await appears('reading', run)
    run.child.kill('SIGTERM')
    expect(await run.ended).toEqual({ status: 130, signal: null })
    expect(JSON.parse(run.written.stdout)).toMatchObject({ error: { code: 'STET_INTERRUPTED' } })
  })

  test('a second SIGINT kills what does not listen to the first', async () => {
    await writeFile(
      join(cwd, 'deaf.ts'),
      `import { writeFileSync } from 'node:fs'
process.once('SIGINT', () => writeFileSync('asked', ''))
setInterval(() => {}, 1_000_000)
writeFileSync('reading', '')
await new Promise(() => {})
`,
    )
    const run = startStet('run', 'deaf.ts')
    await appears('reading', run)
    run.child.kill('SIGINT')
    await appears('asked', run)
    run.child.kill('SIGINT')
    expect(await run.ended).toEqual({ status: null, signal: 'SIGINT' })
  })

  test('a reader that goes away early is no error, and the work goes on', async () => {
    await writeFile(
      join(cwd, 'two.ts'),
      `import { definePipeline } from 'stet'
import { rows } from 'stet/sources/rows'
import { duckdb } from 'stet/targets/duckdb'
const make = (name: string) => definePipeline({
  name,
  source: rows({ columns: { id: 'text' }, rows: () => [{ id: 'a' }] }),
  target: duckdb({ file: 'stet.duckdb' }),
  table: name,
  write: { strategy: 'upsert', key: ['id'] },
})
export default [make('first'), make('second')]
`,
    )
    // `true` has ended long before the first byte is written.
    const piped = start('bash', ['-c', `set -o pipefail; "${process.execPath}" "${bin}" run two.ts | true`])
    expect(await piped.ended).toMatchObject({ status: 0 })
    expect(piped.written).toEqual({ stdout: '', stderr: '' })
    const log = startStet('runs', '--json')
    expect(await log.ended).toMatchObject({ status: 0 })
    expect(JSON.parse(log.written.stdout)).toMatchObject({
      runs: [
        { pipeline: 'second', verdict: 'changed' },
        { pipeline: 'first', verdict: 'changed' },
      ],
    })
  })

  test('a pipeline file that leaves something open does not keep a finished process alive', async () => {
    const run = startStet('run', 'slow.ts')
    await appears('reading', run)
    await writeFile(join(cwd, 'go on'), '')
    expect(await run.ended).toEqual({ status: 0, signal: null })
    expect(run.written.stdout).toContain('1 inserted')
    expect(run.written.stderr).toBe('')
  })

  test('standard input is loaded', async () => {
    const load = startStet('load', '-', '--key', 'id', '--table', 'orders', '--json')
    load.child.stdin.end(await readFile(join(cwd, 'orders.csv')))
    expect(await load.ended).toMatchObject({ status: 0 })
    expect(JSON.parse(load.written.stdout)).toMatchObject({ counts: { inserted: 2 }, files: [{ path: '-' }] })
  })

  test.skipIf(!hasScript)(
    'on a terminal a progress line appears, and is gone at the end (needs script of util-linux)',
    async () => {
      const run = start(SCRIPT, ['-qec', `"${process.execPath}" "${bin}" run slow.ts`, '/dev/null'])
      await run.until(() => /working|reading the source/.test(run.written.stdout))
      await writeFile(join(cwd, 'go on'), '')
      expect(await run.ended).toMatchObject({ status: 0 })
      const clear = '\r\u001b[K'
      const lines = run.written.stdout.split(clear)
      expect(lines.length).toBeGreaterThan(2)
      // What stands after the line was taken away for good is the account, in colours.
      expect(lines.at(-1)).toMatch(/^read 1 row from/)
      expect(lines.at(-1)).toContain('\u001b[32m1 inserted')
    },
  )
})
