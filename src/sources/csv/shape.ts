import { open } from 'node:fs/promises'
import { StetError } from '../../errors.ts'
import { splitFields } from './fields.ts'
import type { Dialect } from './options.ts'
import { CR, closingQuote, LF, type LineEnd, type RecordShape, SPACE, scanRecords } from './records.ts'

/** Comma first: it wins where two are as frequent. */
const CANDIDATES: readonly string[] = [',', ';', '\t', '|']

/** A delimiter and how it was come by. */
export interface ChosenDelimiter {
  readonly delimiter: string
  readonly seen: boolean
}

/**
 * The delimiter of a load, decided once by its first file: as named, a tab for `.tsv`, else the candidate that is
 * most frequent outside quotes in the first record. Names without a header know how many fields a record has, so
 * there the delimiter must give that many.
 */
export async function chooseDelimiter(
  file: { readonly name: string; readonly path: string },
  dialect: Dialect,
  signal: AbortSignal,
): Promise<ChosenDelimiter> {
  if (dialect.delimiter !== null) return { delimiter: dialect.delimiter, seen: false }
  if (/\.(tsv|tab)(\.(gz|zst|zstd))?$/i.test(file.name)) return { delimiter: '\t', seen: false }
  const candidates = CANDIDATES.filter((text) => text !== dialect.quote && text !== dialect.comment)
  const shape = shapeOf(dialect, candidates, await lineEndOf(file.path, dialect, candidates))
  const record = await firstRecord(file.path, shape, signal)
  if (record === null) return { delimiter: ',', seen: false }
  const fieldsBy = (delimiter: string) =>
    splitFields(record, { ...shape, delimiters: [Buffer.from(delimiter)] }).length
  if (dialect.header !== null) {
    const wanted = dialect.header.length
    const fitting = candidates.filter((delimiter) => fieldsBy(delimiter) === wanted)
    const [only] = fitting
    if (only !== undefined && (fitting.length === 1 || wanted === 1)) return { delimiter: only, seen: true }
    throw new StetError(
      'STET_CONFIG',
      `Cannot tell the delimiter of "${file.name}": ${fitting.length === 0 ? 'none' : 'more than one'} of ` +
        `comma, semicolon, tab and bar gives the ${wanted} fields that header names`,
      { hint: "Name it: --delimiter ';' (delimiter in a pipeline)", details: { file: file.name } },
    )
  }
  const best = candidates.reduce((a, b) => (fieldsBy(b) > fieldsBy(a) ? b : a))
  return { delimiter: best, seen: true }
}

export function shapeOf(dialect: Dialect, delimiters: readonly string[], lineEnd: LineEnd): RecordShape {
  const { quote, quoteEscape, comment, skip } = dialect
  return {
    delimiters: delimiters.map((text) => Buffer.from(text)),
    quote: quote === '' ? null : quote.charCodeAt(0),
    quoteEscape: quoteEscape === '' ? null : quoteEscape.charCodeAt(0),
    lineEnd,
    skip,
    comment: comment === null ? null : Buffer.from(comment),
  }
}

/** The first record that is not blank, or null. */
async function firstRecord(path: string, shape: RecordShape, signal: AbortSignal): Promise<Buffer | null> {
  let first: Buffer | null = null
  await scanRecords(path, shape, { signal }, (bytes, start, end) => {
    if (start === end) return true
    first = Buffer.from(bytes.subarray(start, end))
    return false
  })
  return first
}

const FIRST_BYTES = 1 << 16
/** A header that is longer has a quote in it that is none. */
const HEADER_BYTES_MAX = 1 << 25

/** How the first line ends that is no part of a quoted value. Whether all others do is found while measuring. */
export async function lineEndOf(
  path: string,
  dialect: Dialect,
  delimiters: readonly string[],
): Promise<LineEnd> {
  const shape = shapeOf(dialect, delimiters, 'lf')
  const file = await open(path, 'r')
  try {
    for (let size = FIRST_BYTES; ; size *= 8) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0)
      const bytes = buffer.subarray(0, bytesRead)
      const isWhole = bytesRead < size
      // Lines that are left out may hold a single quote.
      const isRaw =
        size > HEADER_BYTES_MAX ||
        shape.skip > 0 ||
        (shape.comment !== null && bytes.indexOf(shape.comment) === 0)
      const at = isRaw ? nextLineEnd(bytes, 0) : firstLineEnd(bytes, shape)
      if (at < bytesRead - 1 || isWhole || size > HEADER_BYTES_MAX) {
        if (bytes[at] !== CR) return 'lf'
        return bytes[at + 1] === LF ? 'crlf' : 'cr'
      }
    }
  } finally {
    await file.close()
  }
}

function firstLineEnd(bytes: Buffer, shape: RecordShape): number {
  for (let field = 0; ; ) {
    let at = field
    while (bytes[at] === SPACE) at++
    if (shape.quote !== null && bytes[at] === shape.quote) {
      const closing = closingQuote(bytes, at + 1, shape, true)
      if (closing === null) return bytes.length
      at = closing + 1
    }
    const end = nextLineEnd(bytes, at)
    const delimiters = shape.delimiters
      .map((delimiter) => ({ at: bytes.indexOf(delimiter, at), length: delimiter.length }))
      .filter((delimiter) => delimiter.at !== -1 && delimiter.at < end)
    if (delimiters.length === 0) return end
    field = Math.min(...delimiters.map((delimiter) => delimiter.at + delimiter.length))
  }
}

function nextLineEnd(bytes: Buffer, from: number): number {
  const ends = [bytes.indexOf(LF, from), bytes.indexOf(CR, from)].filter((at) => at !== -1)
  return Math.min(bytes.length, ...ends)
}
