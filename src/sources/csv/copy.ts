import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { SourceContext } from '../../model/source.ts'
import { splitFields } from './fields.ts'
import { scanData } from './layout.ts'
import type { Measured } from './measure.ts'
import { LF, type RecordShape } from './records.ts'

/**
 * Writes the records that DuckDB may see into a file of the run's folder, as they stand, but with `\n` after each,
 * and without header, blank lines, comments and spaces beside quotes.
 */
export async function copyRecords(measured: Measured, context: SourceContext): Promise<string> {
  const { layout } = measured
  const path = join(context.local.directory, context.local.newName('records'))
  const file = await open(path, 'wx')
  try {
    const buffer = writeBuffer(file)
    // DuckDB takes the first bytes of a file for a byte order mark if they look like one.
    let first = true
    await scanData(layout, { signal: context.signal, settle: buffer.flush }, (bytes, start, end, at) => {
      if (at.refused) return true
      if (first && bytes[start] === BYTE_ORDER_MARK[0]) buffer.append(BYTE_ORDER_MARK, 0, 3)
      first = false
      if (at.flags.spaced) appendWithoutSpaces(buffer, bytes.subarray(start, end), layout.shape)
      else buffer.append(bytes, start, end)
      buffer.appendByte(LF)
      return true
    })
    await buffer.flush()
  } finally {
    await file.close()
  }
  return path
}

const BYTE_ORDER_MARK: Buffer = Buffer.from([0xef, 0xbb, 0xbf])

/** Writes a record with spaces beside its quotes as if they were not there. */
function appendWithoutSpaces(buffer: WriteBuffer, record: Buffer, shape: RecordShape): void {
  for (const [i, field] of splitFields(record, shape).entries()) {
    if (i > 0) buffer.append(record, field.start - delimiterLength(shape), field.start)
    if (field.quoted) buffer.append(record, field.opened, field.closed)
    else buffer.append(record, field.start, field.end)
  }
}

function delimiterLength({ delimiters }: RecordShape): number {
  return delimiters[0]?.length ?? 0
}

interface WriteBuffer {
  append(bytes: Uint8Array, start: number, end: number): void
  appendByte(byte: number): void
  /** Writes out what was appended. */
  flush(): Promise<void>
}

const BUFFER_BYTES = 1 << 20

/** Appending is called for every record and must not wait; flushing happens between the blocks that are read. */
function writeBuffer(file: FileHandle): WriteBuffer {
  let full: Uint8Array[] = []
  let current = Buffer.allocUnsafe(BUFFER_BYTES)
  let length = 0
  const makeRoom = (bytes: number) => {
    if (length + bytes <= current.length) return
    full.push(current.subarray(0, length))
    current = Buffer.allocUnsafe(Math.max(BUFFER_BYTES, bytes))
    length = 0
  }
  return {
    append(bytes, start, end) {
      makeRoom(end - start)
      current.set(bytes.subarray(start, end), length)
      length += end - start
    },
    appendByte(byte) {
      makeRoom(1)
      current[length++] = byte
    },
    async flush() {
      const chunks = [...full, current.subarray(0, length)]
      full = []
      for (const chunk of chunks) await writeWhole(file, chunk)
      length = 0
    },
  }
}

/** A single write may take less than it is given. */
async function writeWhole(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written)
    written += bytesWritten
  }
}
