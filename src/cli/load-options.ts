import { Command, Option } from 'commander'
import { StetError } from '../errors.ts'
import type { Source } from '../model/source.ts'
import type { WriteStrategy } from '../model/write.ts'
import type { DefinedPipeline } from '../pipeline/types.ts'
import { parseColumns, parseFields, parseNames } from './columns-option.ts'
import { FORMATS, type Format, formatOf } from './formats.ts'
import { collect, parseCount, parseNameOrNone, parseTab } from './option-values.ts'
import { tableNameFor } from './table-name.ts'
import { DEFAULT_TARGET, targetOf } from './target-option.ts'

const STRATEGIES = [
  'upsert',
  'insert-once',
  'replace-table',
] as const satisfies readonly WriteStrategy['strategy'][]

/** The options that describe a load of files; `load` and `plan` share them. */
export interface LoadOptions {
  readonly key?: string
  readonly newest?: string
  readonly into: string
  readonly table?: string
  readonly strategy: WriteStrategy['strategy']
  readonly ignore?: string
  readonly columns?: string
  readonly allowEmpty?: boolean
  readonly maxRejects?: number
  readonly nullKeys?: 'reject' | 'match'
  readonly normalizeKeys?: 'nfc'
  readonly keepUpdatedAt?: string | false
  readonly keepContentHash?: string | false
  readonly format?: Format
  readonly delimiter?: string
  readonly quote?: string
  readonly escape?: string
  readonly header?: string
  readonly skip?: number
  readonly comment?: string
  readonly encoding?: string
  readonly null?: string[]
  readonly records?: string
  readonly field?: string[]
}

export function addLoadOptions(command: Command): Command {
  return command
    .optionsGroup('What is written, and where:')
    .option('--key <columns>', 'columns that identify a row: order_ref or region,order_no')
    .option('--newest <column>', 'column that says which of two rows with one key is newer (number or time)')
    .option('--into <target>', 'postgres://… or a DuckDB file', DEFAULT_TARGET)
    .option('--table <name>', 'orders, sales.orders (default: named after the file)')
    .addOption(
      new Option('--strategy <strategy>', 'how differences are written')
        .choices(STRATEGIES)
        .default('upsert'),
    )
    .option('--ignore <columns>', 'columns that are no reason to update a row, such as the time of an export')
    .option('--columns <list>', "columns to load and their types: 'order_ref:text,amount:numeric(12,2)'")
    .option(
      '--max-rejects <rows>',
      'rows that may be left out before the load fails (default: 0)',
      parseCount,
    )
    .option('--allow-empty', 'let an empty source empty the table (replace-table)')
    .addOption(
      new Option('--null-keys <how>', 'NULL in a key: refuse the row, or match it like a value').choices([
        'reject',
        'match',
      ]),
    )
    .addOption(
      new Option('--normalize-keys <form>', 'bring text keys into one Unicode form').choices(['nfc']),
    )
    .option('--keep-updated-at <name>', 'column for the time of the last change, or none', parseNameOrNone)
    .option('--keep-content-hash <name>', 'column for the hash of the content, or none', parseNameOrNone)
    .optionsGroup('How files are read:')
    .addOption(
      new Option('--format <format>', 'by the name of the file unless given; - is csv').choices(FORMATS),
    )
    .option(
      '--delimiter <character>',
      'csv: what separates fields; \\t is a tab (default: seen in the first line)',
      parseTab,
    )
    .option('--quote <character>', "csv: what encloses fields; '' where quotes have no meaning (default: \")")
    .option(
      '--escape <character>',
      'csv: what stands before a quote within a field (default: the quote itself)',
    )
    .option('--header <names>', 'csv: the names of the columns in order, where the files have none')
    .option(
      '--skip <lines>',
      'csv: lines at the beginning of each file that are left out (default: 0)',
      parseCount,
    )
    .option('--comment <character>', 'csv: lines that begin with it are left out (default: none)')
    .option('--encoding <name>', 'utf-8, utf-16le, windows-1252, … (default: by byte order mark, else utf-8)')
    .option(
      '--null <text>',
      'csv: an unquoted field that means NULL; may be repeated (default: an empty one)',
      collect,
    )
    .option('--records <path>', 'json: where the records are, such as features or data.items')
    .option(
      '--field <name=path>',
      'json: a column found elsewhere: mag=properties.mag; may be repeated',
      collect,
    )
}

/** The flags of the options that describe a load. */
export function loadOptionFlags(): readonly string[] {
  return addLoadOptions(new Command()).options.map((option) => option.long ?? option.flags)
}

/** The pipeline that these files and options describe, and what to tell of how it was read. */
export async function pipelineOf(
  files: readonly string[],
  options: LoadOptions,
  cwd: string,
): Promise<{ readonly pipeline: DefinedPipeline; readonly notices: readonly string[] }> {
  const write = writeOf(options)
  const { table, notices } = tableOf(files, options)
  const [{ definePipeline }, source, target] = await Promise.all([
    import('../pipeline/define.ts'),
    sourceOf(files, options),
    targetOf(options.into, cwd),
  ])
  const keep = {
    ...(options.keepUpdatedAt === undefined ? {} : { updatedAt: options.keepUpdatedAt }),
    ...(options.keepContentHash === undefined ? {} : { contentHash: options.keepContentHash }),
  }
  const pipeline = definePipeline({
    name: table,
    source,
    target,
    table,
    write,
    keep,
    maxRejects: options.maxRejects,
  })
  return { pipeline, notices }
}

function writeOf(options: LoadOptions): WriteStrategy {
  const { strategy } = options
  const key = options.key === undefined ? [] : parseNames(options.key, '--key')
  if (options.allowEmpty === true && strategy !== 'replace-table') {
    throw new StetError(
      'STET_USAGE',
      `--allow-empty has no meaning with --strategy ${strategy}, which deletes nothing`,
    )
  }
  const reading = {
    newest: options.newest,
    ignore: options.ignore === undefined ? undefined : parseNames(options.ignore, '--ignore'),
    nullKeys: options.nullKeys,
    normalizeKey: options.normalizeKeys,
  }
  if (strategy === 'replace-table') {
    return { strategy, ...reading, key: key.length === 0 ? undefined : key, allowEmpty: options.allowEmpty }
  }
  if (key.length === 0) {
    throw new StetError(
      'STET_USAGE',
      `--strategy ${strategy} needs a key; without one a rerun would append every row again`,
      {
        hint: 'Name the columns that identify a row: --key order_ref. To hold exactly what the files hold: --strategy replace-table',
      },
    )
  }
  return { strategy, key, ...reading }
}

function tableOf(
  files: readonly string[],
  options: LoadOptions,
): { readonly table: string; readonly notices: readonly string[] } {
  if (options.table !== undefined) return { table: options.table, notices: [] }
  const { name, dropped } = tableNameFor(files)
  if (dropped !== '' && options.strategy === 'replace-table') {
    // Last month's file under the same name would take this month's rows away.
    throw new StetError(
      'STET_USAGE',
      `Refused to replace the table "${name}", named after "${files[0]}" without its "${dropped}"`,
      { hint: `Name the table that may be replaced: --table ${name}` },
    )
  }
  const without = dropped === '' ? '' : ` without "${dropped}"`
  return {
    table: name,
    notices:
      dropped === '' ? [] : [`table "${name}", named after ${files[0]}${without}; --table names another`],
  }
}

async function sourceOf(files: readonly string[], options: LoadOptions): Promise<Source> {
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

/** An option that would be passed over in silence is refused: the user thinks that it does something. */
function refuseForeignOptions(format: Format, options: LoadOptions): void {
  for (const [option, formats] of Object.entries(FORMATS_BY_OPTION)) {
    const given = options[option as keyof typeof FORMATS_BY_OPTION] !== undefined
    if (given && !(formats as readonly Format[]).includes(format)) {
      throw new StetError('STET_USAGE', `--${option} has no meaning for ${format} files`, {
        hint: `It is for ${formats.join(', ')}`,
      })
    }
  }
}
