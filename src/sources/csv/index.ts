import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'
import type { OpenSource, Source, SourceContext } from '../../model/source.ts'
import { type InputFile, openFiles } from '../shared/files.ts'
import { copyRecords } from './copy.ts'
import type { Layout } from './layout.ts'
import { type Measured, measure } from './measure.ts'
import { type CsvOptions, type Dialect, dialectOf } from './options.ts'
import { csvPart, type PartOptions } from './part.ts'
import { chooseDelimiter, lineEndOf, shapeOf } from './shape.ts'

export type { CsvOptions } from './options.ts'

/**
 * Rows from CSV files. Columns are matched by the names in each file's header, whatever their order.
 *
 * An empty field is NULL, `""` is the empty text. Everything that cannot be read for sure is a reject or refuses
 * the file: `docs/reading-files.md` says what.
 *
 * @throws {StetError} `STET_CONFIG` for options that contradict each other.
 * @example
 * csv({ files: 'exports/orders-*.csv.gz', columns: { order_ref: 'text', amount: 'numeric(12,2)' } })
 */
export function csv<const C extends Columns = Columns>(options: CsvOptions<C>): Source<C> {
  return csvSource('csv', options)
}

/** Rows from files whose fields stand between tabs; otherwise as {@link csv}. */
export function tsv<const C extends Columns = Columns>(options: CsvOptions<C>): Source<C> {
  return csvSource('tsv', { ...options, delimiter: options.delimiter ?? '\t' })
}

function csvSource<C extends Columns>(kind: string, options: CsvOptions<C>): Source<C> {
  const dialect = dialectOf(options)
  const files = typeof options.files === 'string' ? [options.files] : options.files
  return {
    kind,
    columns: options.columns,
    description: `${kind} ${files.join(', ')}`,
    open: (context) => openCsv(files, options.encoding, dialect, context),
  }
}

async function openCsv(
  files: readonly string[],
  encoding: string | undefined,
  dialect: Dialect,
  context: SourceContext,
): Promise<OpenSource> {
  const opened = await openFiles({ files, content: 'text', encoding }, context)
  const [first] = opened.files
  if (first === undefined) throw new StetError('STET_INTERNAL', 'No file was opened')
  const { delimiter, seen } = await chooseDelimiter(
    { name: first.file.path, path: first.path },
    dialect,
    context.signal,
  )
  const parts: PartOptions[] = []
  for (const file of opened.files) parts.push(await prepare(file, dialect, delimiter, context))
  demandSameColumns(parts)
  return {
    fields: (parts[0]?.names ?? []).map((name) => ({ name })),
    files: opened.files.map(({ file }) => file),
    parts: parts.map((part) => csvPart(part, context)),
    notices:
      seen && delimiter !== ','
        ? [
            `${first.file.path} is read with the delimiter ${JSON.stringify(delimiter)}, the most frequent one in its first ` +
              `record; pin it with delimiter: ${JSON.stringify(delimiter)}`,
          ]
        : [],
    verify: opened.verify,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** Measures a file, and copies what DuckDB would not read as we do. */
async function prepare(
  input: InputFile,
  dialect: Dialect,
  delimiter: string,
  context: SourceContext,
): Promise<PartOptions> {
  const shape = shapeOf(dialect, [delimiter], await lineEndOf(input.path, dialect, [delimiter]))
  const file = {
    name: input.file.path,
    path: input.path,
    isUtf8: input.invalidUtf8At === null,
  }
  const measured = await measure(file, shape, dialect.header, context.signal)
  return {
    file: input.file,
    original: measured.layout,
    readable: measured.plain ? await inPlace(measured.layout, context) : await copied(measured, context),
    names: measured.names,
    records: measured.records,
    longest: measured.longest,
    splittable: measured.splittable,
    dialect,
    delimiter,
  }
}

/** DuckDB takes `orders[1].csv` for a pattern, so such a file is read by another name. */
async function inPlace(layout: Layout, context: SourceContext): Promise<Layout> {
  if (!/[*?[\]{}\\]/.test(layout.path)) return layout
  const path = join(context.local.directory, context.local.newName('link'))
  await symlink(layout.path, path)
  return { ...layout, path }
}

async function copied(measured: Measured, context: SourceContext): Promise<Layout> {
  const shape = { ...measured.layout.shape, lineEnd: 'lf', skip: 0, comment: null } as const
  return {
    ...measured.layout,
    path: await copyRecords(measured, context),
    shape,
    hasHeader: false,
    isUtf8: true,
  }
}

/** A file without a column would load as NULL what the others hold as values. */
function demandSameColumns(parts: readonly PartOptions[]): void {
  const [first, ...others] = parts
  if (first === undefined) return
  for (const part of others) {
    const lacking = first.names.find((name) => !part.names.includes(name))
    if (lacking !== undefined) throw lacks(part, lacking, first)
    const extra = part.names.find((name) => !first.names.includes(name))
    if (extra !== undefined) throw lacks(first, extra, part)
  }
}

function lacks(part: PartOptions, column: string, other: PartOptions): StetError {
  const [file, otherFile] = [part.file.path, other.file.path]
  return new StetError('STET_COLUMNS', `Cannot load "${file}": it has no column "${column}"`, {
    hint: `"${otherFile}" of the same load has it; columns of "${file}": ${part.names.join(', ')}`,
    details: { file, column },
  })
}
