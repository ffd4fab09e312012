import { StetError } from '../../errors.ts'
import { bareLineBreak } from './fields.ts'
import { headerNames } from './header.ts'
import { isRefused, type Layout } from './layout.ts'
import { hasLineLikeRecord, mayBePlain, plainCounter } from './plain.ts'
import {
  CR,
  LF,
  type RecordFlags,
  type RecordShape,
  readBlocks,
  type ScanOptions,
  scanRecords,
} from './records.ts'

/** A file before DuckDB sees it. */
export interface FileToMeasure {
  /** What the user calls it. */
  readonly name: string
  readonly path: string
  readonly isUtf8: boolean
}

export interface Measured {
  readonly layout: Layout
  /** Names of the columns, in the file's order. */
  readonly names: readonly string[]
  /** Records of data. */
  readonly records: number
  /** Length of the longest record in bytes. */
  readonly longest: number
  /** Whether DuckDB reads the file as it stands just as we do. */
  readonly plain: boolean
  /**
   * Whether several threads may look for the beginning of a record in the file: no line that begins inside a value has
   * as many fields as a record, so none can be taken for one.
   */
  readonly splittable: boolean
}

/**
 * Reads a file once from end to end for its records, and refuses what cannot be read for sure.
 *
 * DuckDB's reader alone is not enough: of some files it gives fewer rows without a word (CRLF with a line break
 * between quotes, quotes after a closing quote). What it is given, and how many records it has to find there, is
 * settled here.
 *
 * @throws {StetError} `STET_SOURCE` for an empty file, a quote that is never closed and lines that end in
 * different ways; `STET_COLUMNS` for a header that does not name the columns.
 */
export async function measure(
  file: FileToMeasure,
  shape: RecordShape,
  header: readonly string[] | null,
  signal: AbortSignal,
): Promise<Measured> {
  const names = file.isUtf8 ? await namesOfPlain(file, shape, header, signal) : null
  const plain = names === null ? null : await measurePlain(file, shape, header, names, { signal })
  return plain ?? measureClosely(file, shape, header, signal)
}

/** The columns' names of a file whose beginning holds nothing that needs a closer look; else null. */
export async function namesOfPlain(
  file: Omit<FileToMeasure, 'isUtf8'>,
  shape: RecordShape,
  header: readonly string[] | null,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  if (!mayBePlain(shape)) return null
  let names: readonly string[] | null = null
  await scanRecords(file.path, shape, { signal }, (bytes, start, end, _offset, _line, flags) => {
    if (header !== null) names = bytes[start] === 0xef ? null : header
    else if (start < end && !flags.odd && !flags.nul && !flags.textAfterQuote && !flags.spaced)
      names = headerNames(bytes.subarray(start, end), shape, file.name)
    return false
  })
  return names
}

/** Measures a file in one pass if it is plain, else gives null. `look` sees all of its bytes either way. */
export async function measurePlain(
  file: Pick<FileToMeasure, 'path'>,
  shape: RecordShape,
  header: readonly string[] | null,
  names: readonly string[],
  options: Pick<ScanOptions, 'signal' | 'look'>,
): Promise<Measured | null> {
  const counter = plainCounter(shape, names.length, header === null, options.look !== undefined)
  await readBlocks(file.path, options, counter.take)
  const counted = counter.result()
  if (counted === null) return null
  const hasHeader = header === null
  return {
    layout: { path: file.path, shape, hasHeader, columns: names.length, isUtf8: true },
    names,
    ...counted,
    plain: true,
  }
}

/** The same, record by record, for files that need it. */
async function measureClosely(
  file: FileToMeasure,
  shape: RecordShape,
  header: readonly string[] | null,
  signal: AbortSignal,
): Promise<Measured> {
  let names = header
  let records = 0
  let longest = 0
  let splittable = true
  let plain = shape.lineEnd === 'lf' && shape.skip === 0 && shape.comment === null && file.isUtf8
  const unclosed = await scanRecords(
    file.path,
    shape,
    { signal },
    (bytes, start, end, offset, line, flags) => {
      if (flags.odd || shape.lineEnd === 'crlf')
        demandLineEnd(file.name, bytes, start, end, line, flags, shape)
      if (flags.spaced) plain = false
      if (end - start > longest) longest = end - start
      if (names === null) {
        // DuckDB would take the blank line for the header.
        if (start === end) plain = false
        else names = headerNames(headerRecord(file.name, bytes.subarray(start, end), flags), shape, file.name)
        return true
      }
      // DuckDB takes the first bytes of a file for a byte order mark, here they are data.
      if (header !== null && offset === 0 && bytes[start] === 0xef) plain = false
      if (start === end && names.length > 1) return true
      records++
      if (
        flags.lines > 1 &&
        splittable &&
        isLineLikeRecordInside(bytes.subarray(start, end), shape, names.length)
      ) {
        splittable = false
      }
      if (
        plain &&
        isRefused(bytes.subarray(start, end), flags, { shape, columns: names.length, isUtf8: true })
      ) {
        plain = false
      }
      return true
    },
  )
  if (unclosed !== null) {
    throw new StetError(
      'STET_SOURCE',
      `Cannot read "${file.name}": a quote in the record at line ${unclosed.line} is never closed (G9)`,
      {
        hint: "The file may be cut off. If quotes have no meaning in it, say so: --quote '' (quote: '' in a pipeline)",
        details: { file: file.name, line: unclosed.line },
      },
    )
  }
  if (names === null) {
    throw new StetError('STET_SOURCE', `Cannot read "${file.name}": it is empty: not even a header`, {
      hint: 'An export without rows still has its header line',
      details: { file: file.name },
    })
  }
  return {
    layout: {
      path: file.path,
      shape,
      hasHeader: header === null,
      columns: names.length,
      isUtf8: file.isUtf8,
    },
    names,
    records,
    longest,
    plain,
    splittable: plain && splittable,
  }
}

function isLineLikeRecordInside(record: Buffer, { delimiters }: RecordShape, columns: number): boolean {
  const [delimiter] = delimiters
  if (delimiter === undefined || delimiter.length !== 1 || delimiters.length > 1) return true
  return hasLineLikeRecord(record, delimiter[0] ?? 0, columns)
}

function headerRecord(file: string, record: Buffer, flags: RecordFlags): Buffer {
  if (!flags.textAfterQuote) return record
  throw new StetError(
    'STET_SOURCE',
    `Cannot read "${file}": in its header something follows a closing quote: ${record.toString('utf8', 0, 200)}`,
    {
      hint: "If quotes have no meaning in the file, say so: --quote '' (quote: '' in a pipeline)",
      details: { file },
    },
  )
}

/** What a line ends in, for messages. */
const LINE_END_TEXT = { lf: '\\n', crlf: '\\r\\n', cr: '\\r' } as const

/**
 * Refuses a record that ends unlike the first, and one that holds a CR outside quotes: whether it belongs to the
 * value or ends the line nobody can tell.
 */
function demandLineEnd(
  file: string,
  bytes: Buffer,
  start: number,
  end: number,
  line: number,
  flags: RecordFlags,
  shape: RecordShape,
): void {
  const expected = LINE_END_TEXT[shape.lineEnd]
  if (shape.lineEnd === 'crlf' && bytes[end] === LF) throw mixed(file, line, '\\n', expected)
  if (!flags.odd) return
  const record = bytes.subarray(start, end)
  const at = bareLineBreak(record, shape)
  if (at === null) return
  const lineOfBreak = line + splitLines(record.subarray(0, at), shape.lineEnd === 'cr' ? CR : LF)
  if (shape.lineEnd === 'lf' && at === record.length - 1) throw mixed(file, lineOfBreak, '\\r\\n', expected)
  throw mixed(file, lineOfBreak, shape.lineEnd === 'cr' ? '\\n' : '\\r', expected)
}

function splitLines(bytes: Buffer, terminator: number): number {
  let lines = 0
  for (const byte of bytes) if (byte === terminator) lines++
  return lines
}

function mixed(file: string, line: number, found: string, expected: string): StetError {
  return new StetError(
    'STET_SOURCE',
    `Cannot read "${file}": line ${line} ends in ${found} outside quotes, the first line in ${expected} (G9)`,
    { hint: 'Make all lines end alike', details: { file, line } },
  )
}
