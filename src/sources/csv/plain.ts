import { CR, LF, NUL, type RecordShape, SPACE, STOPPED, type TakeRecords } from './records.ts'

/** What is known of a plain file once it has been read to its end. */
export interface PlainRecords {
  /** Records of data. */
  readonly records: number
  /** Length of the longest record in bytes. */
  readonly longest: number
  /** See `Measured.splittable`. */
  readonly splittable: boolean
}

export interface PlainCounter {
  readonly take: TakeRecords
  /** Null when the file needs a closer look. Asked for after the last block. */
  result(): PlainRecords | null
}

/** Whether a file of this shape can be plain at all. */
export function mayBePlain({ delimiters, quote, quoteEscape, lineEnd, skip, comment }: RecordShape): boolean {
  return (
    delimiters.length === 1 &&
    delimiters[0]?.length === 1 &&
    (quote === null || quoteEscape === quote) &&
    lineEnd === 'lf' &&
    skip === 0 &&
    comment === null
  )
}

/**
 * Counts the records of a file in which there is nothing that anybody could read in two ways: lines that end in LF, no
 * CR or NUL, quotes only around whole fields. Most files are like that, and this takes half the time of visiting each
 * record. At the first thing that is not so it gives up; `measure` then says what it is.
 *
 * @param wholeFile Goes on to the end of the file after giving up, for the sake of who looks at its bytes.
 */
export function plainCounter(
  shape: RecordShape,
  columns: number,
  hasHeader: boolean,
  wholeFile: boolean,
): PlainCounter {
  const delimiter = shape.delimiters[0]?.[0] ?? 0
  const { quote } = shape
  let records = 0
  let longest = 0
  let splittable = true
  let headerSeen = !hasHeader
  let unsure = false
  // How much of the block's beginning has been searched for CR and NUL, which only fresh bytes can bring.
  let searched = 0

  const giveUp = (block: Buffer) => {
    unsure = true
    return wholeFile ? block.length : STOPPED
  }

  const take = (block: Buffer, _offset: number, final: boolean): number => {
    const { length } = block
    if (unsure || block.indexOf(CR, searched) !== -1 || block.indexOf(NUL, searched) !== -1) {
      return giveUp(block)
    }
    let position = 0
    let quoteAt = next(block, quote, 0)
    while (position < length) {
      let end = block.indexOf(LF, position)
      if (end === -1) end = length
      let lines = 1
      while (quoteAt < end) {
        const before = quoteAt === position ? delimiter : block[quoteAt - 1]
        // Inside a field without quotes a quote is a character like others; behind spaces it may be none.
        if (before !== delimiter) {
          if (before === SPACE) return giveUp(block)
          quoteAt = next(block, quote, quoteAt + 1)
          continue
        }
        const closing = closingAt(block, quote, quoteAt + 1)
        if (closing >= length - 1 && !final) return rest(block, position)
        if (closing === length) return giveUp(block)
        for (; end < closing; lines++) end = next(block, LF, end + 1)
        if (closing + 1 !== end && block[closing + 1] !== delimiter) return giveUp(block)
        quoteAt = next(block, quote, closing + 1)
      }
      if (end === length && !final) return rest(block, position)
      const size = end - position
      if (size > longest) longest = size
      if (!headerSeen) {
        if (size === 0) return giveUp(block)
        headerSeen = true
      } else if (size > 0 || columns === 1) {
        records++
        if (lines > 1 && splittable && hasLineLikeRecord(block.subarray(position, end), delimiter, columns)) {
          splittable = false
        }
      }
      position = end + 1
    }
    return rest(block, Math.min(position, length))
  }

  const rest = (block: Buffer, used: number) => {
    searched = block.length - used
    return used
  }

  return { take, result: () => (unsure || !headerSeen ? null : { records, longest, splittable }) }
}

function next(block: Buffer, byte: number | null, from: number): number {
  const at = byte === null ? -1 : block.indexOf(byte, from)
  return at === -1 ? block.length : at
}

/** The quote that closes what begins at `from`, or the block's end. */
function closingAt(block: Buffer, quote: number | null, from: number): number {
  let at = next(block, quote, from)
  while (block[at + 1] === quote && at < block.length) at = next(block, quote, at + 2)
  return at
}

/** Whether a line that begins inside a value has enough delimiters for a record. */
export function hasLineLikeRecord(record: Buffer, delimiter: number, columns: number): boolean {
  let fields = 0
  let inner = false
  for (const byte of record) {
    if (byte === LF) {
      if (inner && fields >= columns) return true
      inner = true
      fields = 1
    } else if (byte === delimiter) fields++
  }
  return inner && fields >= columns
}
