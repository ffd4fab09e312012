import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api'
import { StetError } from '../errors.ts'
import type { LocalConnection } from '../model/local.ts'
import { registerFunctions } from './functions.ts'

export interface LocalEngineOptions {
  /** Where the engine spills; a folder of its own is made below. Default: the system's temporary folder. */
  readonly temporaryFolder?: string | undefined
  /** DuckDB's own limit, such as `4GB`. The process needs some 300 MB more. Default: DuckDB's (80 % of memory). */
  readonly memoryLimit?: string | undefined
  readonly threads?: number | undefined
}

/**
 * The local engine of one run: an in-memory DuckDB that spills into a folder of its own. Dispose of it and the
 * folder is gone.
 */
export interface LocalEngine extends LocalConnection, AsyncDisposable {}

/** Opens the local engine of one run. */
export async function openLocalEngine(options: LocalEngineOptions = {}): Promise<LocalEngine> {
  const directory = await makeDirectory(options.temporaryFolder ?? tmpdir())
  const instance = await DuckDBInstance.create(':memory:', {
    temp_directory: join(directory, 'spill'),
    // An engine that fetches extensions by itself would reach for the network in the middle of a run.
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    ...(options.memoryLimit === undefined ? {} : boundedMemory(options.memoryLimit)),
    ...(options.threads === undefined ? {} : { threads: String(options.threads) }),
  })
  const connections: DuckDBConnection[] = []
  const running = new Set<Promise<unknown>>()
  const noted = async <T>(statement: Promise<T>): Promise<T> => {
    running.add(statement)
    try {
      return await statement
    } finally {
      running.delete(statement)
    }
  }
  let names = 0
  const connect = async (): Promise<LocalConnection> => {
    const duckdb = await instance.connect()
    connections.push(duckdb)
    // Progress is polled, never printed by the engine. Without `enable_progress_bar` it is always -1.
    await duckdb.run(`set TimeZone = 'UTC'`)
    await duckdb.run('set enable_progress_bar = true')
    await duckdb.run('set enable_progress_bar_print = false')
    return {
      duckdb,
      directory,
      run: async (sql) => {
        await noted(duckdb.run(sql))
      },
      rows: (sql) => noted(rowsOf(duckdb, sql)),
      count: async (sql) => {
        const [row] = await noted(rowsOf(duckdb, sql))
        return Number(row === undefined ? 0 : Object.values(row)[0])
      },
      newName: (prefix) => `${prefix}_${++names}`,
      connect,
    }
  }
  const main = await connect()
  registerFunctions(main)
  return {
    ...main,
    [Symbol.asyncDispose]: async () => {
      // A statement that calls one of our functions waits for this thread. Closing its connection would make this thread
      // wait for the statement, for ever.
      const interrupt = () => {
        for (const connection of connections) connection.interrupt()
      }
      interrupt()
      const repeated = setInterval(interrupt, INTERRUPT_EVERY_MS)
      await Promise.allSettled(running)
      clearInterval(repeated)
      for (const connection of connections) connection.closeSync()
      instance.closeSync()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/**
 * The limit counts what the engine uses. What it has given back stays with the process until somebody else wants it, which with
 * 5M rows came to 320 to 440 MB beyond a limit of 1 GB; a thread of the allocator returns it to the system, mostly before 270 MB.
 */
function boundedMemory(memoryLimit: string): Record<string, string> {
  return { memory_limit: memoryLimit, allocator_background_threads: 'true' }
}

const FOLDER_PREFIX = 'stet-run-'

/** A folder of this run, named after its process, so that the next run can remove what a killed one has left. */
async function makeDirectory(parent: string): Promise<string> {
  try {
    for (const name of await readdir(parent)) {
      const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1]
      if (pid === undefined || isAlive(Number(pid))) continue
      // Somebody else's folder stays: it is theirs to remove.
      await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined)
    }
    return await mkdtemp(join(parent, `${FOLDER_PREFIX}${process.pid}-`))
  } catch (cause) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot make a temporary folder in ${parent}: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        hint: 'Name another one in TMPDIR: the load is checked and compared there',
        cause,
      },
    )
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it runs, as somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

async function rowsOf(duckdb: DuckDBConnection, sql: string): Promise<Record<string, DuckDBValue>[]> {
  const reader = await duckdb.runAndReadAll(sql)
  return reader.getRowObjects()
}

/** An interrupt that comes between two statements, or while one is about to start, is lost; so it is repeated. */
const INTERRUPT_EVERY_MS = 20

/** Interrupts the connection's running statement, and any further one, once the signal fires; undo with the returned function. */
export function interruptOnAbort(connection: LocalConnection, signal: AbortSignal): () => void {
  let repeated: NodeJS.Timeout | undefined
  const interrupt = () => {
    connection.duckdb.interrupt()
    repeated ??= setInterval(interrupt, INTERRUPT_EVERY_MS)
  }
  signal.addEventListener('abort', interrupt, { once: true })
  return () => {
    signal.removeEventListener('abort', interrupt)
    clearInterval(repeated)
  }
}
