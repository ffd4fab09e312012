import { StetError } from '../../errors.ts'

/** Gives a turn back. May be called more than once. */
export type EndTurn = () => void

export interface TurnOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called once when the turn is not free at once. */
  readonly onWait: () => void
}

/** For each path that is in use, those who wait for it, first come first served. */
type Queues = Map<string, (() => void)[]>

/**
 * DuckDB's lock on a file holds between processes only. Inside one process a second engine opens the same file, both
 * write, and the rows of one are lost; closing either also gives up the lock against other processes. So whoever touches
 * a file in this process takes its turn here. On `globalThis`, because a process may load this module twice (the built
 * package and its sources), and all copies must see one queue.
 */
function queuesOfThisProcess(): Queues {
  const shared: { [key: symbol]: Queues | undefined } = globalThis as never
  const name = Symbol.for('stet.duckdb.turns')
  shared[name] ??= new Map()
  return shared[name]
}

/**
 * Waits until nobody else of this process uses the file.
 *
 * @throws {StetError} `STET_LOCKED` after `timeoutMs`.
 * @throws `signal.reason` when aborted.
 */
export async function takeTurn(path: string, options: TurnOptions): Promise<EndTurn> {
  options.signal.throwIfAborted()
  const queues = queuesOfThisProcess()
  const waiting = queues.get(path)
  if (waiting === undefined) {
    queues.set(path, [])
  } else {
    options.onWait()
    await joinQueue(waiting, path, options)
  }
  let ended = false
  return () => {
    if (ended) return
    ended = true
    const next = queues.get(path)?.shift()
    if (next === undefined) queues.delete(path)
    else next()
  }
}

async function joinQueue(waiting: (() => void)[], path: string, options: TurnOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', abort)
      const place = waiting.indexOf(start)
      if (place >= 0) waiting.splice(place, 1)
    }
    const start = () => {
      leave()
      resolve()
    }
    const abort = () => {
      leave()
      reject(options.signal.reason)
    }
    const timer = setTimeout(() => {
      leave()
      reject(
        new StetError(
          'STET_LOCKED',
          `Another run in this process (PID ${process.pid}) still holds ${path} after ${options.timeoutMs} ms (G7); nothing was written`,
          { hint: 'Run the pipelines of one DuckDB file one after the other, or allow a longer wait' },
        ),
      )
    }, options.timeoutMs)
    options.signal.addEventListener('abort', abort, { once: true })
    waiting.push(start)
  })
}
