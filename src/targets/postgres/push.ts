import { quoteLiteral } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Connection } from './connection.ts'
import { makeFifo } from './fifo.ts'

export interface PushOptions {
  /** What the local engine gives out. */
  readonly select: string
  /** `table (column, …)` of the server. */
  readonly into: string
  /**
   * Quotes every value. A row that is nothing but `\.` ends the data for servers before 18, and later rows would be
   * lost without a word; it can only be where a row has one column.
   */
  readonly quoteAll?: boolean
  /** The table was made in this transaction: its rows may be written as if they had always been there. */
  readonly freeze?: boolean
}

/**
 * Streams rows of the local engine into the server.
 *
 * The end of the pipe says nothing: an engine that fails midway closes it just as well, and the server would take a short
 * table for a whole one. So the COPY is only ended after the engine's own promise has resolved, and failed otherwise.
 *
 * @returns how many rows the server has taken.
 */
export async function pushRows(
  connection: Connection,
  local: LocalConnection,
  { select, into, quoteAll = false, freeze = false }: PushOptions,
): Promise<number> {
  await using fifo = await makeFifo(local)
  const { bytes, rows } = connection.copyFrom(
    `copy ${into} from stdin (format csv${freeze ? ', freeze' : ''})`,
  )
  const taken = rows.then((count) => ({ count }))
  const refused = new Promise<never>((_, reject) => bytes.once('error', reject))
  // Waited for below; until then a rejection has no listener.
  taken.catch(() => undefined)
  refused.catch(() => undefined)
  const read = new Promise<void>((resolve) => {
    fifo.readEnd.once('end', resolve)
    fifo.readEnd.once('close', resolve)
  })
  const written = local.run(
    `copy (${select}) to ${quoteLiteral(fifo.path)} (format csv, header false, nullstr ''${quoteAll ? ', force_quote *' : ''})`,
  )
  fifo.readEnd.pipe(bytes, { end: false })
  try {
    await Promise.race([Promise.all([written, read]), refused])
    bytes.end()
    return (await Promise.race([taken, refused])).count
  } catch (error) {
    // Closing the read end wakes an engine that waits for room in the pipe; destroying the copy fails it.
    fifo.readEnd.destroy()
    const source = await written.then(
      () => null,
      (failure: unknown) => failure,
    )
    if (!bytes.destroyed) await failCopy(bytes, source ?? error)
    throw isBrokenPipe(source) ? error : (source ?? error)
  }
}

/** The copy is over when the server has answered; only then may the connection be used for the rollback. */
async function failCopy(
  bytes: NodeJS.WritableStream & { destroy(error: Error): unknown },
  cause: unknown,
): Promise<void> {
  const over = new Promise<void>((resolve) => bytes.once('close', resolve))
  bytes.destroy(new Error(cause instanceof Error ? cause.message : String(cause)))
  await over
}

/** What the engine says when it was the server that failed first. */
function isBrokenPipe(failure: unknown): boolean {
  return failure instanceof Error && /broken pipe|EPIPE/i.test(failure.message)
}
