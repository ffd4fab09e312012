import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { OpenSource, Source, SourceContext } from '../../model/source.ts'
import { type InputFile, openFiles, openTextFiles, type UnreadFile } from '../shared/files.ts'
import { patternsOf } from '../shared/resolve.ts'
import { CSV_OPTIONS, type CsvOptions, type Dialect, dialectOf } from './options.ts'
import { csvPart } from './part.ts'
import { lookOneByOne, type PartFile, prepareFile } from './prepare.ts'
import { chooseDelimiter } from './shape.ts'

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
  return csvSource('tsv', options, '\t')
}

function csvSource<C extends Columns>(kind: string, options: CsvOptions<C>, delimiter?: string): Source<C> {
  refuseUnknownOptions(kind, options, CSV_OPTIONS)
  const dialect = dialectOf({ ...options, delimiter: options.delimiter ?? delimiter })
  const files = patternsOf(kind, options.files)
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
  const opened =
    context.mayLookLater === true
      ? await openTextFiles({ files, encoding }, context)
      : await openFiles({ files, content: 'text', encoding }, context)
  const [first] = opened.files
  if (first === undefined) throw new StetError('STET_INTERNAL', 'No file was opened')
  const { delimiter, seen } = await chooseDelimiter(named(first), dialect, context.signal)
  const looks = lookOneByOne(context)
  try {
    const files: PartFile[] = []
    for (const file of opened.files) files.push(await prepareFile(file, dialect, delimiter, looks))
    demandSameColumns(files)
    return {
      fields: (files[0]?.names ?? []).map((name) => ({ name })),
      get files() {
        return files.flatMap((file) => file.measured()?.file ?? [])
      },
      looked: looks.done,
      parts: files.map((file) => csvPart(file, context)),
      notices:
        seen && delimiter !== ','
          ? [
              `${named(first).name} is read with the delimiter ${JSON.stringify(delimiter)}, the most frequent one in its first ` +
                `record; pin it with delimiter: ${JSON.stringify(delimiter)}`,
            ]
          : [],
      verify: opened.verify,
      [Symbol.asyncDispose]: looks[Symbol.asyncDispose],
    }
  } catch (error) {
    await looks[Symbol.asyncDispose]()
    throw error
  }
}

function named(file: InputFile | UnreadFile): { readonly name: string; readonly path: string } {
  return { name: 'file' in file ? file.file.path : file.name, path: file.path }
}

/** A file without a column would load as NULL what the others hold as values. */
function demandSameColumns(parts: readonly PartFile[]): void {
  const [first, ...others] = parts
  if (first === undefined) return
  for (const part of others) {
    const lacking = first.names.find((name) => !part.names.includes(name))
    if (lacking !== undefined) throw lacks(part, lacking, first)
    const extra = part.names.find((name) => !first.names.includes(name))
    if (extra !== undefined) throw lacks(first, extra, part)
  }
}

function lacks(part: PartFile, column: string, other: PartFile): StetError {
  const [file, otherFile] = [part.path, other.path]
  return new StetError('STET_COLUMNS', `Cannot load "${file}": it has no column "${column}"`, {
    hint: `"${otherFile}" of the same load has it; columns of "${file}": ${part.names.join(', ')}`,
    details: { file, column },
  })
}
