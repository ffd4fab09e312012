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
  { select, into, freeze = false }: PushOptions,
): Promise<number> {
  const lines = await linesSql(local, select)
  await using fifo = await makeFifo(local)
  const { bytes, rows } = connection.copyFrom(
    `copy ${into} from stdin (format text${freeze ? ', freeze' : ''})`,
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
    `copy (${lines}) to ${quoteLiteral(fifo.path)}
      (format csv, header false, delimiter '\t', quote '', escape '', nullstr '\\N')`,
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

/**
 * The rows in the form of COPY's text format, which costs the server an eighth less than CSV, and in which no row can be
 * taken for the end of the data: what is special there is escaped in the texts beforehand.
 */
async function linesSql(local: LocalConnection, select: string): Promise<string> {
  const columns = await local.rows(`describe ${select}`)
  const names = columns.map((_, position) => `f${position}`)
  const fields = columns.map(({ column_type: type }, position) => fieldSql(`f${position}`, String(type)))
  return `select ${fields.join(', ')} from (${select}) as rows (${names.join(', ')})`
}

function fieldSql(name: string, type: string): string {
  switch (type) {
    case 'VARCHAR':
      return `case when contains(${name}, '\\') or contains(${name}, chr(10)) or contains(${name}, chr(9)) or contains(${name}, chr(13))
        then replace(replace(replace(replace(${name}, '\\', '\\\\'), chr(10), '\\n'), chr(9), '\\t'), chr(13), '\\r')
        else ${name} end`
    case 'TIMESTAMP WITH TIME ZONE':
      // The cast to text looks every value up in the time zone's history, which for UTC there is none of.
      return `case when isfinite(${name}) then make_timestamp(epoch_us(${name}))::varchar || '+00' else ${name}::varchar end`
    default:
      return name
  }
}

/** Tells the server that the data is not whole. Its answer is waited for: only then can the connection roll back. */
async function failCopy(bytes: Writable, cause: unknown): Promise<void> {
  const over = new Promise<void>((resolve) => bytes.once('close', resolve))
  bytes.destroy(cause instanceof Error ? new Error(cause.message) : new Error(String(cause)))
  await over
}
