import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { startProxy } from '../../src/prove/wire/proxy.ts'
import type { Attempt } from '../../src/testing/index.ts'
import { duckdbPlace } from '../support/duckdb-place.ts'
import { forkAttempt, type PostgresPlace, postgresPlace } from '../support/postgres-place.ts'
import { type CasePlace, caseFolder, eachTarget, table } from './harness.ts'

const cli = fileURLToPath(new URL('../../dist/cli/bin.js', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function stet(
  folder: string,
  args: readonly string[],
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(process.execPath, [cli, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => {
    output.stdout += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    output.stderr += chunk.toString()
  })
  const ended = (once(child, 'close') as Promise<[number | null]>).then(([code]) => ({ code, ...output }))
  return { child, ended }
}

function whereOf(place: CasePlace): string {
  return place.name === 'PostgreSQL'
    ? (place as unknown as PostgresPlace).url
    : (place as unknown as { file: string }).file
}

eachTarget((_, create) => {
  test('067: two starts at the same moment load each row once, ten times of ten (G7)', {
    timeout: 180_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stet-case-'))
    try {
      await cp(caseFolder('067-two-runs-of-one-job-at-the-same-time'), folder, { recursive: true })
      await promisify(execFile)(process.execPath, ['gen.mjs'], { cwd: folder })
      for (let repeat = 0; repeat < 10; repeat++) {
        await using place = await create()
        const args = ['load', 'in.csv', '--key', 'id', '--table', 't', '--into', whereOf(place), '--json']
        const ended = await Promise.all([stet(folder, args).ended, stet(folder, args).ended])
        let inserted = 0
        for (const { code, stdout, stderr } of ended) {
          const answer = JSON.parse(stdout) as {
            counts?: { inserted: number }
            error?: { code: string; message: string }
          }
          if (code === 0) inserted += answer.counts?.inserted ?? 0
          else expect(['STET_LOCKED', 'STET_LOCK_TIMEOUT'], stderr).toContain(answer.error?.code)
        }
        expect(ended.some(({ code }) => code === 0)).toBe(true)
        expect(inserted).toBe(20_000)
        expect(await place.count('t')).toBe(20_000)
        await using log = await place.target.openRunLog({ signal: new AbortController().signal })
        const entries = await log.list({})
        expect(entries.reduce((sum, entry) => sum + (entry.counts?.inserted ?? 0), 0)).toBe(20_000)
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

const OLD: Attempt = {
  table: 't',
  columns: { id: 'text', v: 'text' },
  rows: ['1', '2', '3'].map((id) => [id, 'old']),
  write: { strategy: 'upsert', key: ['id'] },
}
const NEW: Attempt = { ...OLD, rows: ['1', '2', '3'].map((id) => [id, 'new']) }

/** An attempt in a process of its own that stops, frozen, when it sends a statement that fits. */
async function frozenAt(place: PostgresPlace, word: string) {
  const { hostname, port, pathname } = new URL(place.url)
  const proxy = await startProxy({
    upstream: { host: hostname, port: Number(port) },
    database: pathname.slice(1),
  })
  const held = proxy.arm({ hold: 'before', at: ({ sql }) => sql.includes(word) })
  const child = forkAttempt({ target: 'postgres', where: proxy.url, attempt: OLD })
  const ended = once(child, 'exit') as Promise<[number | null]>
  await held.fired
  child.kill('SIGSTOP')
  return {
    child,
    ended,
    wake: () => {
      held.release()
      child.kill('SIGCONT')
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await proxy[Symbol.asyncDispose]()
    },
  }
}

async function attemptEnds(place: PostgresPlace, attempt: Attempt): Promise<number | null> {
  const [code] = (await once(forkAttempt({ target: 'postgres', where: place.url, attempt }), 'exit')) as [
    number | null,
  ]
  return code
}

test('069: an attempt that sleeps through its lease is refused when it wakes up (G7)', async () => {
  await using place = await postgresPlace(inject('postgresUrl'))
  // A first run makes the record's schema, whose own lock is another one than the table's.
  expect(await attemptEnds(place, OLD)).toBe(0)
  await using sleeper = await frozenAt(place, 'advisory_xact_lock(')
  expect(await attemptEnds(place, NEW), 'the second takes the stale lease over').toBe(0)
  sleeper.wake()
  const [code] = await sleeper.ended
  expect(code).not.toBe(0)
  expect(await table({ ...place, name: 'PostgreSQL' }, 't', ['id', 'v'])).toEqual([
    ['1', 'new'],
    ['2', 'new'],
    ['3', 'new'],
  ])
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const statuses = (await log.list({})).map(({ status }) => status)
  expect(statuses[0]).toBe('succeeded')
  expect(statuses).not.toContain('running')
})

test('069: an attempt frozen in its transaction blocks only as long as it lives; after SIGKILL the next works at once (G7)', async () => {
  await using place = await postgresPlace(inject('postgresUrl'))
  {
    await using sleeper = await frozenAt(place, 'commit')
    expect(await attemptEnds(place, NEW), 'refused while the table lock is held').not.toBe(0)
    sleeper.child.kill('SIGKILL')
    await sleeper.ended
  }
  expect(await attemptEnds(place, NEW)).toBe(0)
  expect(await table({ ...place, name: 'PostgreSQL' }, 't', ['v'])).toEqual([['new'], ['new'], ['new']])
})

test('069: a DuckDB file that a frozen process holds is waited for and refused by name; after SIGKILL it is free at once (G7)', async () => {
  await using place = await duckdbPlace()
  const holder = spawn(process.execPath, ['--input-type=module', '-e', HOLD_FILE], {
    env: { ...process.env, STET_TEST_FILE: place.file },
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  holder.kill('SIGSTOP')
  const folder = caseFolder('069-paused-attempt-wakes-up-later')
  const args = ['load', 'new.csv', '--key', 'id', '--table', 't', '--into', place.file, '--json']
  const refused = await stet(folder, [...args, '--lock-timeout', '1s']).ended
  expect(refused.code).toBe(3)
  expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'STET_LOCKED' } })
  expect(refused.stdout).toContain(String(holder.pid))
  const ended = once(holder, 'exit')
  holder.kill('SIGKILL')
  await ended
  expect((await stet(folder, args).ended).code).toBe(0)
  expect(await place.count('t')).toBe(3)
})

const HOLD_FILE = `
  import { DuckDBInstance } from '@duckdb/node-api'
  const instance = await DuckDBInstance.create(process.env.STET_TEST_FILE)
  const connection = await instance.connect()
  process.stdout.write('held')
  setInterval(() => connection, 1e6)
`
