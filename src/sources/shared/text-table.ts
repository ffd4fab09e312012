import { type DuckDBAppender, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api'
import { quoteIdentifier } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'

/** Rows of text on their way into a local table whose columns, `f0`, `f1`, …, are all VARCHAR. */
export interface TextTable {
  readonly name: string
  /** Rows appended so far. */
  readonly rows: number
  /** One more column, null in the rows before; its position. */
  addColumn(): number
  /** Appends a row; what is missing at its end is null. */
  append(values: readonly (string | null)[]): void
  /** Writes out what is buffered when there is enough of it. To be awaited between rows. */
  settle(): Promise<void>
  /** Writes out the rest. Nothing may be appended afterwards. */
  finish(): Promise<void>
  /** Gives the table up, whatever state it is in. */
  drop(): Promise<void>
  /** The select of a {@link SourcePart}: columns by position, null for a column that the table lacks. */
  select(positions: readonly (number | undefined)[]): string
}

// The size of DuckDB's own vectors; whole chunks were four times as fast as value by value.
const CHUNK_ROWS = 2048
// A chunk of long values is written out before it is full: 2048 documents of 10 MB would be 20 GB.
const CHUNK_CHARACTERS = 16_000_000

/** Makes an empty table for rows of text. */
export async function createTextTable(local: LocalConnection, columns = 0): Promise<TextTable> {
  const name = local.newName('text')
  const buffers: (string | null)[][] = Array.from({ length: columns }, () => [])
  // DuckDB has no table without columns.
  let columnsMade = Math.max(columns, 1)
  await local.run(
    `create table ${name} (${Array.from({ length: columnsMade }, (_, i) => `f${i} varchar`).join(', ')})`,
  )
  let appender: DuckDBAppender | null = null
  let rowsWritten = 0
  let rowsBuffered = 0
  let characters = 0

  const write = async () => {
    if (rowsBuffered === 0) return
    while (columnsMade < buffers.length) {
      // An appender holds on to the columns that its table had.
      appender?.closeSync()
      appender = null
      await local.run(`alter table ${name} add column f${columnsMade++} varchar`)
    }
    appender ??= await local.duckdb.createAppender(name)
    const width = Math.max(buffers.length, 1)
    const chunk = DuckDBDataChunk.create(
      Array.from({ length: width }, () => VARCHAR),
      rowsBuffered,
    )
    chunk.setColumns(
      buffers.length === 0 ? [Array.from({ length: rowsBuffered }, () => null)] : buffers,
    )
    appender.appendDataChunk(chunk)
    rowsWritten += rowsBuffered
    rowsBuffered = 0
    characters = 0
    for (let i = 0; i < buffers.length; i++) buffers[i] = []
  }

  return {
    name,
    get rows() {
      return rowsWritten + rowsBuffered
    },
    addColumn() {
      buffers.push(Array.from({ length: rowsBuffered }, () => null))
      return buffers.length - 1
    },
    append(values) {
      for (let i = 0; i < buffers.length; i++) {
        const value = values[i] ?? null
        if (value !== null) characters += value.length
        buffers[i]?.push(value)
      }
      rowsBuffered++
    },
    async settle() {
      if (rowsBuffered >= CHUNK_ROWS || characters >= CHUNK_CHARACTERS) await write()
    },
    async finish() {
      await write()
      appender?.closeSync()
      appender = null
    },
    async drop() {
      appender?.closeSync()
      appender = null
      await local.run(`drop table if exists ${name}`)
    },
    select(positions) {
      const columns = positions.map((position, i) =>
        position === undefined ? `null::varchar as c${i}` : `f${position} as c${i}`,
      )
      return `select ${columns.join(', ')} from ${quoteIdentifier(name)}`
    },
  }
}
