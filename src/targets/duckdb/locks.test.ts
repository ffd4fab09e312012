import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  openTestSession,
  recordOf,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import { duckdb } from './index.ts'

const UPSERT = { strategy: 'upsert', key: ['id'] } as const
const CONTRACT = contractOf({ id: 'text' }, ['id'])
const DRIVER = pathToFileURL(createRequire(import.meta.url).resolve('@duckdb/node-api')).href

interface Holder extends AsyncDisposable {
  readonly process: ChildProcess
}

/** Another process that holds a file, in a transaction that it never commits, until it is killed. */
async function holderOf(file: string, mode: 'writes' | 'reads' = 'writes'): Promise<Holder> {
  const script = `
    const { DuckDBInstance } = await import(${JSON.stringify(DRIVER)})
    const instance = await DuckDBInstance.create(':memory:')
    const connection = await instance.connect()
    await connection.run("attach '${file}' as x ${mode === 'reads' ? '(read_only)' : ''}")
    ${mode === 'reads' ? '' : `await connection.run('begin'); await connection.run('create table x.uncommitted(i integer)')`}
    process.stdout.write('held')
    setInterval(() => undefined, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return {
    process: child,
    [Symbol.asyncDispose]: async () => {
      const ended = child.exitCode !== null || child.signalCode !== null ? undefined : once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Whether another process can have the file now. */
async function isFree(file: string): Promise<boolean> {
  const script = `
    const { DuckDBInstance } = await import(${JSON.stringify(DRIVER)})
    await DuckDBInstance.create(${JSON.stringify(file)})
    process.exit(0)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

test('a file that another process holds is waited for, then refused with the process id (G7)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  await using holder = await holderOf(file)
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, { lockTimeoutMs: 100 })
  await expect(opened.session.acquire(startOf())).rejects.toMatchObject({
    code: 'STET_LOCKED',
    message: expect.stringContaining(`PID ${holder.process.pid}`),
    details: { pid: holder.process.pid },
  })
  expect(opened.notices).toEqual([expect.stringContaining(`PID ${holder.process.pid}`)])
})

test('a run goes on as soon as the process that held the file is killed, also when it was stopped', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  await using holder = await holderOf(file)
  holder.process.kill('SIGSTOP')
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, {
    lockTimeoutMs: 30_000,
    notice: () => holder.process.kill('SIGKILL'),
  })
  const start = startOf()
  await opened.session.acquire(start)
  await opened.session.describe()
  await opened.session.prepare(CONTRACT)
  await opened.session.begin()
  await opened.session.commit(recordOf(start))
  expect(
    await byHand(file, `select table_name from duckdb_tables() where table_name = 'uncommitted'`),
  ).toEqual([])
})

test('nobody can have the file from acquire to the end of the run, and everybody after it', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT)
  const start = startOf()
  await opened.session.acquire(start)
  expect(await isFree(file)).toBe(false)
  await opened.session.describe()
  await opened.session.prepare(CONTRACT)
  await opened.session.begin()
  await opened.session.commit(recordOf(start))
  expect(await isFree(file)).toBe(true)
})

test('another session of this process that looks at the file does not give up its lock', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT)
  await opened.session.acquire(startOf())
  await expect(
    openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan', lockTimeoutMs: 50 }),
  ).rejects.toMatchObject({
    code: 'STET_LOCKED',
    message: expect.stringContaining(`PID ${process.pid}`),
  })
  expect(await isFree(file)).toBe(false)
})

test('runs of one process take turns, and none loses rows to another', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const ids = Array.from({ length: 8 }, (_, position) => `k${position}`)
  await Promise.all(
    ids.map((id) => writeByHand(target, 't', UPSERT, CONTRACT, [`('insert', '${id}', null, null)`])),
  )
  expect(await byHand(file, 'from t order by id')).toEqual(ids.map((id) => [id]))
  expect(await byHand(file, `select count(*) from stet.run where status = 'succeeded'`)).toEqual([['8']])
})

test('an abort ends the waiting at once, with the reason that was given', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  const reason = new Error('enough')
  {
    await using holder = await holderOf(file)
    expect(holder.process.pid).toBeDefined()
    const controller = new AbortController()
    await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, {
      signal: controller.signal,
      notice: () => controller.abort(reason),
    })
    await expect(opened.session.acquire(startOf())).rejects.toBe(reason)
  }
  await using first = await openTestSession(duckdb({ file }), 't', UPSERT)
  await first.session.acquire(startOf())
  const controller = new AbortController()
  await using second = await openTestSession(duckdb({ file }), 't', UPSERT, {
    signal: controller.signal,
    notice: () => queueMicrotask(() => controller.abort(reason)),
  })
  await expect(second.session.acquire(startOf())).rejects.toBe(reason)
})

test('plans may read beside one another in several processes', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  await using holder = await holderOf(file, 'reads')
  expect(holder.process.pid).toBeDefined()
  await using plan = await openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan', lockTimeoutMs: 50 })
  expect((await plan.session.describe())?.name).toBe('t')
})

test('the run log of a file that a run holds is refused with the process id', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  await using holder = await holderOf(file)
  await using log = await duckdb({ file }).openRunLog({ signal: new AbortController().signal })
  await expect(log.list({})).rejects.toMatchObject({
    code: 'STET_LOCKED',
    message: expect.stringContaining(`PID ${holder.process.pid}`),
  })
})
