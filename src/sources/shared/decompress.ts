import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Decompress, type ZstdError, ZstdErrorCode } from 'fzstd'
import { StetError } from '../../errors.ts'

export type Compression = 'gzip' | 'zstd' | 'none'

/** Told by the first bytes, never by the name: a renamed archive is still one. */
export function compressionOf(head: Uint8Array): Compression {
  if (head[0] === 0x1f && head[1] === 0x8b && head[2] === 0x08) return 'gzip'
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) return 'zstd'
  // A skippable frame, with which parallel writers begin.
  if (((head[0] ?? 0) & 0xf0) === 0x50 && head[1] === 0x2a && head[2] === 0x4d && head[3] === 0x18)
    return 'zstd'
  return 'none'
}

/** The bytes in an archive. A cut or damaged one is refused: DuckDB reads it as a shorter file. */
export function decompress(
  chunks: AsyncIterable<Uint8Array>,
  compression: Exclude<Compression, 'none'>,
  name: string,
): AsyncIterable<Uint8Array> {
  return compression === 'gzip' ? gunzip(chunks, name) : unzstd(chunks, name)
}

async function* gunzip(chunks: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array> {
  const engine = createGunzip({ chunkSize: 1 << 18 })
  let taken = 0
  const zerosFrom: number[] = []
  const counted = async function* () {
    for await (const chunk of chunks) {
      const zeros = trailingZeros(chunk)
      if (zeros < chunk.length) zerosFrom[0] = taken + chunk.length - zeros
      taken += chunk.length
      yield chunk
    }
  }
  const source = Readable.from(counted(), { objectMode: true })
  source.once('error', (error) => engine.destroy(error))
  source.pipe(engine)
  try {
    for await (const chunk of engine) yield chunk as Uint8Array
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw cutOff(name, 'gzip', error)
    if (code?.startsWith('Z_') === true) throw damaged(name, 'gzip', message, error)
    throw error
  } finally {
    source.unpipe(engine)
    engine.destroy()
  }
  for await (const _ of source); // what the engine left over, for its length and the file's hash
  // Node stops in silence at what is no further member. Zeros pad a tape; anything else was data.
  if (engine.bytesWritten < (zerosFrom[0] ?? 0)) {
    throw damaged(name, 'gzip', `something else follows after byte ${engine.bytesWritten}`)
  }
}

function trailingZeros(chunk: Uint8Array): number {
  let zeros = 0
  while (zeros < chunk.length && chunk[chunk.length - 1 - zeros] === 0) zeros++
  return zeros
}

async function* unzstd(chunks: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array> {
  let made: Uint8Array[] = []
  const engine = new Decompress((data) => {
    if (data.length > 0) made.push(data)
  })
  const push = (chunk: Uint8Array, final: boolean) => {
    try {
      engine.push(chunk, final)
    } catch (error) {
      if ((error as ZstdError).code === ZstdErrorCode.UnexpectedEOF) throw cutOff(name, 'zstd', error)
      throw damaged(name, 'zstd', (error as Error).message, error)
    }
  }
  for await (const chunk of chunks) {
    push(chunk, false)
    yield* made
    made = []
  }
  push(new Uint8Array(0), true)
  yield* made
}

export function cutOff(name: string, format: string, cause?: unknown): StetError {
  return new StetError('STET_SOURCE', `Cannot read "${name}": the ${format} archive is cut off (G9)`, {
    hint: 'Fetch the file again and compare its size with the original',
    details: { file: name },
    cause,
  })
}

function damaged(name: string, format: string, reason: string, cause?: unknown): StetError {
  return new StetError(
    'STET_SOURCE',
    `Cannot read "${name}": the ${format} archive is damaged: ${reason} (G9)`,
    {
      hint: 'Fetch the file again and compare its checksum with the original',
      details: { file: name },
      cause,
    },
  )
}
