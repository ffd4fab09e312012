import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { StetError } from '../../errors.ts'
import { quoteLiteral, quotePath } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Connection } from './connection.ts'
import { makeWritableFifo } from './fifo.ts'

/** One column of what the server sends, and what the local table makes of it. */
export interface PulledColumn {
  /** The local name. */
  readonly id: string
  /** As which the reader takes the field: the local type where the server's text of it is one, else VARCHAR. */
  readonly readAs: string
  /** Of {@link id}, in the local engine. */
  readonly value: string
  /** Whether a value is one that the local type cannot hold, in the local engine; null where it can hold all. */
  readonly unheld: string | null
}

export interface Pulled {
  readonly table: string
  readonly rows: number
  readonly unheld: readonly string[]
}

/**
 * Brings the answer of a query into a local table, through a pipe: the engine reads what the server is still sending. The
 * query's first column must be a constant: the reader takes a byte order mark off the first field, and an all-NULL row of
 * one column is a blank line.
 *
 * In COPY's text format a newline is always the end of a row, and what is special inside a value is escaped. As CSV the
 * same rows could not be read by several threads: a value that itself looks like CSV makes the engine's parallel reader
 * begin in the middle of it, and lose or invent rows without an error.
 *
 * @param query Gives the constant and the columns, in order.
 */
export async function pullRows(
  connection: Connection,
  local: LocalConnection,
  query: string,
  columns: readonly PulledColumn[],
): Promise<Pulled> {
  const table = local.newName('pulled')
  const piped = await pullThroughPipe(connection, local, table, query, columns)
  const sent =
    piped.failure === null
      ? piped.sent
      : await pullThroughFile(connection, local, table, query, columns, limitsFor(piped))
  const read = await local.count(`select count(*) from ${table}`)
  // A server that fails midway leaves a stream that reads well; only its own count says that it is whole.
  if (read !== sent) {
    throw new StetError('STET_INTERNAL', `PostgreSQL sent ${sent} rows, but ${read} were read`)
  }
  return { table, rows: read, unheld: await takeUnheld(local, table, columns) }
}

interface Piped {
  /** Rows, by the server's own count. */
  readonly sent: number
  /** Bytes of the longest line. */
  readonly longest: number
  /** Why the engine could not read them, or null. */
  readonly failure: unknown
}

/** What the reader needs for lines over 2 MB, where those were its difficulty. */
function limitsFor({ failure, longest }: Piped): string {
  if (!(failure instanceof Error) || !/max(imum)?[ _]line[ _]size/i.test(failure.message)) throw failure
  const bytes = longest + 1024
  // Without a buffer to match, the reader would ask for sixteen lines' room at once.
  return `, max_line_size = ${bytes}, buffer_size = ${2 * bytes}`
}

async function pullThroughPipe(
  connection: Connection,
  local: LocalConnection,
  table: string,
  query: string,
  columns: readonly PulledColumn[],
): Promise<Piped> {
  await using pipe = await makeWritableFifo(local)
  let failure: unknown = null
  let isRead = false
  const read = local
    .run(readSqlOf(table, pipe.path, columns, ''))
    .catch((error: unknown) => {
      failure = error
    })
    .finally(() => {
      isRead = true
    })
  const writeEnd = await pipe.openWriteEnd(() => isRead)
  const { bytes, rows } = connection.copyTo(`copy (${query}) to stdout (format text)`)
  const lines = lineMeter()
  bytes.on('data', lines.look)
  // What fails is told by the promises of the two statements.
  bytes.on('error', () => writeEnd?.destroy())
  if (writeEnd !== null) {
    bytes.pipe(writeEnd)
    // A reader that has given up: the rest goes on into nothing, for only after it does the server take another statement.
    writeEnd.on('error', () => bytes.unpipe(writeEnd).resume())
  }
  try {
    const sent = await rows
    await read
    return { sent, longest: lines.longest(), failure }
  } finally {
    // When the server fails, the engine is still waiting for rows.
    writeEnd?.destroy()
    await read
  }
}

/** By way of a file, which the engine can read in pieces as large as its lines. */
async function pullThroughFile(
  connection: Connection,
  local: LocalConnection,
  table: string,
  query: string,
  columns: readonly PulledColumn[],
  limits: string,
): Promise<number> {
  const file = join(local.directory, `${local.newName('pull')}.csv`)
  try {
    const { bytes, rows } = connection.copyTo(`copy (${query}) to stdout (format text)`)
    const [sent] = await Promise.all([rows, pipeline(bytes, createWriteStream(file))])
    await local.run(readSqlOf(table, file, columns, limits))
    return sent
  } finally {
    await rm(file, { force: true })
  }
}

function readSqlOf(table: string, file: string, columns: readonly PulledColumn[], limits: string): string {
  const fields = [['lead', 'VARCHAR'], ...columns.map(({ id, readAs }) => [id, readAs])]
  const types = fields.map(([id, type]) => `'${id}': ${quoteLiteral(type ?? '')}`)
  const values = columns.map((column) => `${unescaped(column)} as ${column.id}`)
  const flags = columns
    .filter(({ unheld }) => unheld !== null)
    .map(({ id, unheld }) => `${unheld} as unheld_${id}`)
  return `
    create or replace table ${table} as
    select ${[...values, ...flags].join(', ')}
      from read_csv(${quotePath(file)},
             columns = {${types.join(', ')}}, header = false, auto_detect = false, strict_mode = true,
             delim = '\t', quote = '', escape = '', new_line = '\\n', comment = '', nullstr = '\\N',
             compression = 'none', hive_partitioning = false${limits})`
}

/** A value as it was before COPY escaped it; only text can hold what is escaped. */
function unescaped({ id, readAs, value }: PulledColumn): string {
  return readAs === 'VARCHAR' && value === id ? unescapedSql(id) : value
}

/** What COPY's text format writes for characters that would end a field or a row. */
const ESCAPES = [
  ['b', 8],
  ['f', 12],
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['v', 11],
] as const

/** Undoes COPY's escapes. An escaped backslash is taken out first, so that what follows it is not taken for an escape. */
function unescapedSql(id: string): string {
  const part = ESCAPES.reduce((sql, [letter, code]) => `replace(${sql}, '\\${letter}', chr(${code}))`, 'part')
  const whole = `array_to_string(list_transform(string_split(${id}, '\\\\'), lambda part: ${part}), '\\')`
  return `case when contains(${id}, '\\') then ${whole} else ${id} end`
}

/** Which columns hold something that the local type cannot; the flags are taken off the table. */
async function takeUnheld(
  local: LocalConnection,
  table: string,
  columns: readonly PulledColumn[],
): Promise<readonly string[]> {
  const flagged = columns.filter(({ unheld }) => unheld !== null)
  if (flagged.length === 0) return []
  const sums = flagged.map(({ id }) => `coalesce(bool_or(unheld_${id}), false) as ${id}`)
  const [found] = await local.rows(`select ${sums.join(', ')} from ${table}`)
  for (const { id } of flagged) await local.run(`alter table ${table} drop column unheld_${id}`)
  return flagged.filter(({ id }) => found?.[id] === true).map(({ id }) => id)
}

const NEWLINE = 0x0a

/** Measures lines that are cut into blocks anywhere; only ones that are too long for the reader matter. */
function lineMeter(): { look(block: Buffer): void; longest(): number } {
  let longest = 0
  // Bytes of the line that the last block ended in.
  let open = 0
  return {
    look: (block) => {
      const first = block.indexOf(NEWLINE)
      if (first === -1) {
        open += block.length
        return
      }
      // Between two newlines of one block no line is longer than the block.
      longest = Math.max(longest, open + first + 1, block.length)
      open = block.length - 1 - block.lastIndexOf(NEWLINE)
    },
    longest: () => Math.max(longest, open),
  }
}
