import { StetError } from '../../errors.ts'
import { parseColumnType } from '../../model/column-type.ts'
import type { Columns } from '../../model/columns.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { OpenSource, Reject, Source, SourceContext } from '../../model/source.ts'
import { createTextTable, rowAsJson, rowsAt, type TextTable } from '../shared/text-table.ts'
import { forEach, IterationError } from './iterate.ts'
import { type RowValue, textOfValue, whyRefused } from './value.ts'

export type { RowValue } from './value.ts'

/** A row with a value for each declared column; a missing or misspelt property does not compile. */
export type Row<C extends Columns = Columns> = { readonly [Name in keyof C]: RowValue }

/** Rows, or batches of rows, one after the other. */
export type Rows<C extends Columns = Columns> =
  | Iterable<Row<C> | readonly Row<C>[]>
  | AsyncIterable<Row<C> | readonly Row<C>[]>

export interface RowsOptions<C extends Columns> {
  /** What the run log calls the source. Default `rows`. */
  readonly name?: string | undefined
  /** Every column that the rows have, with its type. */
  readonly columns: C
  /** Called once in a run, and read once to its end. */
  readonly rows: () => Rows<C>
}

/**
 * A source of rows that a program makes: pages of an API, a generator, an array.
 *
 * Strings are taken as they are, so anything that JavaScript cannot hold exactly goes as a string or a bigint.
 * `undefined` is NULL. Nothing is loaded when the iteration throws.
 *
 * @example
 * rows({
 *   name: 'rates of the bank',
 *   columns: { day: 'date', rate: 'numeric(12,6)' },
 *   rows: async function* () {
 *     for (const day of await fetchDays()) yield { day: day.iso, rate: day.rate }
 *   },
 * })
 */
export function rows<const C extends Columns>(options: RowsOptions<C>): Source<C> {
  refuseUnknownOptions('rows', options, { name: true, columns: true, rows: true })
  const name = options.name ?? 'rows'
  return {
    kind: 'rows',
    columns: options.columns,
    description: name,
    open: (context) => openRows(name, options.columns, options.rows, context),
  }
}

async function openRows(
  name: string,
  columns: Columns,
  iterate: () => Rows,
  context: SourceContext,
): Promise<OpenSource> {
  const names = Object.keys(columns)
  if (names.length === 0) {
    throw new StetError('STET_CONFIG', `Cannot read ${name}: it declares no columns`, {
      hint: "Name them with their types: columns: { id: 'bigint', name: 'text' }",
    })
  }
  if (typeof iterate !== 'function') {
    throw new StetError('STET_CONFIG', `Cannot read ${name}: rows is no function`, {
      hint: 'Give a function that returns the rows, since each run reads them once: rows: () => orders',
    })
  }
  const table = await createTextTable(context.local, names.length)
  try {
    const reader = rowReader(name, columns, table)
    await readRows(name, iterate, reader.read, table, context)
    await table.finish()
    const position = new Map(names.map((column, i) => [column, i]))
    return {
      fields: names.map((column) => ({ name: column })),
      files: [],
      parts: [
        {
          file: null,
          select: (wanted) => table.select(wanted.map((column) => position.get(column))),
          rejects: async () => reader.rejects,
          locate: async (numbers) => {
            const values = await rowsAt(context.local, table.name, numbers)
            const records = table.recordsOf(numbers)
            return values.map((row, i) => ({ line: records[i] ?? 0, raw: rowAsJson(names, row) }))
          },
        },
      ],
      verify: async () => undefined,
      [Symbol.asyncDispose]: () => table.drop(),
    }
  } catch (error) {
    await table.drop()
    throw error
  }
}

/** Takes rows one by one into the table, or notes why one does not go in. */
function rowReader(name: string, columns: Columns, table: TextTable) {
  const names = Object.keys(columns)
  const floating = names.map((column) => isFloatingPoint(columns[column] ?? ''))
  const rejects: Reject[] = []
  let row = 0
  const read = (given: Row) => {
    row++
    refuseWhatIsNoRow(name, row, given, columns)
    const texts: (string | null)[] = []
    for (let i = 0; i < names.length; i++) {
      const column = names[i] ?? ''
      const value = given[column]
      const text = textOfValue(value, floating[i] ?? false)
      if (text === undefined) {
        if (typeof value !== 'string' && typeof value !== 'number') throw noValue(name, row, column, value)
        const reason = whyRefused(value)
        rejects.push({ file: null, line: row, column, value: String(value).toWellFormed(), reason })
        table.skip()
        return
      }
      texts.push(text)
    }
    table.append(texts)
  }
  return { read, rejects }
}

function isFloatingPoint(type: string): boolean {
  const { kind } = parseColumnType(type)
  return kind === 'real' || kind === 'double'
}

function refuseWhatIsNoRow(name: string, row: number, given: unknown, columns: Columns): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given) || given instanceof Date) {
    throw new StetError(
      'STET_SOURCE',
      `Cannot read row ${row} of ${name}: it is ${kindOf(given)}, no object`,
      {
        hint: 'Give objects with a property for each column, or arrays of such objects',
        details: { row },
      },
    )
  }
  for (const property in given) {
    if (Object.hasOwn(columns, property)) continue
    throw new StetError(
      'STET_COLUMNS',
      `Cannot read row ${row} of ${name}: its property "${property}" is no declared column`,
      {
        hint: `Declare it in columns, or leave it out; declared are ${Object.keys(columns).join(', ')}`,
        details: { row, property },
      },
    )
  }
}

function noValue(name: string, row: number, column: string, value: unknown): StetError {
  return new StetError('STET_SOURCE', `Cannot read row ${row} of ${name}: "${column}" is ${kindOf(value)}`, {
    hint:
      value instanceof Date
        ? 'A Date has no microseconds and no zone: give ISO 8601 text, such as date.toISOString()'
        : 'Give a string, number, bigint, boolean or null; for a JSON column its text',
    details: { row, column },
  })
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return 'a Date'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

async function readRows(
  name: string,
  iterate: () => Rows,
  read: (row: Row) => void,
  table: TextTable,
  { signal, progress }: SourceContext,
): Promise<void> {
  const write = async () => {
    await table.write()
    signal.throwIfAborted()
    progress({ phase: 'reading', rows: table.rows })
  }
  const take = (row: Row) => {
    read(row)
    return table.full ? write() : undefined
  }
  const takeBatch = async (batch: readonly Row[]) => {
    for (const row of batch) {
      const taken = take(row)
      if (taken !== undefined) await taken
    }
  }
  try {
    await forEach(iterate, signal, (item) => (isBatch(item) ? takeBatch(item) : take(item)))
  } catch (error) {
    if (!(error instanceof IterationError)) throw error
    const { cause } = error
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StetError('STET_SOURCE', `Cannot read ${name}: it failed after ${table.rows} rows: ${reason}`, {
      details: { rows: table.rows },
      cause,
    })
  }
}

function isBatch(item: Row | readonly Row[]): item is readonly Row[] {
  return Array.isArray(item)
}
