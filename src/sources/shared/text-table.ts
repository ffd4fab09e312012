import { setImmediate } from 'node:timers/promises'
import { type DuckDBAppender, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api'
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
  /** Notes that the next record of the source is not among the rows. */
  skip(): void
  /** Whether enough is buffered to be written out. Not done by `append`: a promise for each row costs more than the row. */
  readonly full: boolean
  write(): Promise<void>
  /** Writes out the rest. Nothing may be appended afterwards. */
  finish(): Promise<void>
  /** Gives the table up, whatever state it is in. */
  drop(): Promise<void>
  /** The select of a {@link SourcePart}: columns by position, null for a column that the table lacks. */
  select(positions: readonly (number | undefined)[]): string
  /** For rows of the table, 1-based and ascending: which record of the source each is, skipped ones counted. */
  recordsOf(rows: readonly number[]): readonly number[]
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
  // One chunk again and again: new ones wait for the garbage collector, which does not see how large they are.
  let chunk: DuckDBDataChunk | null = null
  let rowsWritten = 0
  let rowsBuffered = 0
  let characters = 0
  // How many rows stood before each skipped record.
  const skippedAfter: number[] = []

  const makeColumns = async () => {
    while (columnsMade < buffers.length) {
      // An appender holds on to the columns that its table had.
      appender?.closeSync()
      appender = null
      chunk = null
      await local.run(`alter table ${name} add column f${columnsMade++} varchar`)
    }
  }

  const write = async () => {
    if (rowsBuffered === 0) return
    await makeColumns()
    appender ??= await local.duckdb.createAppender(name)
    chunk ??= DuckDBDataChunk.create(Array.from({ length: columnsMade }, () => VARCHAR))
    chunk.reset()
    chunk.setColumns(buffers.length === 0 ? [Array.from({ length: rowsBuffered }, () => null)] : buffers)
    appender.appendDataChunk(chunk)
    rowsWritten += rowsBuffered
    rowsBuffered = 0
    characters = 0
    for (let i = 0; i < buffers.length; i++) buffers[i] = []
    // Everything above runs without giving way: signals and timers would wait until the end of the source.
    await setImmediate()
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
    skip() {
      skippedAfter.push(rowsWritten + rowsBuffered)
    },
    get full() {
      return rowsBuffered >= CHUNK_ROWS || characters >= CHUNK_CHARACTERS
    },
    write,
    async finish() {
      await write()
      // A column that only a refused record had is there as well, or nobody could select it.
      await makeColumns()
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
      return `select ${columns.join(', ')} from ${name}`
    },
    recordsOf(rows) {
      let skipped = 0
      return rows.map((row) => {
        while (skipped < skippedAfter.length && (skippedAfter[skipped] ?? 0) < row) skipped++
        return row + skipped
      })
    },
  }
}

/** The values of some rows of a local table, 1-based and ascending; for messages, not for loading. */
export async function rowsAt(
  local: LocalConnection,
  table: string,
  rows: readonly number[],
): Promise<readonly (readonly (string | null)[])[]> {
  if (rows.length === 0) return []
  const numbers = rows.map((row) => row - 1).join(', ')
  const reader = await local.duckdb.runAndReadAll(
    `select * from ${table} where rowid in (${numbers}) order by rowid`,
  )
  return reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))))
}

/** A row as people may look at it. */
export function rowAsJson(names: readonly string[], values: readonly (string | null)[]): string {
  return JSON.stringify(Object.fromEntries(names.map((name, i) => [name, values[i] ?? null])))
}
