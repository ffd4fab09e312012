import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { type ProveCommandOptions, type ProveCommandResult, proveCommand } from '../../src/prove/command.ts'
import type { Proof, ProveOptions } from '../../src/prove/prove.ts'
import { environmentOf } from '../../src/prove/sandbox/environment.ts'
import { openFence } from '../../src/prove/sandbox/fence.ts'
import { startPostgres } from '../../src/prove/sandbox/postgres-server.ts'
import { connect, freshDatabase } from '../support/databases.ts'
import { embeddedBinaries, systemBinaries } from '../support/postgres-binaries.ts'
import { hasPsql, PATIENCE_MS, proveIt } from './support.ts'

let folder: string
let isFenced: boolean

beforeAll(async () => {
  const fence = await openFence()
  isFenced = !('refused' in fence)
  if (!('refused' in fence)) await fence[Symbol.asyncDispose]()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-safety-'))
  await mkdir(join(folder, 'work'))
  return () => rm(folder, { recursive: true, force: true })
})

/** Two commits by a shell script, so that a fault has a place to strike. */
const LOAD = 'psql -qc "delete from t" && psql -qc "insert into t select 1"'

async function shell(script: string, options: Partial<ProveOptions> = {}): Promise<Proof> {
  const file = join(folder, 'seed.sql')
  await writeFile(file, 'create table t (a int);')
  return proveIt({
    command: ['sh', '-c', script],
    workFolder: join(folder, 'work'),
    filling: { kind: 'seed', file },
    kinds: ['kill after'],
    ...options,
  })
}

async function command(script: string, options: ProveCommandOptions): Promise<ProveCommandResult> {
  return proveCommand(['sh', '-c', script], options, {
    environment: process.env,
    folder: join(folder, 'work'),
    onProgress: () => undefined,
    ask: null,
    signal: new AbortController().signal,
  })
}

test('the command gets programs and languages of the caller, and none of his logins', () => {
  const caller = {
    PATH: '/bin',
    LC_ALL: 'C',
    HOME: '/home/me',
    PGPASSWORD: 'secret',
    DATABASE_URL: 'postgres://production',
    AWS_SECRET_ACCESS_KEY: 'secret',
    STRIPE_KEY: 'sk_live',
    WAREHOUSE: 'known',
  }
  const places = { url: 'URL', host: 'HOST', port: 'PORT', db: 'DB', dir: 'DIR', http: 'HTTP' }
  const options = { caller, places, home: '/trial/home', temporary: '/trial/tmp', trial: '1' }
  const environment = environmentOf({ ...options, passed: ['WAREHOUSE', 'DSN=x {url} {db}'] })
  expect(environment).toMatchObject({
    PATH: '/bin',
    LC_ALL: 'C',
    HOME: '/trial/home',
    DATABASE_URL: 'URL',
    PGPASSWORD: 'stet',
    HTTP_PROXY: 'HTTP',
    http_proxy: 'HTTP',
    WAREHOUSE: 'known',
    DSN: 'x URL DB',
  })
  expect(Object.keys(environment).filter((name) => /AWS|STRIPE/.test(name))).toEqual([])
  expect(() => environmentOf({ ...options, passed: ['ABSENT'] })).toThrow('the environment has no ABSENT')
})

/** Processes whose command line has the word in it. */
const processesWith = async (word: string) => {
  const found: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (line.includes(word) && !line.includes('prover-process')) found.push(line.replaceAll('\0', ' '))
  }
  return found
}

describe.skipIf(!hasPsql)('with psql', { timeout: PATIENCE_MS }, () => {
  test('a server that the command knows by itself is out of reach', async ({ skip }) => {
    skip(!isFenced, 'this system gives no network namespace')
    const production = await freshDatabase()
    await using db = await connect(production)
    await db.client.query('create table orders (a int)')
    const proof = await shell(`psql -q ${production} -c "insert into orders values (1)" || ${LOAD}`)
    expect(proof.verdict).toBe('survives')
    expect((await db.client.query('select * from orders')).rows).toEqual([])
  })

  test('the sandbox server has no way out either', async ({ skip }) => {
    skip(!isFenced, 'this system gives no network namespace')
    const production = new URL(inject('postgresUrl'))
    const seed = join(folder, 'fdw.sql')
    await writeFile(
      seed,
      `create table t (a int);
       create function reach() returns text language plpgsql as $$
       begin
         create temp table answer (line text);
         copy answer from program 'psql -Atc "select 1" -h 127.0.0.1 -p ${production.port} -U postgres postgres 2>&1 | tr "[:cntrl:]" " "';
         return (select string_agg(line, ' ') from answer);
       end $$;`,
    )
    const proof = await shell(
      `${LOAD} && psql -Atc "select reach()" > reached.txt; grep -q refused reached.txt`,
      {
        filling: { kind: 'seed', file: seed },
        kinds: [],
      },
    )
    expect(proof.verdict).toBe('survives')
  })

  test('a command that uses another database is not proved: status 3, and how to pass it', async () => {
    await writeFile(join(folder, 'seed.sql'), 'create table t (a int)')
    const { exitStatus, render } = await command('true', {
      seed: join(folder, 'seed.sql'),
      allowNetwork: !isFenced,
    })
    expect(exitStatus).toBe(3)
    expect(render('text')).toContain('did not use the database it was given')
    expect(render('text')).toContain('--env WAREHOUSE_URL={url}')
  })

  test('a command that changes nothing proves nothing', async () => {
    const proof = await shell('psql -c "select 1"')
    expect(proof).toMatchObject({
      verdict: 'inconclusive',
      obstacle: { what: expect.stringContaining('nothing') },
    })
  })

  test('the database it is copied from is only read', async () => {
    // A server of its own: numbers of transactions are counted for all its databases, and other tests run beside this one.
    const binaries = systemBinaries(existsSync) ?? (await embeddedBinaries())
    await using server = await startPostgres({ binaries })
    const source = server.url
    await using db = await connect(source)
    await db.client.query(
      `create schema sales; create type sales.size as enum ('small');
       create table sales.t (a int, size sales.size); insert into sales.t values (7);
       create table other (a int); create type odd as (t other);`,
    )
    const xid = async () =>
      (await db.client.query('select pg_snapshot_xmax(pg_current_snapshot()) as x')).rows
    const before = await xid()
    const load =
      'psql -qc "delete from sales.t" && psql -qc "insert into sales.t select 1 where to_regclass(\'other\') is null"'
    const { exitStatus, document } = await command(load, {
      from: source,
      only: ['sales.*'],
      allowNetwork: !isFenced,
    })
    expect(exitStatus).toBe(0)
    expect(document).toMatchObject({ verdict: 'survives', clean: { messages: 2 } })
    // The table outside of the pattern was not copied: else nothing would have been inserted.
    expect(document).toMatchObject({
      again: [{ what: [expect.stringContaining('delete')] }, { what: [expect.stringContaining('insert')] }],
    })
    expect((await db.client.query('select a from sales.t')).rows).toEqual([{ a: 7 }])
    expect(await xid()).toEqual(before)
  })

  test('files of the work folder are copied, never written', async () => {
    await writeFile(join(folder, 'work', 'mark'), 'mine')
    await shell(`${LOAD}; echo theirs > mark; echo more > other`)
    expect(await readdir(join(folder, 'work'))).toEqual(['mark'])
    expect(await readFile(join(folder, 'work', 'mark'), 'utf8')).toBe('mine')
  })

  test('a command that fails by itself is shown with its output', async () => {
    await expect(shell('echo no such day; exit 9')).rejects.toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining('ended with 9'),
      hint: expect.stringContaining('no such day'),
    })
    // It may well have failed because it looked for its database elsewhere.
    await expect(shell('echo no such host; exit 9')).rejects.toMatchObject({
      hint: expect.stringMatching(
        /no such host\nIt never spoke to its database.*--env WAREHOUSE_URL=\{url\}/s,
      ),
    })
    await expect(shell('psql -qc "select 1"; exit 9')).rejects.toMatchObject({
      hint: expect.not.stringContaining('--env'),
    })
  })

  test('a seed with an error is named with its line', async () => {
    const file = join(folder, 'bad.sql')
    await writeFile(file, 'create table t (a int);\ninsert into u values (1);')
    await expect(shell('true', { filling: { kind: 'seed', file } })).rejects.toThrow(
      /bad\.sql:2: .*"u" does not exist/,
    )
  })

  test('a command that never ends is ended', async () => {
    await expect(shell(`trap "" TERM; ${LOAD}; sleep 1000`, { timeLimitMs: 1500 })).rejects.toThrow(
      'did not end within 1.5 s',
    )
  })

  test('what a command has forked away ends with it, and holds nothing up', async () => {
    const proof = await shell(`${LOAD}; (setsid sh -c 'sleep 98763; psql -qc "insert into t values (2)"' &)`)
    expect(proof.verdict).toBe('survives')
    expect(await processesWith('sleep\x0098763')).toEqual([])
  })

  test('a command that floods its output does no harm', async () => {
    const flood = 'head -c 30000000 /dev/zero'
    const proof = await shell(`${flood} && ${LOAD}`, { kinds: [] })
    expect(proof.verdict).toBe('survives')
    expect(proof.trials[0]?.first.output.length).toBeLessThan(20_000)
  })

  test('a command that drops the databases of the sandbox is told so', async () => {
    const drop = 'for n in 1 2 3; do psql -qc "drop database if exists stet_$n with (force)"; done; true'
    await expect(shell(`${LOAD}; ${drop}`)).rejects.toThrow('the command has dropped it')
  })

  test('a rerun that cannot start is stuck', async () => {
    const proof = await shell('psql -v ON_ERROR_STOP=1 -qc "create table made (a int)" -c "drop table t"')
    expect(proof.verdict).toBe('convicted')
    expect(proof.trials[0]?.differences[0]).toMatchObject({ class: 'stuck' })
  })

  test('a port built into the command is served', async ({ skip }) => {
    skip(!isFenced, 'without a fence the port may be taken')
    const proof = await shell(
      'psql -q "postgres://me@localhost:5432/sales" -c "delete from t" -c "insert into t select 1"',
      {
        listenPort: 5432,
        kinds: ['kill after', 'overlap'],
      },
    )
    expect(proof.verdict).toBe('survives')
    expect(proof.notTried).toContain('two at once (--listen)')
  })
})

describe.skipIf(!hasPsql)('nothing is left', { timeout: PATIENCE_MS }, () => {
  const running: ChildProcess[] = []
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL')
  })

  const leftovers = async (pid: number | undefined) =>
    (await readdir(tmpdir())).filter((name) => new RegExp(`^stet-(pg|prove)-${pid}-`).test(name))

  /** Starts a prover whose command says when it runs, and hangs. */
  async function startProver(mark: string): Promise<ChildProcess> {
    await writeFile(join(folder, 'seed.sql'), 'create table t (a int)')
    const jiti = fileURLToPath(import.meta.resolve('jiti/register'))
    const script = fileURLToPath(new URL('prover-process.ts', import.meta.url))
    const started = join(folder, 'started')
    const hang = `trap "" TERM INT HUP; ${LOAD}; (setsid sleep ${mark} &); echo > ${started}; sleep ${mark}`
    const options = JSON.stringify({ seed: join(folder, 'seed.sql'), allowNetwork: !isFenced })
    const child = spawn(process.execPath, ['--import', jiti, script, options, 'sh', '-c', hang], {
      cwd: join(folder, 'work'),
      stdio: 'ignore',
    })
    running.push(child)
    while (!(await readdir(folder)).includes('started'))
      await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await processesWith(`sleep\0${mark}`)).length).toBeGreaterThan(0)
    expect((await leftovers(child.pid)).length).toBe(2)
    return child
  }

  test('after a proof', async () => {
    await shell(LOAD)
    const mine = (await leftovers(process.pid)).filter((name) => name.startsWith('stet-prove-'))
    expect(mine).toEqual([])
  })

  test('after Ctrl-C', async () => {
    const child = await startProver('98761')
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([130, null])
    expect(await processesWith('sleep\x0098761')).toEqual([])
    expect(await leftovers(child.pid)).toEqual([])
  })

  test('after the prover was killed: the command at once, the rest when the next one starts', async ({
    skip,
  }) => {
    skip(!isFenced, 'without a fence nothing ends the command of a killed prover')
    const child = await startProver('98762')
    const [pg] = (await leftovers(child.pid)).filter((name) => name.startsWith('stet-pg-'))
    child.kill('SIGKILL')
    await once(child, 'exit')
    while ((await processesWith('sleep\x0098762')).length > 0);
    await shell(LOAD)
    expect(await leftovers(child.pid)).toEqual([])
    expect(await processesWith(pg ?? 'none')).toEqual([])
  })
})
