import type { Socket } from 'node:net'
import { Readable } from 'node:stream'

/** The part of the driver's connection that a statement of one's own needs. */
interface Wire {
  readonly stream: Socket
  query(sql: string): void
}

type TakeBytes = (bytes: Buffer) => void

interface Settle {
  resolve(rows: number): void
  reject(error: unknown): void
}

const HEADER_BYTES = 5
const COPY_DATA = 0x64
const COPY_DONE = 0x63
const ERROR_RESPONSE = 0x45

/**
 * `copy … to stdout` as a statement that the driver's client can be given, and the stream of what the server sends.
 *
 * A row is a message of its own. The package that the driver offers for this takes every message apart through a list of
 * buffers, which for a million rows took as long as the server took to send them; here the messages' heads are taken out
 * of each block where it lies.
 */
export class CopyOutStatement extends Readable {
  /** Rows, by the server's own count; settles when it is ready for the next statement. */
  readonly rows: Promise<number>
  readonly #sql: string
  #settle: Settle = { resolve: () => undefined, reject: () => undefined }
  #count = 0
  #socket: Socket | null = null
  #others: TakeBytes | null = null
  readonly #unframe = unframer()

  constructor(sql: string) {
    super({ highWaterMark: 1 << 20 })
    this.#sql = sql
    this.rows = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
  }

  /** Called by the client when it is this statement's turn. */
  submit(connection: Wire): void {
    this.#socket = connection.stream
    const [parser] = this.#socket.listeners('data')
    this.#others = parser as TakeBytes
    this.#socket.removeListener('data', this.#others)
    this.#socket.on('data', this.#take)
    connection.query(this.#sql)
  }

  override _read(): void {
    this.#socket?.resume()
  }

  readonly #take = (block: Buffer): void => {
    const { rows, rest } = this.#unframe(block)
    const isFull = rows.length > 0 && !this.push(rows)
    if (rest === null) {
      if (isFull) this.#socket?.pause()
      return
    }
    this.#giveBack(rest)
    // An error is told by the client, which has been given it.
    if (rest[0] !== ERROR_RESPONSE) this.push(null)
  }

  /** The driver's own parser goes on with what is no row. */
  #giveBack(rest: Buffer): void {
    const others = this.#others
    if (this.#socket === null || others === null) return
    this.#socket.removeListener('data', this.#take)
    this.#socket.on('data', others)
    this.#socket.resume()
    this.#socket = null
    others(rest)
  }

  /** Called by the client. */
  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#count = Number(/^COPY (\d+)/.exec(text)?.[1] ?? 0)
  }

  /** Called by the client. */
  handleError(error: unknown): void {
    this.#settle.reject(error)
    this.destroy(error instanceof Error ? error : new Error(String(error)))
  }

  /** Called by the client. */
  handleReadyForQuery(): void {
    this.#settle.resolve(this.#count)
  }
}

interface Unframed {
  /** The rows that were in the block, without the heads of their messages. */
  readonly rows: Buffer
  /** What begins with the first message that ends the rows; null while they go on. */
  readonly rest: Buffer | null
}

/** Takes the heads of the messages out of a stream of them, wherever it is cut into blocks. */
export function unframer(): (block: Buffer) => Unframed {
  // A head that the last block was cut in, and how much of the current message is yet to come.
  let head: Buffer = Buffer.alloc(0)
  let left = 0
  let isRow = true

  return (received) => {
    const block = head.length === 0 ? received : Buffer.concat([head, received])
    head = Buffer.alloc(0)
    let kept = 0
    let at = 0
    for (;;) {
      const end = Math.min(at + left, block.length)
      if (isRow && end > at) {
        if (kept !== at) block.copyWithin(kept, at, end)
        kept += end - at
      }
      left -= end - at
      at = end
      if (at === block.length) break
      if (block.length - at < HEADER_BYTES) {
        head = Buffer.from(block.subarray(at))
        break
      }
      const code = block[at]
      if (code === COPY_DONE || code === ERROR_RESPONSE) {
        return { rows: block.subarray(0, kept), rest: block.subarray(at) }
      }
      // Notices and settings may come in between; nobody waits for them.
      isRow = code === COPY_DATA
      left = block.readUInt32BE(at + 1) - 4
      at += HEADER_BYTES
    }
    return { rows: block.subarray(0, kept), rest: null }
  }
}
