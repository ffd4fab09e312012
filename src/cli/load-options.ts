import { Command, Option } from 'commander'
import type { SliceSize } from '../model/slice.ts'
import type { Missing, WriteStrategy } from '../model/write.ts'
import { FORMATS, type Format } from './formats.ts'
import {
  collect,
  parseCount,
  parseGrace,
  parseNameOrNone,
  parseSliceSize,
  parseTab,
} from './option-values.ts'
import { DEFAULT_TARGET } from './target-option.ts'

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
  readonly repeatedHeader?: 'reject' | 'row'
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
    .addOption(
      new Option(
        '--repeated-header <what>',
        'csv: what a record is that says the names of all columns (default: reject)',
      ).choices(['reject', 'row']),
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
