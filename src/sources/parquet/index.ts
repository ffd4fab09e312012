import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { OpenSource, Source, SourceContext, SourceField, SourcePart } from '../../model/source.ts'
import { type InputFile, openFiles } from '../shared/files.ts'
import { patternsOf } from '../shared/resolve.ts'
import { rowAsJson } from '../shared/text-table.ts'
import type { Loss } from './loss.ts'
import { type ParquetColumn, readSchema, relationOf } from './schema.ts'

export interface ParquetOptions<C extends Columns> {
  /** Paths and patterns such as `exports/*.parquet`; `-` is standard input. */
  readonly files: string | readonly string[]
  /** Default: the target's columns, and the files' own for a table that does not exist yet. */
  readonly columns?: C | undefined
}

/**
 * A source of Parquet files. Columns are matched by name; a wanted one that a file does not have is refused.
 *
 * @example
 * parquet({ files: 'exports/flights-*.parquet' })
 */
export function parquet<const C extends Columns = Columns>(options: ParquetOptions<C>): Source<C> {
  refuseUnknownOptions('parquet', options, { files: true, columns: true })
  const patterns = patternsOf('parquet', options.files)
  return {
    kind: 'parquet',
    columns: options.columns,
    description: patterns.join(', '),
    open: (context) => openParquet(patterns, context),
  }
}

async function openParquet(patterns: readonly string[], context: SourceContext): Promise<OpenSource> {
  const opened = await openFiles({ files: patterns, content: 'bytes' }, context)
  const parts: { readonly input: InputFile; readonly columns: readonly ParquetColumn[] }[] = []
  for (const input of opened.files) {
    context.signal.throwIfAborted()
    parts.push({ input, columns: await readSchema(context.local, input) })
  }
  return {
    fields: fieldsOf(parts.map(({ columns }) => columns)),
    files: opened.files.map(({ file }) => file),
    parts: parts.map(({ input, columns }) => partOf(context.local, input, columns)),
    notices: parts.flatMap(({ input, columns }) =>
      columns
        .filter(({ int96 }) => int96)
        .map(
          ({ name }) =>
            `Column "${name}" of ${input.file.path} is stored as INT96: what it may hold below the microsecond is not read`,
        ),
    ),
    verify: opened.verify,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** The columns of all files, with a type where all that have the column agree on it. */
function fieldsOf(parts: readonly (readonly ParquetColumn[])[]): readonly SourceField[] {
  const fields = new Map<string, SourceField>()
  for (const { name, type } of parts.flat()) {
    const known = fields.get(name)
    const agreed = known === undefined || JSON.stringify(known.type) === JSON.stringify(type)
    fields.set(name, agreed ? { name, type } : { name })
  }
  return [...fields.values()]
}

function partOf(local: LocalConnection, input: InputFile, columns: readonly ParquetColumn[]): SourcePart {
  const { file } = input
  return {
    file,
    select: (wanted) => {
      const values = wanted.map((name, i) => {
        const column = columns.find((candidate) => candidate.name === name)
        if (column === undefined) throw noColumn(file.path, name, columns)
        if (column.loss !== null) throw losesValues(file.path, name, column.loss)
        return `${column.text(column.local)} as c${i}`
      })
      return `select ${values.join(', ')} from ${relationOf(input)}`
    },
    rejects: async () => [],
    locate: async (rows) => {
      // A column of that name is the file's own, and then there is no asking for row numbers.
      if (rows.length === 0 || columns.some(({ name }) => name.toLowerCase() === 'file_row_number')) {
        return rows.map((line) => ({ line, raw: '' }))
      }
      const names = columns.map(({ name }) => name)
      const texts = columns.map((column) => column.text(column.local))
      const reader = await local.duckdb.runAndReadAll(`
        select ${texts.join(', ')}
          from ${relationOf(input, ', file_row_number = true')}
         where file_row_number in (${rows.map((row) => row - 1).join(', ')})
         order by file_row_number`)
      const found = reader.getRows().map((row) => row.map((value) => value as string | null))
      return found.map((values, i) => ({ line: rows[i] ?? 0, raw: rowAsJson(names, values) }))
    },
  }
}

function noColumn(path: string, name: string, columns: readonly ParquetColumn[]): StetError {
  return new StetError('STET_COLUMNS', `Cannot read "${path}": it has no column "${name}"`, {
    hint: `It has ${columns.map((column) => column.name).join(', ')}; names must match exactly`,
    details: { file: path, column: name },
  })
}

function losesValues(path: string, name: string, { reason, cure }: Loss): StetError {
  return new StetError('STET_SOURCE', `Cannot read "${path}": its column "${name}" ${reason}`, {
    hint: `${cure}, or leave the column out`,
    details: { file: path, column: name },
  })
}
