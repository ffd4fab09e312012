import type { CopyToStreamQuery } from 'pg-copy-streams'
import { StetError } from '../../errors.ts'
import type { Driver } from './driver.ts'
import { describeError } from './errors.ts'

/** A row of an answer, every value as the server's text. */
type Answer = Readonly<Record<string, string | null>>

/** A column as the server describes it. */
export interface DescribedColumn {
  readonly name: string
  readonly typeId: number
  readonly typeModifier: number
}

/** One transaction that reads, and sees one moment of the database. */
export interface ReadSession extends AsyncDisposable {
  query(sql: string, parameters: readonly unknown[]): Promise<readonly Answer[]>
  /** The columns of a statement's answer. */
  describe(sql: string): Promise<readonly DescribedColumn[]>
  copyTo(sql: string): CopyToStreamQuery
  /** Ends the transaction; throws when the server has given it up meanwhile. */
  commit(): Promise<void>
}

/** Longer than people hold a lock by hand, shorter than an orchestrator waits. */
const LOCK_TIMEOUT = '30s'

/**
 * What the texts of values depend on, and what may end a long read. A role or database may carry other values
 * (`alter role … set`). `set local` only: behind a pooler a plain `set` would leak into other clients. `search_path` is
 * left alone, because the user's query looks its names up through it.
 */
const BEGIN = `
  begin transaction isolation level repeatable read, read only;
  set local client_encoding = 'UTF8';
  set local datestyle = 'ISO, YMD';
  set local intervalstyle = 'postgres';
  set local timezone = 'UTC';
  set local extra_float_digits = 1;
  set local bytea_output = 'hex';
  set local xmlbinary = 'base64';
  set local standard_conforming_strings = on;
  -- A policy that hides rows would make them look deleted: with off the query fails instead.
  set local row_security = off;
  set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = 0;
  set local lock_timeout = '${LOCK_TIMEOUT}'`

/**
 * Connects and begins to read.
 *
 * @param signal Cancels the running statement from a second connection, then cuts this one: the server would go on
 * by itself until it next writes to a client that is gone.
 */
export async function openSession(driver: Driver, url: string, signal: AbortSignal): Promise<ReadSession> {
  signal.throwIfAborted()
  const { client, socket } = createClient(driver, url)
  let process: string | null = null
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped = cancel(driver, url, process).finally(() => socket.destroy())
  }
  signal.addEventListener('abort', stop, { once: true })
  const attempt = async <T>(action: string, work: () => Promise<T>): Promise<T> => {
    try {
      signal.throwIfAborted()
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      throw describeError(error, action)
    }
  }
  const close = async () => {
    signal.removeEventListener('abort', stop)
    await stopped
    // A broken COPY is never read to its end: end() cuts a client that is in the middle of a statement.
    if (socket.destroyed) return
    await client.end().catch(() => socket.destroy())
  }
  try {
    await attempt('connect to PostgreSQL', () => client.connect())
    await attempt('begin to read', async () => {
      await client.query(BEGIN)
      const { rows } = await client.query<Answer>('select pg_backend_pid() as pid')
      process = rows[0]?.pid ?? null
    })
  } catch (error) {
    socket.destroy()
    await close()
    throw error
  }
  return {
    query: (sql, parameters) =>
      attempt('ask PostgreSQL', async () => (await client.query<Answer>(sql, [...parameters])).rows),
    describe: (sql) =>
      attempt('run the query', async () => {
        // The extended protocol takes one statement only: a query with a semicolon in it is refused here.
        const { fields } = await client.query({ text: sql, values: [], queryMode: 'extended' } as {
          text: string
        })
        return fields.map((field) => ({
          name: field.name,
          typeId: field.dataTypeID,
          typeModifier: field.dataTypeModifier,
        }))
      }),
    copyTo: (sql) => client.query(driver.copyTo(sql)),
    commit: () =>
      attempt('finish reading', async () => {
        const { command } = await client.query('commit')
        if (command !== 'COMMIT') {
          throw new StetError('STET_SOURCE', `PostgreSQL gave the reading transaction up: ${command}`)
        }
      }),
    [Symbol.asyncDispose]: close,
  }
}

/** A URL that cannot be parsed may hold a password, and so may the error that says so: it is not passed on. */
function createClient(driver: Driver, url: string): ReturnType<Driver['createClient']> {
  try {
    return driver.createClient(url)
  } catch {
    throw new StetError('STET_CONFIG', 'Cannot connect to PostgreSQL: its url is none', {
      hint: 'Write postgres://user:password@host:5432/database, with reserved characters of the password as %XX',
    })
  }
}

/** Nobody is left to be told when this fails: the caller is on its way out with the reason of the abort. */
async function cancel(driver: Driver, url: string, process: string | null): Promise<void> {
  if (process === null) return
  const { client, socket } = driver.createClient(url)
  try {
    await client.connect()
    await client.query('select pg_cancel_backend($1)', [process])
    await client.end()
  } catch {
    socket.destroy()
  }
}
