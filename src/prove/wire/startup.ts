import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { reset } from './reset.ts'
import { selfSigned } from './self-signed.ts'

/** Where the server listens: on a port, or on a socket in the file system. */
export type Upstream = { readonly host: string; readonly port: number } | { readonly path: string }

export interface Startup {
  /** The client's side, decrypted where it wanted TLS. */
  readonly client: Socket
  /** The startup packet with the parameters exchanged, ready for the server. */
  readonly packet: Buffer
  /** What the client sent behind it already. */
  readonly rest: Buffer
}

const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
const CANCEL_REQUEST = 80877102
const TLS_HANDSHAKE = 0x16

/**
 * Leads a client through everything before its first real message: declines GSS, answers TLS with a certificate of
 * our own (`sslmode=require` does not verify it), forwards a cancel request. Null when that was all it wanted.
 */
export async function readStartup(
  socket: Socket,
  upstream: Upstream,
  parameters: Readonly<Record<string, string>>,
): Promise<Startup | null> {
  let client = socket
  let reader = byteReader(client)
  for (;;) {
    const first = await reader.take(1)
    if (first === null) return null
    if (first[0] === TLS_HANDSHAKE) {
      // PostgreSQL 17's sslnegotiation=direct: the handshake comes without being asked for.
      reader.putBack(first)
      client = encrypted(client, reader.release(), ['postgresql'])
      reader = byteReader(client)
      continue
    }
    const lengthRest = await reader.take(3)
    if (lengthRest === null) return null
    const length = Buffer.concat([first, lengthRest]).readUInt32BE()
    const body = await reader.take(length - 4)
    if (body === null) return null
    const code = body.readUInt32BE()
    if (code === GSS_REQUEST) client.write('N')
    else if (code === SSL_REQUEST) {
      client.write('S')
      client = encrypted(client, reader.release())
      reader = byteReader(client)
    } else if (code === CANCEL_REQUEST) {
      connect(upstream)
        .on('error', () => undefined)
        .end(packed(body))
      client.end()
      return null
    } else return { client, packet: withParameters(body, parameters), rest: reader.release() }
  }
}

function encrypted(socket: Socket, early: Buffer, alpn?: string[]): Socket {
  if (early.length > 0) socket.unshift(early)
  const { key, cert } = selfSigned()
  const options = { isServer: true, key, cert, ...(alpn === undefined ? {} : { ALPNProtocols: alpn }) }
  const secure = new TLSSocket(socket, options)
  // Node resets the TCP connection below only when asked to itself.
  secure.resetAndDestroy = () => {
    reset(socket)
    return secure.destroy()
  }
  return secure
}

function packed(body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return Buffer.concat([length, body])
}

/** A job may have its database's name built in: the sandbox decides where it lands. */
function withParameters(body: Buffer, changed: Readonly<Record<string, string>>): Buffer {
  const texts = body.toString('utf8', 4).split('\0')
  const parameters: Record<string, string> = {}
  for (let at = 0; at + 1 < texts.length && texts[at] !== ''; at += 2) {
    parameters[texts[at] ?? ''] = texts[at + 1] ?? ''
  }
  const all = Object.entries({ ...parameters, ...changed }).flat()
  return packed(Buffer.concat([body.subarray(0, 4), Buffer.from(`${all.join('\0')}\0\0`)]))
}

interface ByteReader {
  /** Exactly so many bytes; null when the client went away before. */
  take(count: number): Promise<Buffer | null>
  putBack(bytes: Buffer): void
  /** Stops reading; what has been read and not taken. */
  release(): Buffer
}

function byteReader(socket: Socket): ByteReader {
  let bytes = Buffer.alloc(0)
  let hasEnded = false
  let wake: () => void = () => undefined
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    wake()
  }
  const onEnd = () => {
    hasEnded = true
    wake()
  }
  socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
  return {
    async take(count) {
      while (bytes.length < count) {
        if (hasEnded) return null
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const taken = bytes.subarray(0, count)
      bytes = bytes.subarray(count)
      return taken
    },
    putBack(back) {
      bytes = Buffer.concat([back, bytes])
    },
    release() {
      // The error listener stays: a socket without one would end the process.
      socket.off('data', onData).off('end', onEnd).off('close', onEnd)
      socket.pause()
      return bytes
    },
  }
}
