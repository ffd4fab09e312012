import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import type { InputFile } from '../shared/files.ts'
import { JsonFault, skipSpace } from './scan.ts'
import type { RecordVisitor } from './visit.ts'

/** Reads a file with one record on each line (NDJSON, JSON Lines). A broken line is that line's fault alone. */
export async function readLines(input: InputFile, visitor: RecordVisitor): Promise<void> {
  let line = 0
  for await (const bytes of wholeLines(input.path)) {
    // Bad bytes are rare; where there are some, each line is decoded by itself, and only the bad ones are lost.
    const isGood = input.invalidUtf8At === null || isUtf8(bytes)
    const text = bytes.toString(isGood ? 'utf8' : 'latin1')
    for (let from = 0; from < text.length; ) {
      const newline = text.indexOf('\n', from)
      const end = newline === -1 ? text.length : newline
      line++
      const waiting = isGood
        ? visitLine(text.slice(from, end), line, visitor)
        : visitBytes(Buffer.from(text.slice(from, end), 'latin1'), line, visitor)
      if (waiting !== undefined) await waiting
      if (visitor.finished) return
      from = end + 1
    }
  }
}

function visitBytes(bytes: Buffer, line: number, visitor: RecordVisitor): Promise<void> | undefined {
  const text = bytes.toString('utf8')
  return isUtf8(bytes) ? visitLine(text, line, visitor) : visitor.done(line, () => text, 'is not in UTF-8')
}

function visitLine(text: string, line: number, visitor: RecordVisitor): Promise<void> | undefined {
  const from = skipSpace(text, 0)
  if (from === text.length) return undefined
  return visitor.done(line, () => text.trim(), problemOf(text, from, visitor))
}

function problemOf(text: string, from: number, visitor: RecordVisitor): string | null {
  try {
    const rest = skipSpace(text, visitor.read(text, from))
    return rest === text.length ? null : `is no JSON: more follows behind its end (column ${rest + 1})`
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    return `is no JSON: ${fault.message} (column ${fault.at + 1})`
  }
}

const NEWLINE = 0x0a

/** A file in pieces of about a megabyte that each end with a line, however long. */
async function* wholeLines(path: string): AsyncIterable<Buffer> {
  let begun: Buffer[] = []
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    const bytes = chunk as Buffer
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end === 0) {
      begun.push(bytes)
      continue
    }
    begun.push(bytes.subarray(0, end))
    yield Buffer.concat(begun)
    begun = end < bytes.length ? [bytes.subarray(end)] : []
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}
