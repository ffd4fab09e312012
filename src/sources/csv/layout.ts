import { isUtf8 } from 'node:buffer'
import { splitFields } from './fields.ts'
import {
  type RecordFlags,
  type RecordShape,
  type ScanOptions,
  scanRecords,
  type Unclosed,
} from './records.ts'

/** Where the records of data stand in a file. */
export interface Layout {
  readonly path: string
  readonly shape: RecordShape
  /** Whether the first record names the columns. */
  readonly hasHeader: boolean
  readonly columns: number
  /** Whether all of the file is UTF-8, so that no record need be looked at for it. */
  readonly isUtf8: boolean
}

/** A record of data, valid during the call only. Return false to stop. */
export type VisitData = (
  bytes: Buffer,
  start: number,
  end: number,
  at: {
    /** 1-based, header and blank lines not counted. */
    readonly ordinal: number
    readonly line: number
    readonly offset: number
    readonly flags: RecordFlags
    /** Kept from DuckDB, see {@link isRefused}. */
    readonly refused: boolean
  },
) => boolean

/**
 * Whether DuckDB would take a record for something else than it is: it reads on after a closing quote, and takes a
 * field beyond the last column for empty when it begins with NUL.
 */
export function isRefused(
  record: Buffer,
  flags: RecordFlags,
  { shape, columns, isUtf8: allUtf8 }: Omit<Layout, 'path' | 'hasHeader'>,
): boolean {
  if (flags.textAfterQuote || (!allUtf8 && !isUtf8(record))) return true
  return (
    flags.nul &&
    splitFields(record, shape)
      .slice(columns)
      .some(({ text }) => text !== '')
  )
}

/**
 * Visits the records of data in order. A blank line is no record, except in a file of one column, where it is how
 * NULL is written.
 */
export async function scanData(
  layout: Layout,
  options: ScanOptions,
  visit: VisitData,
): Promise<Unclosed | null> {
  let headerSeen = !layout.hasHeader
  const at = { ordinal: 0, line: 0, offset: 0, flags: NO_FLAGS, refused: false }
  return scanRecords(layout.path, layout.shape, options, (bytes, start, end, offset, line, flags) => {
    if (!headerSeen) {
      headerSeen = start < end
      return true
    }
    if (start === end && layout.columns > 1) return true
    at.ordinal++
    at.line = line
    at.offset = offset
    at.flags = flags
    at.refused = isRefused(bytes.subarray(start, end), flags, layout)
    return visit(bytes, start, end, at)
  })
}

const NO_FLAGS: RecordFlags = { odd: false, textAfterQuote: false, spaced: false, nul: false, lines: 1 }
