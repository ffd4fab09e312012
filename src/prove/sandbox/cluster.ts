import type pg from 'pg'
import { StetError } from '../../errors.ts'
import type { Upstream } from '../wire/startup.ts'
import { COMMIT_WATCH_SETTINGS, type CommitWatch, startCommitWatcher } from './commit-watch.ts'
import type { Fence } from './fence.ts'
import { type PostgresBinaries, startPostgres } from './postgres-server.ts'

export type Row = Readonly<Record<string, string | null>>

/** An open connection to one database of the sandbox. All values come back as text. */
export interface Session extends AsyncDisposable {
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** The throw-away cluster of one proof. */
export interface Cluster extends AsyncDisposable {
  readonly upstream: Upstream
  readonly socketFolder: string
  readonly port: number
  readonly version: number
  open(database: string): Promise<Session>
  create(): Promise<string>
  /** A database with the content of another one; waits until nobody uses that. */
  clone(template: string): Promise<string>
  drop(database: string): Promise<void>
  /** Waits until the server ends of lost connections are gone; then what they had open is rolled back. */
  settle(database: string): Promise<void>
  /** The next transaction to write; it moves whenever one has ended. */
  nextTransaction(): Promise<bigint>
  /** Stops the commits of a database, in sessions that were started for it. */
  watchCommits(database: string): CommitWatch
  /** Ends a session as a shutdown of the server would. */
  endBackend(pid: number): Promise<void>
  /** How many sessions of a database wait for a lock. */
  waiters(database: string): Promise<number>
}

const USER = 'postgres'
/** Whatever the database or its owner prefers: two states are compared by how their values print. */
const PINNED = [
  'timezone=UTC',
  'datestyle=ISO',
  'intervalstyle=postgres',
  'extra_float_digits=1',
  'bytea_output=hex',
  'search_path=pg_catalog',
  'statement_timeout=0',
]
  .map((setting) => `-c ${setting}`)
  .join(' ')
const LINGER_MS = 3000
/** Up to this size PostgreSQL 15's wal_log copies faster; above it, copying files does. */
const COPY_FILES_ABOVE_BYTES = 100 * 1024 * 1024

export async function startCluster(binaries: PostgresBinaries, fence: Fence): Promise<Cluster> {
  const server = await startPostgres({
    binaries,
    settings: ['max_connections=200', 'jit=off', ...COMMIT_WATCH_SETTINGS],
    ...(fence.isClosed ? { wrap: fence.wrap } : {}),
  })
  const { socketFolder, port } = server
  const open = (database: string) => connect(socketFolder, port, database, server.complaint)
  try {
    const admin = await open('postgres')
    const [found] = await admin.query("select current_setting('server_version_num') as version")
    const version = Math.floor(Number(found?.version) / 10_000)
    return cluster(admin, await open('postgres'), version, {
      socketFolder,
      port,
      open,
      stop: async () => server[Symbol.asyncDispose](),
    })
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

interface Parts {
  readonly socketFolder: string
  readonly port: number
  readonly open: (database: string) => Promise<Session>
  readonly stop: () => Promise<void>
}

function cluster(
  admin: Session,
  watching: Session,
  version: number,
  { socketFolder, port, open, stop }: Parts,
): Cluster {
  let made = 0
  const watcher = startCommitWatcher(watching)

  const backends = async (database: string) => {
    const [row] = await admin.query(
      "select count(*) as n from pg_stat_activity where datname = $1 and backend_type = 'client backend'",
      [database],
    )
    return Number(row?.n)
  }

  const settle = async (database: string) => {
    const deadline = performance.now() + LINGER_MS
    while ((await backends(database)) > 0) {
      if (performance.now() < deadline) continue
      await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
        database,
      ])
    }
  }

  const copyStrategy = async (template: string) => {
    if (version < 15) return ''
    const [row] = await admin.query('select pg_database_size($1) as bytes', [template])
    return Number(row?.bytes) > COPY_FILES_ABOVE_BYTES ? 'strategy file_copy' : 'strategy wal_log'
  }

  return {
    upstream: { path: `${socketFolder}/.s.PGSQL.${port}` },
    socketFolder,
    port,
    version,
    open,
    settle,
    async create() {
      const database = `stet_${++made}`
      await admin.query(`create database ${database} template template0`)
      return database
    },
    async clone(template) {
      const database = `stet_${++made}`
      await settle(template)
      const strategy = await copyStrategy(template).catch(explainMissing)
      await admin.query(`create database ${database} template ${template} ${strategy}`).catch(explainMissing)
      return database
    },
    async drop(database) {
      await admin.query(`drop database if exists ${database} with (force)`)
    },
    async nextTransaction() {
      const [row] = await admin.query('select pg_snapshot_xmax(pg_current_snapshot())::text as next')
      return BigInt(row?.next ?? 0)
    },
    watchCommits: watcher.watch,
    async endBackend(pid) {
      await admin.query('select pg_terminate_backend($1)', [pid])
    },
    async waiters(database) {
      const [row] = await admin.query(
        "select count(*) as n from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'",
        [database],
      )
      return Number(row?.n)
    },
    [Symbol.asyncDispose]: async () => {
      await watcher[Symbol.asyncDispose]()
      await admin[Symbol.asyncDispose]()
      await stop()
    },
  }
}

async function connect(
  socketFolder: string,
  port: number,
  database: string,
  complaint: () => string | null,
): Promise<Session> {
  const { Client } = await loadDriver()
  const client = new Client({
    host: socketFolder,
    port,
    user: USER,
    database,
    options: PINNED,
    // Values travel as text: a number must not lose digits on its way into a report.
    types: { getTypeParser: () => (value: string) => value },
  })
  client.on('error', () => undefined)
  await client.connect()
  // Trials side by side share a session; a client takes one query at a time.
  let last: Promise<unknown> = Promise.resolve()
  return {
    query: async (sql, values = []) => {
      const result = last.then(() => client.query<Row>(sql, [...values]))
      last = result.catch(() => undefined)
      return (await result.catch((cause: unknown) => explainLost(cause, complaint()))).rows
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** An error with a SQLSTATE comes from a server that is there. Whatever else fails does so because it is not. */
function explainLost(cause: unknown, complaint: string | null): never {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (/^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE') throw cause
  throw new StetError('STET_CONFIG', `The sandbox's server has ended: ${complaint ?? String(cause)}`, {
    cause,
  })
}

const NO_SUCH_DATABASE = '3D000'
export const DISK_FULL = '53100'

/** The disk of the sandbox is none of the job's faults. */
export function diskFull(cause?: unknown): StetError {
  return new StetError('STET_CONFIG', 'The disk with the sandbox is full, so nothing can be proved', {
    hint: 'Point TMPDIR to a larger one, take a smaller seed, or use --jobs 1',
    cause,
  })
}

function explainMissing(cause: unknown): never {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null
  if (code === DISK_FULL) throw diskFull(cause)
  if (code !== NO_SUCH_DATABASE) throw cause
  throw new StetError('STET_CONFIG', 'A database of the sandbox is gone: the command has dropped it', {
    cause,
  })
}

async function loadDriver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new StetError('STET_DRIVER_MISSING', 'The package pg is not installed', {
      hint: 'Run: npm install pg',
      cause,
    })
  }
}
