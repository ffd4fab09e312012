import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'
import { quoteIdentifier, quotePath } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { ProgressListener } from '../../model/progress.ts'
import { describeError } from './errors.ts'
import type { QueryField } from './fields.ts'
import { findRecordEnds } from './record-ends.ts'
import type { ReadSession } from './session.ts'

// While one file is read into the local engine the next one is written, so that a read of any size needs the room of two.
const FILE_BYTES = 64 * 1024 * 1024
const WRITE_BYTES = 1024 * 1024
// DuckDB takes lines of 2 MB without being told; half of that leaves room for how it counts.
const LINE_BYTES_DEFAULT = 1_000_000
const BUFFER_BYTES_DEFAULT = 32_000_000

export interface PullOptions {
  readonly session: ReadSession
  readonly local: LocalConnection
  readonly query: string
  readonly fields: readonly QueryField[]
  readonly signal: AbortSignal
  readonly progress: ProgressListener
  readonly fileBytes?: number | undefined
}

/**
 * Brings a query's answer into a local table with the VARCHAR columns `f0`, `f1`, …, by way of files in the run's
 * folder. Ends the transaction.
 *
 * @returns The table's name.
 */
export async function pullRows(options: PullOptions): Promise<string> {
  const { session, local, fields, signal } = options
  const table = local.newName('query')
  await local.run(`create table ${table} (${fields.map((_, i) => `f${i} varchar`).join(', ')})`)
  try {
    const stream = session.copyTo(copySql(options.query, fields))
    const sent = await readStream(stream, table, options)
    await session.commit()
    const read = await local.count(`select count(*) from ${table}`)
    // A server that fails midway leaves files that read well: only its own count says that all is there.
    if (stream.rowCount !== sent || sent !== read) {
      throw new StetError(
        'STET_SOURCE',
        `Cannot read the query: PostgreSQL counts ${stream.rowCount} rows, ${sent} came, ${read} were read`,
      )
    }
    return table
  } catch (error) {
    await local.run(`drop table ${table}`)
    signal.throwIfAborted()
    throw error
  }
}

function copySql(query: string, fields: readonly QueryField[]): string {
  const quoted = fields.filter((field) => field.quoted).map((field) => quoteIdentifier(field.name))
  // Quotes keep apart what the reader would otherwise take for something else: '' from NULL, a lone \. from the end of
  // the data, a byte order mark from the file's own, a carriage return from a line end.
  const force = quoted.length === 0 ? '' : `, force_quote (${quoted.join(', ')})`
  return `copy (${query}\n) to stdout (format csv, encoding 'UTF8'${force})`
}

/** Reads the stream to its end; the number of records that came. */
async function readStream(
  stream: AsyncIterable<Uint8Array>,
  table: string,
  { local, fields, progress, fileBytes = FILE_BYTES }: PullOptions,
): Promise<number> {
  const ends = findRecordEnds()
  await using files = recordFiles(local)
  let loading: Promise<void> = Promise.resolve()
  let bytes = 0
  const load = async () => {
    const path = await files.finish()
    const longest = ends.takeLongest()
    await loading
    loading = (async () => {
      await local.run(loadSql(table, path, fields, longest))
      await rm(path)
    })()
    // Awaited later; an error must not be called unhandled until then.
    loading.catch(() => undefined)
  }
  try {
    for await (const chunk of chunksOf(stream)) {
      const end = ends.push(chunk)
      bytes += chunk.length
      if (end > 0 && files.bytes + end >= fileBytes) {
        await files.write(chunk.subarray(0, end))
        await load()
        await files.write(chunk.subarray(end))
      } else {
        await files.write(chunk)
      }
      progress({ phase: 'reading', rows: ends.records, bytes })
    }
    if (files.bytes > 0) await load()
  } finally {
    await loading
  }
  return ends.records
}

async function* chunksOf(stream: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* stream
  } catch (error) {
    throw describeError(error, 'read the query')
  }
}

interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
}

/** One file after the other in the run's folder, each written in large pieces. */
function recordFiles(local: LocalConnection) {
  let current: OpenFile | null = null
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  let bytes = 0
  const flush = async (): Promise<OpenFile> => {
    if (current === null) {
      const path = join(local.directory, `${local.newName('query')}.csv`)
      current = { path, handle: await open(path, 'wx') }
    }
    await current.handle.writeFile(Buffer.concat(pending))
    pending = []
    pendingBytes = 0
    return current
  }
  return {
    /** Of the current file. */
    get bytes() {
      return bytes
    },
    async write(chunk: Uint8Array) {
      pending.push(chunk)
      pendingBytes += chunk.length
      bytes += chunk.length
      if (pendingBytes >= WRITE_BYTES) await flush()
    },
    /** Closes the current file; its path. The next write begins another. */
    async finish(): Promise<string> {
      const { path, handle } = await flush()
      await handle.close()
      current = null
      bytes = 0
      return path
    },
    async [Symbol.asyncDispose]() {
      if (current === null) return
      await current.handle.close()
      await rm(current.path, { force: true })
    },
  }
}

function loadSql(table: string, path: string, fields: readonly QueryField[], longest: number): string {
  const columns = fields.map((_, i) => `'f${i}': 'VARCHAR'`).join(', ')
  const lineBytes = longest + 1024
  // Without a buffer to match, the reader asks for sixteen times the longest line at once.
  const limits =
    longest < LINE_BYTES_DEFAULT
      ? ''
      : `, max_line_size = ${lineBytes}, buffer_size = ${Math.max(BUFFER_BYTES_DEFAULT, 2 * lineBytes)}`
  // Several threads guess where records begin, and guess wrong where values hold line breaks and quotes.
  return `
    insert into ${table}
    select *
      from read_csv(${quotePath(path)},
             columns = {${columns}}, header = false, auto_detect = false, strict_mode = true, parallel = false,
             delim = ',', quote = '"', escape = '"', new_line = '\\n', comment = '', compression = 'none',
             nullstr = '', allow_quoted_nulls = false, hive_partitioning = false${limits})`
}
