import { createHash } from 'node:crypto'
import { type BigIntStats, createReadStream } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { SourceContext, SourceFile } from '../../model/source.ts'
import { decodeToUtf8, encodingOf } from './decode.ts'
import { compressionOf, cutOff, decompress } from './decompress.ts'
import { type NamedPath, resolveFiles, STANDARD_INPUT } from './resolve.ts'
import { withSlice } from './slice-in-path.ts'
import { checkUtf8 } from './utf8.ts'

export interface OpenFilesOptions {
  /** Paths and patterns; `-` is standard input. */
  readonly files: string | readonly string[]
  /** `text` comes as UTF-8 without a byte order mark; `bytes` is only decompressed. */
  readonly content: 'text' | 'bytes'
  /** Any label of the Encoding Standard. Default: by byte order mark, else UTF-8. */
  readonly encoding?: string | undefined
  /** Default: the process's own. */
  readonly stdin?: AsyncIterable<Uint8Array> | undefined
}

/** A file made ready for a reader. */
export interface InputFile {
  readonly file: SourceFile
  /** What to read: the file itself, or a decompressed and decoded copy in the run's folder. */
  readonly path: string
  /** Size of what `path` holds. */
  readonly bytes: number
  /** Offset in `path` of the first byte that is not UTF-8; null in good text, and always for `bytes`. */
  readonly invalidUtf8At: number | null
}

export interface OpenFiles<File = InputFile> {
  readonly files: readonly File[]
  /** Throws `STET_SOURCE_CHANGED` when a file is no longer the one that was opened (G9). */
  verify(): Promise<void>
}

/** A file of plain text, as far as its first bytes show, which has not been read yet. */
export interface UnreadFile {
  readonly name: string
  readonly path: string
  readonly size: number
}

/** Takes in the bytes of an {@link UnreadFile} while somebody reads it for a purpose of his own. */
export interface FileReading {
  look(bytes: Uint8Array): void
  /** After the last byte. Throws `STET_SOURCE_CHANGED` when there were more or fewer than the file had. */
  end(): InputFile
}

/**
 * Finds the files of a source, hashes them and makes them readable: archives are unpacked and other encodings
 * decoded into the run's folder, all in one pass; plain UTF-8 stays where it is.
 *
 * @throws {StetError} `STET_SOURCE` for a file that is missing, cut off, damaged or of another format.
 */
export async function openFiles(options: OpenFilesOptions, context: SourceContext): Promise<OpenFiles> {
  return openEach(options, context, (file) => readThrough(file, options, context))
}

/** The same for text, but plain UTF-8 is left for the caller to read: one pass over a file costs less than two. */
export async function openTextFiles(
  options: Omit<OpenFilesOptions, 'content'>,
  context: SourceContext,
): Promise<OpenFiles<InputFile | UnreadFile>> {
  const asText: OpenFilesOptions = { ...options, content: 'text' }
  return openEach(asText, context, async (file) => {
    const { size } = await stat(file.path)
    const isPlain = size >= HEAD_BYTES && (await beginsAsPlainText(file, asText))
    return isPlain ? { ...file, size } : readThrough(file, asText, context)
  })
}

/** Begins to take in a file that is left to its reader. */
export function beginReading({ name, path, size }: UnreadFile, context: SourceContext): FileReading {
  const hash = createHash('sha256')
  const utf8 = checkUtf8()
  let bytes = 0
  return {
    look: (chunk) => {
      hash.update(chunk)
      utf8.push(chunk)
      bytes += chunk.length
      context.progress({ phase: 'reading', bytes, bytesTotal: size })
    },
    end: () => {
      if (bytes !== size) throw changed(name)
      return {
        file: { path: name, bytes, sha256: hash.digest('hex') },
        path,
        bytes,
        invalidUtf8At: utf8.end(),
      }
    },
  }
}

async function openEach<File extends InputFile | UnreadFile>(
  options: OpenFilesOptions,
  context: SourceContext,
  read: (file: NamedPath) => Promise<File | InputFile>,
): Promise<OpenFiles<File | InputFile>> {
  const asked = typeof options.files === 'string' ? [options.files] : options.files
  const patterns = withSlice(asked, context.slice)
  const named = await resolveFiles(patterns, context.cwd)
  const prepared: {
    readonly name: string
    readonly input: File | InputFile
    readonly unchanged: () => Promise<boolean>
  }[] = []
  for (const file of named) {
    prepared.push({ name: file.name, ...(await prepare(file, options, context, read)) })
  }
  return {
    files: prepared.map(({ input }) => input),
    verify: async () => {
      for (const { name, unchanged } of prepared) {
        if (!(await unchanged())) throw changed(name)
      }
    },
  }
}

async function prepare<File extends InputFile | UnreadFile>(
  named: NamedPath,
  options: OpenFilesOptions,
  context: SourceContext,
  read: (file: NamedPath) => Promise<File | InputFile>,
) {
  const { name } = named
  if (named.path === STANDARD_INPUT) {
    const landed = await landOnce(options.stdin ?? process.stdin, context)
    return { input: await readThrough({ name, path: landed }, options, context), unchanged: async () => true }
  }
  const before = await statOf(named)
  if (before.isDirectory()) {
    throw new StetError('STET_SOURCE', `Cannot read "${name}": it is a folder`, {
      hint: `Name its files: ${name.replace(/\/+$/, '')}/*`,
      details: { file: name },
    })
  }
  if (!before.isFile()) {
    // A pipe gives its bytes once, and a run reads a file several times.
    const landed = await landOnce(createReadStream(named.path), context)
    return { input: await readThrough({ name, path: landed }, options, context), unchanged: async () => true }
  }
  const input = await read(named)
  if (BigInt('file' in input ? input.file.bytes : input.size) !== before.size) throw changed(name)
  return { input, unchanged: async () => isSame(before, await statOf(named).catch(() => null)) }
}

async function statOf({ name, path }: NamedPath): Promise<BigIntStats> {
  try {
    return await stat(path, { bigint: true })
  } catch (cause) {
    throw unreadable(name, cause)
  }
}

/** Nanoseconds and inode: a file that was replaced by one of the same size and second is another file. */
function isSame(before: BigIntStats, after: BigIntStats | null): boolean {
  return (
    after !== null &&
    before.dev === after.dev &&
    before.ino === after.ino &&
    before.size === after.size &&
    before.mtimeNs === after.mtimeNs &&
    before.ctimeNs === after.ctimeNs
  )
}

/** Copies a stream that cannot be read twice into the run's folder. */
async function landOnce(chunks: AsyncIterable<Uint8Array>, context: SourceContext): Promise<string> {
  const path = join(context.local.directory, context.local.newName('stream'))
  let bytes = 0
  await writeFile(path, chunks, (chunk) => {
    context.signal.throwIfAborted()
    bytes += chunk.length
    context.progress({ phase: 'reading', bytes })
  })
  return path
}

/** One pass over a file: its hash, and its text made ready. */
async function readThrough(
  { name, path }: NamedPath,
  { content, encoding: named }: OpenFilesOptions,
  context: SourceContext,
): Promise<InputFile> {
  const hash = createHash('sha256')
  const { size } = await stat(path)
  let bytes = 0
  const stream = createReadStream(path, { highWaterMark: 1 << 20 })
  const raw = async function* (): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of stream) {
        context.signal.throwIfAborted()
        hash.update(chunk as Buffer)
        bytes += (chunk as Buffer).length
        context.progress({ phase: 'reading', bytes, bytesTotal: size })
        yield chunk as Buffer
      }
    } catch (cause) {
      throw (cause as NodeJS.ErrnoException).syscall === undefined ? cause : unreadable(name, cause)
    }
  }
  // A refusal in the middle leaves the stream where it is.
  await using _closed = { [Symbol.asyncDispose]: async () => void stream.destroy() }
  const begin = await peek(raw())
  const compression = compressionOf(begin.head)
  // Too short to show what it is, but an archive's smallest beginning all the same.
  if (compression === 'none' && size < 4 && /\.(gz|zst)$/i.test(path)) {
    throw cutOff(name, path.toLowerCase().endsWith('.gz') ? 'gzip' : 'zstd')
  }
  const unpacked = compression === 'none' ? begin : await peek(decompress(begin.chunks, compression, name))
  const text = content === 'text' ? encodingOf(unpacked.head, named, name) : { encoding: 'utf-8', skip: 0 }
  const inPlace = compression === 'none' && text.encoding === 'utf-8' && text.skip === 0
  const afterMark = skipBytes(unpacked.chunks, text.skip)
  const chunks = text.encoding === 'utf-8' ? afterMark : decodeToUtf8(afterMark, text.encoding, name)

  const utf8 = checkUtf8()
  let bytesReady = 0
  const look = (chunk: Uint8Array) => {
    bytesReady += chunk.length
    if (content === 'text') utf8.push(chunk)
  }
  let ready = path
  if (inPlace) {
    for await (const chunk of chunks) look(chunk)
  } else {
    ready = join(context.local.directory, context.local.newName('text'))
    await writeFile(ready, chunks, look)
  }
  return {
    file: { path: name, bytes, sha256: hash.digest('hex') },
    path: ready,
    bytes: bytesReady,
    invalidUtf8At: utf8.end(),
  }
}

/** How many bytes show what a file is. */
const HEAD_BYTES = 8

/** Whether a file is neither packed nor in another encoding than UTF-8, going by its first bytes. */
async function beginsAsPlainText({ name, path }: NamedPath, options: OpenFilesOptions): Promise<boolean> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw unreadable(name, cause)
  })
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const head = buffer.subarray(0, bytesRead)
    if (compressionOf(head) !== 'none') return false
    const { encoding, skip } = encodingOf(head, options.encoding, name)
    return encoding === 'utf-8' && skip === 0
  } finally {
    await file.close()
  }
}

/** The first bytes of a stream (at least eight where it has them) and the stream from its beginning. */
async function peek(
  source: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly chunks: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]()
  const first: Uint8Array[] = []
  let length = 0
  while (length < HEAD_BYTES) {
    const next = await iterator.next()
    if (next.done === true) break
    first.push(next.value)
    length += next.value.length
  }
  const chunks = async function* () {
    yield* first
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
  }
  return { head: Buffer.concat(first).subarray(0, HEAD_BYTES), chunks: chunks() }
}

async function* skipBytes(chunks: AsyncIterable<Uint8Array>, count: number): AsyncIterable<Uint8Array> {
  let left = count
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.length)
    left -= skipped
    if (skipped < chunk.length) yield chunk.subarray(skipped)
  }
}

async function writeFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  look: (chunk: Uint8Array) => void,
): Promise<void> {
  const file: FileHandle = await open(path, 'wx')
  try {
    for await (const chunk of chunks) {
      look(chunk)
      await file.writev([chunk])
    }
  } finally {
    await file.close()
  }
}

function changed(name: string): StetError {
  return new StetError('STET_SOURCE_CHANGED', `Cannot load "${name}": it changed while it was read (G9)`, {
    hint: 'Run again when whoever writes it has finished; writers should put a finished file in place by renaming',
    details: { file: name },
  })
}

function unreadable(name: string, cause: unknown): StetError {
  const { code, message } = cause as NodeJS.ErrnoException
  const reason = code === 'EACCES' ? 'permission denied' : message
  return new StetError('STET_SOURCE', `Cannot read "${name}": ${reason}`, { details: { file: name }, cause })
}
