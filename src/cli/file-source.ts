import { StetError } from '../errors.ts'
import type { Source } from '../model/source.ts'
import { parseColumns, parseFields, parseNames } from './columns-option.ts'
import { type Format, formatOf } from './formats.ts'
import type { LoadOptions } from './load-options.ts'

/** Whatever today's files are called: a load is known by its table. */
export async function sourceOf(files: readonly string[], options: LoadOptions): Promise<Source> {
  return { ...(await fileSource(files, options)), identity: 'the files of the command line' }
}

async function fileSource(files: readonly string[], options: LoadOptions): Promise<Source> {
  const format = options.format ?? formatOf(files)
  refuseForeignOptions(format, options)
  const columns = options.columns === undefined ? undefined : parseColumns(options.columns)
  switch (format) {
    case 'csv':
    case 'tsv': {
      const { csv, tsv } = await import('../sources/csv/index.ts')
      const { delimiter, quote, escape: escapeCharacter, skip, comment, encoding, null: nullTexts } = options
      const header = options.header === undefined ? undefined : parseNames(options.header, '--header')
      return (format === 'csv' ? csv : tsv)({
        files,
        columns,
        delimiter,
        quote,
        escape: escapeCharacter,
        header,
        skip,
        comment,
        encoding,
        nullTexts,
        repeatedHeader: options.repeatedHeader,
      })
    }
    case 'json':
    case 'ndjson': {
      const { json } = await import('../sources/json/index.ts')
      return json({
        files,
        columns,
        format,
        records: options.records,
        fields: parseFields(options.field),
        encoding: options.encoding,
      })
    }
    case 'parquet': {
      const { parquet } = await import('../sources/parquet/index.ts')
      return parquet({ files, columns })
    }
    default:
      return format satisfies never
  }
}

const FORMATS_BY_OPTION = {
  delimiter: ['csv', 'tsv'],
  repeatedHeader: ['csv', 'tsv'],
  quote: ['csv', 'tsv'],
  escape: ['csv', 'tsv'],
  header: ['csv', 'tsv'],
  skip: ['csv', 'tsv'],
  comment: ['csv', 'tsv'],
  null: ['csv', 'tsv'],
  encoding: ['csv', 'tsv', 'json', 'ndjson'],
  records: ['json'],
  field: ['json', 'ndjson'],
} as const satisfies Partial<Record<keyof LoadOptions, readonly Format[]>>

function inKebab(option: string): string {
  return option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** An option that would be passed over in silence is refused: the user thinks that it does something. */
function refuseForeignOptions(format: Format, options: LoadOptions): void {
  for (const [option, formats] of Object.entries(FORMATS_BY_OPTION)) {
    const given = options[option as keyof typeof FORMATS_BY_OPTION] !== undefined
    if (given && !(formats as readonly Format[]).includes(format)) {
      throw new StetError('STET_USAGE', `--${inKebab(option)} has no meaning for ${format} files`, {
        hint: `It is for ${formats.join(', ')}`,
      })
    }
  }
}
