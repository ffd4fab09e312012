import type { Writable } from 'node:stream'
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
  let refusal: unknown
  // Rejects as soon as the server refuses; resolves only at the very end.
  const taken = rows.catch((error: unknown) => {
    refusal = error
    throw error
  })
  const refused = new Promise<never>((_, reject) => void taken.catch(reject))
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
    return await taken
  } catch (error) {
    const cause = refusal ?? error
    // Read on into nothing until the engine stops: one that has not opened the pipe yet would wait for a reader for ever,
    // and one that waits for room in it does not hear the interrupt.
    fifo.readEnd.unpipe(bytes)
    fifo.readEnd.resume()
    local.duckdb.interrupt()
    await written.catch(() => undefined)
    if (refusal === undefined) await failCopy(bytes, error)
    throw cause
  }
}

/** Tells the server that the data is not whole. Its answer is waited for: only then can the connection roll back. */
async function failCopy(bytes: Writable, cause: unknown): Promise<void> {
  const over = new Promise<void>((resolve) => bytes.once('close', resolve))
  bytes.destroy(cause instanceof Error ? new Error(cause.message) : new Error(String(cause)))
  await over
}
