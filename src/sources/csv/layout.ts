import { isUtf8 } from 'node:buffer'
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
    /** Kept from DuckDB, which would take it for something else: quotes out of place, bytes that are no UTF-8. */
    readonly refused: boolean
  },
) => boolean

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
    at.refused = flags.textAfterQuote || (!layout.isUtf8 && !isUtf8(bytes.subarray(start, end)))
    return visit(bytes, start, end, at)
  })
}

const NO_FLAGS: RecordFlags = { odd: false, textAfterQuote: false, spaced: false }
