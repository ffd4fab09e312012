import { open } from 'node:fs/promises'
import { StetError } from '../../errors.ts'
import type { InputFile } from '../shared/files.ts'
import { JsonFault, skipSpace, skipValue } from './scan.ts'

/** How records stand in a file: one on each line, or in a document, below the keys of `path`. */
export type Layout =
  | { readonly kind: 'lines' }
  | { readonly kind: 'document'; readonly path: readonly string[] }

export interface LayoutOptions {
  readonly records?: string | undefined
  readonly format?: 'json' | 'ndjson' | undefined
}

const LINES: Layout = { kind: 'lines' }
const HEAD_BYTES = 1 << 20

/**
 * Tells by name and content how a file is laid out.
 *
 * @throws {StetError} `STET_SOURCE` for a document that is empty or not in UTF-8. A file with a record on each line may
 * have none: that is how an export without rows looks.
 */
export async function layoutOf(input: InputFile, { records, format }: LayoutOptions): Promise<Layout> {
  const { path } = input.file
  if (records === undefined && (format === 'ndjson' || /\.(ndjson|jsonl)(\.(gz|zst))?$/i.test(path)))
    return LINES
  const head = await headOf(input)
  if (head.trim() === '' && input.bytes <= HEAD_BYTES) {
    throw new StetError('STET_SOURCE', `Cannot read "${path}" as JSON: it is empty (G10)`, {
      hint: "A document without records is []; where an empty file means none, say so: --format ndjson (format: 'ndjson' in a pipeline)",
      details: { file: path },
    })
  }
  if (records === undefined && beginsWithLine(head)) return LINES
  if (input.invalidUtf8At !== null) throw await notUtf8(input, input.invalidUtf8At)
  return { kind: 'document', path: records?.split('.') ?? [] }
}

/** Whether the first line is a whole record, or tries to be one and is broken. Only a document's goes on below. */
function beginsWithLine(head: string): boolean {
  const from = skipSpace(head, 0)
  if (head.charAt(from) !== '{') return false
  const newline = head.indexOf('\n', from)
  const line = newline === -1 ? head.slice(from) : head.slice(from, newline)
  try {
    return skipSpace(line, skipValue(line, 0, { refusal: null, escaped: false })) === line.length
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    return fault.kind === 'broken'
  }
}

async function headOf(input: InputFile): Promise<string> {
  await using file = await openForReading(input.path)
  const { buffer, bytesRead } = await file.handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

async function notUtf8(input: InputFile, at: number): Promise<StetError> {
  await using file = await openForReading(input.path)
  let line = 1
  const buffer = Buffer.alloc(HEAD_BYTES)
  for (let position = 0; position < at; ) {
    const { bytesRead } = await file.handle.read(buffer, 0, Math.min(HEAD_BYTES, at - position), position)
    if (bytesRead === 0) break
    for (const byte of buffer.subarray(0, bytesRead)) if (byte === 0x0a) line++
    position += bytesRead
  }
  const { path } = input.file
  return new StetError('STET_SOURCE', `Cannot read "${path}" as JSON: line ${line} is not in UTF-8`, {
    hint: "Name the file's encoding: --encoding utf-16le (encoding in a pipeline)",
    details: { file: path, line },
  })
}

async function openForReading(path: string) {
  const handle = await open(path)
  return { handle, [Symbol.asyncDispose]: () => handle.close() }
}
