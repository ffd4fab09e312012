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

export interface OpenFiles {
  readonly files: readonly InputFile[]
  /** Throws `STET_SOURCE_CHANGED` when a file is no longer the one that was opened (G9). */
  verify(): Promise<void>
}

/**
 * Finds the files of a source, hashes them and makes them readable: archives are unpacked and other encodings
 * decoded into the run's folder, all in one pass; plain UTF-8 stays where it is.
 *
 * @throws {StetError} `STET_SOURCE` for a file that is missing, cut off, damaged or of another format.
 */
export async function openFiles(options: OpenFilesOptions, context: SourceContext): Promise<OpenFiles> {
  const asked = typeof options.files === 'string' ? [options.files] : options.files
  const patterns = withSlice(asked, context.slice)
  const named = await resolveFiles(patterns, context.cwd)
  const prepared: { readonly input: InputFile; readonly unchanged: () => Promise<boolean> }[] = []
  for (const file of named) prepared.push(await prepare(file, options, context))
  return {
    files: prepared.map(({ input }) => input),
    verify: async () => {
      for (const { input, unchanged } of prepared) {
        if (!(await unchanged())) throw changed(input.file.path)
      }
    },
  }
}

async function prepare(named: NamedPath, options: OpenFilesOptions, context: SourceContext) {
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
  const input = await readThrough(named, options, context)
  if (BigInt(input.file.bytes) !== before.size) throw changed(name)
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

/** The first bytes of a stream (at least eight where it has them) and the stream from its beginning. */
async function peek(
  source: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly chunks: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]()
  const first: Uint8Array[] = []
  let length = 0
  while (length < 8) {
    const next = await iterator.next()
    if (next.done === true) break
    first.push(next.value)
    length += next.value.length
  }
  const chunks = async function* () {
    yield* first
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
  }
  return { head: Buffer.concat(first).subarray(0, 8), chunks: chunks() }
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
