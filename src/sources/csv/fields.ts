import { CR, closingQuote, LF, type RecordShape, SPACE } from './records.ts'

/** One field of a record as it stands in the file. */
export interface RawField {
  readonly start: number
  /** After the last byte of the field, quotes included. */
  readonly end: number
  /** The value's text: quotes taken off and escapes resolved. */
  readonly text: string
  readonly quoted: boolean
  /** Where its opening quote stands; `start` in a field without quotes. */
  readonly opened: number
  /** Where the quoted part ends (after the closing quote); `start` in a field without quotes. */
  readonly closed: number
}

/** Takes one record apart. For headers and messages; rows are read by DuckDB. */
export function splitFields(record: Buffer, shape: RecordShape): readonly RawField[] {
  const fields: RawField[] = []
  let position = 0
  for (;;) {
    let content = position
    while (record[content] === SPACE) content++
    const quoted = shape.quote !== null && record[content] === shape.quote
    const closing = quoted ? closingQuote(record, content + 1, shape, true) : null
    const closed = closing === null ? position : closing + 1
    const opened = closing === null ? position : content
    const end = nextDelimiter(record, closed, shape)
    const text =
      closing === null
        ? record.toString('utf8', position, end.at)
        : unescapeQuotes(record.subarray(content + 1, closing), shape)
    fields.push({ start: position, end: end.at, text, quoted: closing !== null, opened, closed })
    if (end.length === 0) return fields
    position = end.at + end.length
  }
}

function nextDelimiter(record: Buffer, from: number, { delimiters }: RecordShape) {
  let at = record.length
  let length = 0
  for (const delimiter of delimiters) {
    const found = record.indexOf(delimiter, from)
    if (found !== -1 && found < at) {
      at = found
      length = delimiter.length
    }
  }
  return { at, length }
}

function unescapeQuotes(content: Buffer, { quote, quoteEscape }: RecordShape): string {
  if (quoteEscape === null || !content.includes(quoteEscape)) return content.toString('utf8')
  const plain = Buffer.alloc(content.length)
  let length = 0
  for (let i = 0; i < content.length; i++) {
    if (content[i] === quoteEscape && (quoteEscape !== quote || content[i + 1] === quote)) i++
    plain[length++] = content[i] ?? 0
  }
  return plain.toString('utf8', 0, length)
}

/** Offset in the record of the first CR or LF outside quotes, or null. */
export function bareLineBreak(record: Buffer, shape: RecordShape): number | null {
  for (const field of splitFields(record, shape)) {
    for (let i = field.closed; i < field.end; i++) {
      if (record[i] === CR || record[i] === LF) return i
    }
  }
  return null
}
