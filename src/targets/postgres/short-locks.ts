import { setTimeout as wait } from 'node:timers/promises'
import { StetError } from '../../errors.ts'
import type { Connection } from './connection.ts'
import { sqlstateOf } from './errors.ts'

/** How long to go on trying for locks that hold up readers. */
export interface Patience {
  /** All tries together, in milliseconds. */
  readonly timeoutMs: number
  /** One try, in milliseconds: so long new readers may have to queue behind it. Default 500. */
  readonly tryMs?: number | undefined
  readonly signal: AbortSignal
  readonly notice: (message: string) => void
  /** Between 0 and 1; spreads the pauses, so that two who wait for each other do not meet again. */
  readonly random: () => number
}

const TRY_MS = 500
/** The pause grows from here to eight times as much. */
const PAUSE_MS = 50
/** No lock to be had in time, and a deadlock that PostgreSQL found: both are over when others have ended. */
const BUSY = new Set(['55P03', '40P01'])

/**
 * Does a piece of work whose locks others may hold. Each try gives up soon and undoes itself, so that nobody queues behind
 * it for longer, and is made again after a pause.
 *
 * @param what For the message: `exchange partition sales.orders_2026_08_07`.
 * @param work Gets the timeout of a try; after it the transaction has its own timeout again.
 * @throws {StetError} `STET_LOCK_TIMEOUT`, with the transaction as it was before the work.
 */
export async function withShortLocks<T>(
  connection: Connection,
  what: string,
  patience: Patience,
  work: (tryMs: number) => Promise<T>,
): Promise<T> {
  const { timeoutMs, tryMs = TRY_MS, signal, notice, random } = patience
  const restore = `set local lock_timeout = '${Math.ceil(timeoutMs)}ms'`
  const started = performance.now()
  for (let tries = 1; ; tries++) {
    await connection.query('savepoint stet_try')
    try {
      const result = await work(Math.max(1, Math.ceil(Math.min(tryMs, timeoutMs))))
      await connection.query(`${restore}; release savepoint stet_try`)
      return result
    } catch (error) {
      if (connection.lost || !BUSY.has(sqlstateOf(error) ?? '')) throw error
      await connection.query('rollback to savepoint stet_try; release savepoint stet_try')
      const pause = PAUSE_MS * Math.min(8, 2 ** (tries - 1)) * (0.5 + random())
      if (performance.now() - started + pause >= timeoutMs) {
        throw new StetError(
          'STET_LOCK_TIMEOUT',
          `Cannot ${what}: other transactions held it for ${timeoutMs} ms (${tries} tries)`,
          {
            hint: "Nothing was written; the table is as it was. Run again later, give a longer --lock-timeout, or use apply: 'diff'",
            cause: error,
          },
        )
      }
      if (tries === 1) notice(`Waiting for other transactions, to ${what}`)
      await wait(pause, undefined, { signal })
    }
  }
}
