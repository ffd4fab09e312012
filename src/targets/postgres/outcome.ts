import { StetError } from '../../errors.ts'
import type { Connection } from './connection.ts'
import { until } from './record/lease.ts'
import { hasSucceeded } from './record/runs.ts'

export interface OutcomeOptions {
  /** Opens a new connection; fails while the server cannot be reached. */
  readonly connect: () => Promise<Connection>
  /** The transaction's number, taken before the commit was sent. */
  readonly transaction: string
  readonly attemptId: string
  readonly timeoutMs: number
  readonly cause: unknown
}

/** So long a commit that was sent may be on its way before the transaction that waits for it is ended. */
const GRACE_MS = 1_000

/**
 * Finds out whether a commit arrived whose answer was lost. The server knows: the transaction is committed, aborted, or
 * still open; then its process is waited for, and ended when it only waits for a client that is gone.
 *
 * @returns when the commit has arrived.
 * @throws {StetError} `STET_CONNECTION` when it has not and never will, `STET_OUTCOME_UNKNOWN` when nobody can be asked.
 */
export async function resolveOutcome(options: OutcomeOptions): Promise<void> {
  const { transaction, attemptId, timeoutMs, cause } = options
  const started = performance.now()
  const outcome = await until(
    async () => {
      try {
        await using connection = await options.connect()
        const [row] = await connection.query('select pg_xact_status($1::xid8) as status', [transaction])
        const status = row?.status ?? null
        if (status === 'in progress') {
          if (performance.now() - started > GRACE_MS) await endIdle(connection, transaction)
          return null
        }
        // The status of a very old transaction is forgotten; the record is not.
        if (status === 'aborted') return 'aborted'
        return (await hasSucceeded(connection, attemptId)) ? 'committed' : 'aborted'
      } catch {
        // Cannot be asked now; asked again until the time is over.
        return null
      }
    },
    { timeoutMs },
  )
  if (outcome === 'committed') return
  if (outcome === 'aborted') {
    throw new StetError(
      'STET_CONNECTION',
      'The connection was lost and the commit did not arrive; nothing was written',
      {
        hint: 'Run again',
        cause,
      },
    )
  }
  throw new StetError(
    'STET_OUTCOME_UNKNOWN',
    `The connection was lost while committing, and within ${timeoutMs} ms nobody could be asked whether the commit arrived`,
    {
      hint: `Run again when the server answers: the run finds out, and writes nothing twice. By hand: select status from stet.run where attempt_id = '${attemptId}'`,
      details: { attemptId, transaction },
      cause,
    },
  )
}

/** Ends the process of our own transaction, only while it does nothing but wait for its client. */
async function endIdle(connection: Connection, transaction: string): Promise<void> {
  await connection.query(
    `select pg_terminate_backend(pid)
       from pg_stat_activity
      where backend_xid = $1::xid8::xid
        and state like 'idle in transaction%'`,
    [transaction],
  )
}
