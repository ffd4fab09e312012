import { Command, Option } from 'commander'
import { StetError } from '../errors.ts'
import type { SliceSize } from '../model/slice.ts'
import type { Source } from '../model/source.ts'
import type { Missing, WriteStrategy } from '../model/write.ts'
import type { DefinedPipeline, Incremental, Pipeline } from '../pipeline/types.ts'
import { parseColumns, parseFields, parseNames } from './columns-option.ts'
import { FORMATS, type Format, formatOf } from './formats.ts'
import {
  collect,
  parseCount,
  parseGrace,
  parseNameOrNone,
  parseSliceSize,
  parseTab,
} from './option-values.ts'
import { tableNameFor } from './table-name.ts'
import { DEFAULT_TARGET, targetOf } from './target-option.ts'

const STRATEGIES = [
  'upsert',
  'insert-once',
  'replace-table',
  'replace-partition',
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
  readonly allowDeletes?: boolean
  readonly missing?: Missing
  readonly keepGone?: string
  readonly onReject?: 'fail' | 'quarantine'
  readonly truth?: 'source' | 'snapshot'
  readonly cursor?: string
  readonly grace?: string | number
  readonly start?: string
  readonly settle?: string
  readonly partitionBy?: string
  readonly partitionSize?: SliceSize
  readonly zone?: string
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
    .addOption(
      new Option('--on-reject <how>', 'only report rejected rows, or keep them in stet.quarantine').choices([
        'fail',
        'quarantine',
      ]),
    )
    .addOption(
      new Option(
        '--missing <what>',
        'what becomes of rows that the files no longer hold (default: keep; for replace-partition: delete)',
      ).choices(['keep', 'delete', 'mark']),
    )
    .addOption(
      new Option(
        '--truth <side>',
        'which side wins when the source of what was loaded has changed (default: source)',
      ).choices(['source', 'snapshot']),
    )
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
    .option('--keep-gone <name>', 'column for the time at which a row was found to be gone (--missing mark)')
    .optionsGroup('Slices and watermarks:')
    .option('--partition-by <column>', 'replace-partition: the column that says which slice a row belongs to')
    .option(
      '--partition-size <size>',
      'replace-partition: hour, day, month, value, or a number for ranges of so many (default: day)',
      parseSliceSize,
    )
    .option('--cursor <column>', 'load only rows after the watermark, by a column that grows: updated_at')
    .option(
      '--grace <length>',
      'with --cursor: how far before the watermark to begin, such as 2h; a number for numbers (default: 1h, 0)',
      parseGrace,
    )
    .option('--start <value>', 'with --cursor: where the first load begins (default: at the beginning)')
    .option(
      '--settle <length>',
      'with --cursor: how far to stay behind the clock, such as 5m (default: none)',
    )
    .option('--zone <name>', 'zone in which slices begin and times without a zone are meant (default: UTC)')
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
      "csv: an unquoted field that means NULL, in place of the empty one; may be repeated, also as --null ''",
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
    ...(options.keepGone === undefined ? {} : { gone: options.keepGone }),
  }
  const pipeline = definePipeline({
    name: table,
    source,
    target,
    table,
    write,
    keep,
    maxRejects: options.maxRejects,
    onReject: options.onReject,
    truth: options.truth,
    incremental: incrementalOf(options),
  } satisfies Pipeline)
  return { pipeline, notices }
}

function writeOf(options: LoadOptions): WriteStrategy {
  const { strategy, missing } = options
  const key = options.key === undefined ? [] : parseNames(options.key, '--key')
  refuseForeignToStrategy(options)
  const reading = {
    newest: options.newest,
    ignore: options.ignore === undefined ? undefined : parseNames(options.ignore, '--ignore'),
    nullKeys: options.nullKeys,
    normalizeKey: options.normalizeKeys,
  }
  const optionalKey = key.length === 0 ? undefined : key
  if (strategy === 'replace-table') return { strategy, ...reading, key: optionalKey }
  if (strategy === 'replace-partition') {
    const { partitionBy: by, partitionSize: size = 'day', zone } = options
    if (by === undefined) {
      throw new StetError('STET_USAGE', '--strategy replace-partition needs the column of its slices', {
        hint: 'Name it: --partition-by event_date, and the slice: --slice 2026-08-07',
      })
    }
    return { strategy, ...reading, key: optionalKey, by, size, zone, missing }
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
  return strategy === 'upsert' ? { strategy, key, ...reading, missing } : { strategy, key, ...reading }
}

/** An option that would be passed over in silence is refused: the user thinks that it does something. */
function refuseForeignToStrategy(options: LoadOptions): void {
  const { strategy, missing } = options
  const removes =
    strategy === 'replace-table' ||
    strategy === 'replace-partition' ||
    (strategy === 'upsert' && (missing === 'delete' || missing === 'mark'))
  const foreign: readonly (readonly [flag: string, given: boolean, means: boolean, why: string])[] = [
    ['--allow-empty', options.allowEmpty === true, removes, ', which deletes nothing'],
    ['--allow-deletes', options.allowDeletes === true, removes, ', which deletes nothing'],
    ['--missing', missing !== undefined, strategy === 'upsert' || strategy === 'replace-partition', ''],
    ['--partition-by', options.partitionBy !== undefined, strategy === 'replace-partition', ''],
    ['--partition-size', options.partitionSize !== undefined, strategy === 'replace-partition', ''],
  ]
  for (const [flag, given, means, why] of foreign) {
    if (!given || means) continue
    throw new StetError('STET_USAGE', `${flag} has no meaning with --strategy ${strategy}${why}`)
  }
  if (options.zone !== undefined && options.cursor === undefined && strategy !== 'replace-partition') {
    throw new StetError(
      'STET_USAGE',
      '--zone has no meaning without --cursor or --strategy replace-partition',
    )
  }
}

function incrementalOf(options: LoadOptions): Incremental | undefined {
  const { cursor, grace, start, settle, zone } = options
  if (cursor !== undefined) return { cursor, grace, start, settle, zone }
  const given = Object.entries({ grace, start, settle }).find(([, value]) => value !== undefined)
  if (given === undefined) return undefined
  throw new StetError('STET_USAGE', `--${given[0]} has no meaning without --cursor`)
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

/** Whatever today's files are called: a load is known by its table. */
async function sourceOf(files: readonly string[], options: LoadOptions): Promise<Source> {
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
