import { StetError } from '../errors.ts'

export const FORMATS = ['csv', 'tsv', 'json', 'ndjson', 'parquet'] as const

export type Format = (typeof FORMATS)[number]

const FORMAT_BY_EXTENSION: Readonly<Record<string, Format>> = {
  csv: 'csv',
  tsv: 'tsv',
  tab: 'tsv',
  json: 'json',
  geojson: 'json',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  parquet: 'parquet',
}

const COMPRESSED = /\.(gz|gzip|zst|zstd)$/i

/** Standard input, which has no name to tell by, is CSV unless said otherwise. */
const STANDARD_INPUT_FORMAT: Format = 'csv'

/** The format of a load's files, by their names. */
export function formatOf(files: readonly string[]): Format {
  const [first = '-', ...others] = files
  const format = formatOfOne(first)
  const other = others.find((file) => formatOfOne(file) !== format)
  if (other !== undefined) {
    throw new StetError(
      'STET_USAGE',
      `Cannot load "${first}" and "${other}" together: one is ${format}, the other not`,
      {
        hint: 'Load each format by its own command, or name the format of all with --format',
      },
    )
  }
  return format
}

function formatOfOne(file: string): Format {
  if (file === '-') return STANDARD_INPUT_FORMAT
  const extension = /\.([^./\\]+)$/.exec(file.replace(COMPRESSED, ''))?.[1]?.toLowerCase()
  const format = extension === undefined ? undefined : FORMAT_BY_EXTENSION[extension]
  if (format !== undefined) return format
  throw new StetError('STET_USAGE', `Cannot tell the format of "${file}" by its name`, {
    hint: `Name it: --format ${FORMATS.join('|')}`,
  })
}

/** A file's name without its folder, format and compression: `inbox/orders.csv.gz` → `orders`. */
export function stemOf(file: string): string {
  const name = file.replace(/^.*[/\\]/, '').replace(COMPRESSED, '')
  const [, stem, extension] = /^(.+)\.([^.]+)$/.exec(name) ?? []
  return stem !== undefined &&
    extension?.toLowerCase() !== undefined &&
    extension.toLowerCase() in FORMAT_BY_EXTENSION
    ? stem
    : name
}
