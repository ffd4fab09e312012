import type { Readable, Writable } from 'node:stream'
import type { ClientConfig, Submittable } from 'pg'
import { CopyOutStatement } from './copy-out.ts'
import type { Driver } from './driver.ts'
import { describeError } from './errors.ts'

/** A row of an answer, every value as the server's text. */
export type Row = Readonly<Record<string, string | null>>

/** One connection to the server. Nothing of it outlives a transaction, so a transaction pooler does no harm. */
export interface Connection extends AsyncDisposable {
  /**
   * The server process, where the answer comes from it directly; null behind a pooler, which makes up a number of its
   * own and may give every transaction another process.
   */
  readonly directProcess: string | null
  /** Whether the connection broke; then nothing more can be asked of it. */
  readonly lost: boolean
  /** Runs one statement with parameters, or several without; the rows of the last one. */
  query(sql: string, parameters?: readonly (string | null)[]): Promise<readonly Row[]>
  /** The command that the server says it has carried out, such as `COMMIT`, or `ROLLBACK` in its stead. */
  command(sql: string): Promise<string>
  copyTo(sql: string): CopyOut
  copyFrom(sql: string): CopyIn
  /** Says in which server process the transaction runs, so that an abort reaches it behind a pooler as well. */
  runsIn(process: string): void
  /** Cuts the connection; the server undoes what is open. */
  destroy(): void
}

/** The number that a query gives as `rows`. */
export async function queryCount(connection: Pick<Connection, 'query'>, sql: string): Promise<number> {
  const [row] = await connection.query(sql)
  return Number(row?.rows ?? 0)
}

interface CopyOut {
  readonly bytes: Readable
  /** How many rows the server says it has sent; settles when it is ready for the next statement. */
  readonly rows: Promise<number>
}

interface CopyIn {
  readonly bytes: Writable
  /** How many rows the server has taken; resolves only after {@link bytes} was ended. */
  readonly rows: Promise<number>
}

/**
 * Connects.
 *
 * @param signal Cancels a running statement from a second connection, then cuts this one (a broken COPY is never reused).
 */
export async function openConnection(
  driver: Driver,
  config: ClientConfig,
  signal?: AbortSignal,
): Promise<Connection> {
  signal?.throwIfAborted()
  const { client, socket } = await driver.connect(config)
  let lost = false
  client.on('end', () => {
    lost = true
  })
  client.on('error', () => {
    lost = true
  })
  const ask = async (sql: string, parameters?: readonly (string | null)[]) => {
    signal?.throwIfAborted()
    try {
      const answer = await (parameters === undefined ? client.query(sql) : client.query(sql, [...parameters]))
      // Several statements give several results; the types of the driver know only of one.
      const results = Array.isArray(answer) ? answer : [answer]
      return results[results.length - 1] as typeof answer
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
  }
  const [started] = await ask('select pg_backend_pid() as pid').then(
    ({ rows }) => rows as Row[],
    (error: unknown) => {
      socket.destroy()
      signal?.throwIfAborted()
      throw describeError(error, 'connect to PostgreSQL')
    },
  )
  const process = started?.pid ?? null
  const direct = process !== null && String((client as { processID?: unknown }).processID) === process

  let running = direct ? process : null
  let cancelled: Promise<void> | undefined
  const cancel = () => {
    cancelled = cancelStatement(driver, config, running).finally(() => socket.destroy())
  }
  signal?.addEventListener('abort', cancel, { once: true })

  return {
    directProcess: direct ? process : null,
    get lost() {
      return lost
    },
    query: async (sql, parameters) => (await ask(sql, parameters)).rows as Row[],
    command: async (sql) => (await ask(sql)).command,
    copyTo: (sql) => {
      signal?.throwIfAborted()
      const query = client.query(new CopyOutStatement(sql) as unknown as Submittable & CopyOutStatement)
      return { bytes: query, rows: query.rows }
    },
    copyFrom: (sql) => {
      signal?.throwIfAborted()
      const query = client.query(driver.copyFrom(sql))
      return { bytes: query, rows: whenTaken(query) }
    },
    runsIn: (found) => {
      running = found
    },
    destroy: () => socket.destroy(),
    [Symbol.asyncDispose]: async () => {
      signal?.removeEventListener('abort', cancel)
      await cancelled
      if (lost || signal?.aborted === true) socket.destroy()
      else await client.end().catch(() => socket.destroy())
    },
  }
}

/** Settles when the server has taken all, or refused; after a refusal the stream is dead and not to be touched. */
function whenTaken(query: Writable & { rowCount: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    query.once('finish', () => resolve(query.rowCount))
    // `on`, because a refusal and the failure that it causes may both be reported.
    query.on('error', (error) => {
      // What is still queued would be written to a connection that the stream no longer has.
      Object.assign(query, { chunks: [] })
      reject(error)
    })
  })
}

/**
 * Stops what the other connection runs. Without it the server would go on by itself after the socket is cut, until it
 * next writes to it.
 */
async function cancelStatement(driver: Driver, config: ClientConfig, process: string | null): Promise<void> {
  if (process === null) return
  try {
    const { client } = await driver.connect(config)
    await client.query('select pg_cancel_backend($1)', [process])
    await client.end()
  } catch (error) {
    // The caller is on its way out with the reason of the abort; a server that cannot be asked is cut off all the same.
    describeError(error, 'cancel the running statement')
  }
}
