import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { Invocation, WrapOptions } from './fence.ts'
import { makeTemporaryFolder } from './temporary.ts'

/** Where the programs of one PostgreSQL version are. */
export interface PostgresBinaries {
  readonly initdb: string
  readonly postgres: string
}

export interface PostgresServer extends AsyncDisposable {
  readonly port: number
  readonly pid: number
  /** Where its socket `.s.PGSQL.PORT` is: reachable also when the server has no network. */
  readonly socketFolder: string
  /** `postgres://postgres@127.0.0.1:PORT/postgres`; loopback only, trusted. */
  readonly url: string
  urlOf(database: string): string
  /** What it last said that it cannot go on for; null when it said no such thing. */
  complaint(): string | null
}

export interface StartPostgresOptions {
  readonly binaries: PostgresBinaries
  /** Extra settings, `name=value`. */
  readonly settings?: readonly string[]
  /** Starts the server behind a fence. Its loopback port is then reachable from inside only. */
  readonly wrap?: (command: Invocation, options: WrapOptions) => Invocation
}

// PostgreSQL refuses to run as root. 65534 is `nobody`, which every Linux has, also one without a `postgres` user.
const NOBODY = 65534
const FOLDER_PREFIX = 'stet-pg-'

/**
 * Starts a throw-away PostgreSQL cluster on a free loopback port, without durability. Disposing stops it and removes
 * its folder; folders of killed processes are swept at the next start.
 */
export async function startPostgres({
  binaries,
  settings = [],
  wrap,
}: StartPostgresOptions): Promise<PostgresServer> {
  await sweepLeftovers()
  const asRoot = process.getuid?.() === 0
  const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {}
  const folder = await makeTemporaryFolder(FOLDER_PREFIX)
  await chmod(folder, 0o755)
  if (asRoot) await chown(folder, NOBODY, NOBODY)
  const programs = asRoot ? await readableByNobody(binaries, folder) : binaries
  const data = join(folder, 'data')
  const environment = { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC' }
  try {
    await runToEnd(
      programs.initdb,
      ['-D', data, '--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'],
      { ...identity, env: environment, cwd: '/' },
    )
    for (let attempt = 1; ; attempt++) {
      const port = await freePort()
      const flags = serverFlags(data, folder, port, settings)
      const direct = { program: programs.postgres, args: flags }
      const command = wrap?.(direct, asRoot ? { uid: NOBODY } : {}) ?? direct
      // What wraps it needs our rights, and takes them away itself.
      const options = { ...(wrap === undefined ? identity : {}), env: environment }
      const started = await tryStart(command, folder, port, options)
      if (started.server !== undefined) return started.server
      // Somebody may take the port between the probe and the bind.
      if (attempt === 5 || !started.log.includes('could not bind')) {
        throw new StetError('STET_INTERNAL', `PostgreSQL did not start: ${started.log.slice(-1500)}`)
      }
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

interface Spawned {
  readonly uid?: number
  readonly gid?: number
  readonly env: NodeJS.ProcessEnv
  readonly cwd?: string
}

function serverFlags(data: string, folder: string, port: number, settings: readonly string[]): string[] {
  const all = [
    'fsync=off',
    'full_page_writes=off',
    'synchronous_commit=on',
    'autovacuum=off',
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'max_connections=60',
    ...settings,
  ]
  return ['-D', data, '-p', String(port), ...all.flatMap((flag) => ['-c', flag])]
}

async function tryStart(
  { program, args }: Invocation,
  folder: string,
  port: number,
  options: Spawned,
): Promise<{ server?: PostgresServer; log: string }> {
  const child = spawn(program, args, { ...options, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', (error) => {
      log += String(error)
      resolve()
    })
  })
  const ready = new Promise<boolean>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-20_000)
      if (log.includes('ready to accept connections')) resolve(true)
    })
    void ended.then(() => resolve(false))
  })
  if (!(await ready)) return { log }
  const killWithUs = () => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const server: PostgresServer = {
    port,
    pid: child.pid ?? 0,
    socketFolder: folder,
    url: urlOf('postgres'),
    urlOf,
    complaint: () => /^.*\b(?:PANIC|FATAL): +(.*)$/m.exec(log)?.[1] ?? null,
    [Symbol.asyncDispose]: async () => {
      // SIGINT is PostgreSQL's fast shutdown: sessions are ended, nothing is waited for.
      child.kill('SIGINT')
      await ended
      process.removeListener('exit', killWithUs)
      await rm(folder, { recursive: true, force: true })
    },
  }
  return { server, log }
}

/** A folder that only root can enter (a clone below /root) is closed to the server's user: then the programs are copied. */
async function readableByNobody(binaries: PostgresBinaries, folder: string): Promise<PostgresBinaries> {
  for (let at = dirname(binaries.postgres); at !== dirname(at); at = dirname(at)) {
    const { mode } = await stat(at)
    if ((mode & 0o005) === 0o005) continue
    const native = dirname(dirname(binaries.postgres))
    const copy = join(folder, 'native')
    await cp(native, copy, { recursive: true, verbatimSymlinks: true })
    return {
      initdb: binaries.initdb.replace(native, copy),
      postgres: binaries.postgres.replace(native, copy),
    }
  }
  return binaries
}

async function sweepLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const folder = join(tmpdir(), name)
    await killOrphan(join(folder, 'data')).catch(() => undefined)
    await rm(folder, { recursive: true, force: true }).catch(() => undefined)
  }
}

/** A server whose starter was killed runs on. Its own folder says which process it is. */
async function killOrphan(data: string): Promise<void> {
  const [pid, folder] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
  // The number may belong to somebody else by now: PostgreSQL writes its folder beside it, /proc says what runs.
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  if (folder === data && commandLine.includes(data)) process.kill(Number(pid), 'SIGKILL')
}

/** Whether a process runs; without /proc, which not every system has. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it runs, as somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** A port that nobody listens on at this moment. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new StetError('STET_INTERNAL', 'No free port')
  return address.port
}

async function runToEnd(program: string, args: readonly string[], options: Spawned): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) {
    throw new StetError('STET_CONFIG', `${program} ended with ${code}: ${output.trim().slice(-1500)}`, {
      hint: 'Its folder is in TMPDIR: it has to have room, and be open to the user that the server runs as (nobody, for root)',
    })
  }
}
