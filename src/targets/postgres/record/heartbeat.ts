import type { Connection } from '../connection.ts'
import { beat, type Lease } from './lease.ts'

export interface Heartbeat extends AsyncDisposable {
  /** Whether another attempt was seen to have taken the lease. */
  readonly lost: boolean
}

/**
 * Keeps a lease alive while the run works: a beat every third of the time after which it would be taken over. The
 * connection is its own, because the run's own is busy for as long as a statement takes; it is opened anew when it
 * breaks. Neither it nor the timer keeps the process alive.
 */
export function startHeartbeat(options: {
  readonly lease: Lease
  readonly leaseTimeoutMs: number
  readonly connection: Connection
  readonly connect: () => Promise<Connection>
}): Heartbeat {
  let { connection } = options
  let lost = false
  let pending: Promise<void> | undefined
  const tell = async () => {
    try {
      if (connection.lost) connection = await options.connect()
      lost = !(await beat(connection, options.lease))
      if (lost) clearInterval(timer)
    } catch {
      // One beat may be missed; when all are, the lease goes to another attempt and the commit is refused.
      connection.destroy()
    }
  }
  const timer = setInterval(() => {
    pending ??= tell().finally(() => {
      pending = undefined
    })
  }, options.leaseTimeoutMs / 3)
  timer.unref()
  return {
    get lost() {
      return lost
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer)
      await pending
      await connection[Symbol.asyncDispose]()
    },
  }
}
