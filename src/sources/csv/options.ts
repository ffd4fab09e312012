import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'

export interface CsvOptions<C extends Columns = Columns> {
  /** Paths and patterns, relative to the folder of the run; `-` is standard input. */
  readonly files: string | readonly string[]
  /** The columns to load with their types. Default: those of the target's table; a first load infers them. */
  readonly columns?: C | undefined
  /** One character. Default: seen in the first record, of comma, semicolon, tab and bar. */
  readonly delimiter?: string | undefined
  /** One character; empty where quotes have no meaning. Default `"`. */
  readonly quote?: string | undefined
  /** What stands before a quote that belongs to the value. Default: the quote itself, doubled. */
  readonly escape?: string | undefined
  /** The columns' names in order, where the files have no header. Default true: they have one. */
  readonly header?: true | readonly string[] | undefined
  /** Any encoding that browsers know, such as `windows-1252`. Default: by byte order mark, else UTF-8. */
  readonly encoding?: string | undefined
  /** Texts that mean NULL when they stand without quotes. Default: the empty one. */
  readonly nullTexts?: readonly string[] | undefined
  /** Lines that begin with it are left out. Default: there are none. */
  readonly comment?: string | undefined
  /** Lines at the beginning of each file that are left out. Default 0. */
  readonly skip?: number | undefined
  /**
   * What a record is that says the names of all columns, as files have that were joined with their headers: a reject, or a
   * row like any other. Default `'reject'`.
   */
  readonly repeatedHeader?: 'reject' | 'row' | undefined
}

export const CSV_OPTIONS: Readonly<Record<keyof CsvOptions, true>> = {
  files: true,
  columns: true,
  delimiter: true,
  quote: true,
  escape: true,
  header: true,
  encoding: true,
  nullTexts: true,
  comment: true,
  skip: true,
  repeatedHeader: true,
}

/** The options, checked and with their defaults. */
export interface Dialect {
  /** Null: to be seen in the first record. */
  readonly delimiter: string | null
  readonly quote: string
  readonly quoteEscape: string
  /** Null: the files have one. */
  readonly header: readonly string[] | null
  readonly nullTexts: readonly string[]
  readonly comment: string | null
  readonly skip: number
  readonly repeatedHeader: 'reject' | 'row'
}

/** @throws {StetError} `STET_CONFIG` for options that contradict each other. */
export function dialectOf(options: CsvOptions): Dialect {
  const { delimiter, comment, header, skip = 0, nullTexts = [''] } = options
  const quote = options.quote ?? '"'
  const quoteEscape = quote === '' ? '' : (options.escape ?? quote)
  if (delimiter !== undefined) demandOneCharacter('delimiter', delimiter)
  if (comment !== undefined) demandOneCharacter('comment', comment)
  if (quote !== '') demandOneByte('quote', quote)
  if (quoteEscape !== '') demandOneByte('escape', quoteEscape)
  const used = [delimiter, quote, comment].filter((text): text is string => text !== undefined && text !== '')
  if (new Set(used).size < used.length || delimiter === quoteEscape) {
    throw refused('delimiter, quote, escape and comment must differ')
  }
  if (!Number.isSafeInteger(skip) || skip < 0) throw refused(`skip is ${skip}, not a number of lines`)
  // Such a text could stand in a file between quotes only, where it means itself.
  const marks = ['\r', '\n', ...used]
  const impossible = nullTexts.find((text) => marks.some((mark) => text.includes(mark)))
  if (impossible !== undefined) {
    throw refused(
      `nullTexts holds ${JSON.stringify(impossible)}, which cannot stand in a field without quotes`,
    )
  }
  return {
    delimiter: delimiter ?? null,
    quote,
    quoteEscape,
    header: headerNames(header ?? true),
    nullTexts,
    comment: comment ?? null,
    skip,
    repeatedHeader: options.repeatedHeader ?? 'reject',
  }
}

function headerNames(header: true | readonly string[]): readonly string[] | null {
  if (header === true) return null
  if (header.length === 0) throw refused('header names no column')
  const twice = header.find((name, i) => header.indexOf(name) !== i)
  if (twice !== undefined) throw refused(`header names "${twice}" twice`)
  if (header.includes('')) throw refused('header holds an empty name')
  return header
}

function demandOneCharacter(option: string, text: string): void {
  // Spaces beside quotes are no part of a value, so a space cannot part values as well.
  if ([...text].length === 1 && !/[\r\n \0\\]/.test(text) && text.isWellFormed()) return
  throw refused(`${option} is ${JSON.stringify(text)}, not one character other than a space or line break`)
}

function demandOneByte(option: string, text: string): void {
  if (/^[!-~]$/.test(text)) return
  throw refused(`${option} is ${JSON.stringify(text)}, not one visible ASCII character`)
}

function refused(reason: string): StetError {
  return new StetError('STET_CONFIG', `Cannot read CSV: ${reason}`)
}
