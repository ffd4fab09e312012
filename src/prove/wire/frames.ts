/**
 * One piece of a PostgreSQL message stream: a whole message of a type somebody asked for, or bytes that only pass
 * through (`type` is then the empty string; they may hold several messages or a part of one).
 */
export interface Piece {
  readonly type: string
  readonly bytes: Buffer
}

export type Framer = (chunk: Buffer) => Piece[]

const HEADER = 5

/**
 * Cuts a stream into pieces. A frame is one type byte and a length; only the `wanted` types are collected, so that a
 * COPY of gigabytes runs through without being held.
 */
export function framer(wanted: string): Framer {
  const isWanted = new Uint8Array(256)
  for (const type of wanted) isWanted[type.charCodeAt(0)] = 1
  let header = Buffer.alloc(0)
  /** Bytes of a passing message that are still to come. */
  let passing = 0
  let collecting: { type: string; missing: number; readonly parts: Buffer[] } | null = null

  return (chunk) => {
    const pieces: Piece[] = []
    let at = 0
    let passFrom = 0
    let input = chunk
    const flushPassed = (end: number) => {
      if (end > passFrom) pieces.push({ type: '', bytes: input.subarray(passFrom, end) })
    }
    if (header.length > 0) {
      input = Buffer.concat([header, chunk])
      header = Buffer.alloc(0)
    }
    while (at < input.length) {
      if (collecting !== null) {
        const part = input.subarray(at, at + collecting.missing)
        collecting.parts.push(part)
        collecting.missing -= part.length
        at += part.length
        passFrom = at
        if (collecting.missing > 0) break
        pieces.push({ type: collecting.type, bytes: Buffer.concat(collecting.parts) })
        collecting = null
      } else if (passing > 0) {
        const taken = Math.min(passing, input.length - at)
        passing -= taken
        at += taken
      } else if (input.length - at < HEADER) {
        flushPassed(at)
        header = Buffer.from(input.subarray(at))
        return pieces
      } else {
        const length = 1 + input.readUInt32BE(at + 1)
        const typeCode = input[at] ?? 0
        if (isWanted[typeCode] === 1 && input.length - at >= length) {
          flushPassed(at)
          pieces.push({ type: String.fromCharCode(typeCode), bytes: input.subarray(at, at + length) })
          at += length
          passFrom = at
        } else if (isWanted[typeCode] === 1) {
          flushPassed(at)
          collecting = { type: String.fromCharCode(typeCode), missing: length, parts: [] }
          passFrom = at
        } else passing = length
      }
    }
    flushPassed(at)
    return pieces
  }
}

/** A message of the given type around a body. */
export function message(type: string, ...body: readonly (string | Buffer)[]): Buffer {
  const parts = body.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : part))
  const header = Buffer.alloc(HEADER)
  header.write(type, 0, 'latin1')
  header.writeUInt32BE(4 + parts.reduce((sum, part) => sum + part.length, 0), 1)
  return Buffer.concat([header, ...parts])
}

/** An ErrorResponse as a server would write it. */
export function errorResponse(severity: 'ERROR' | 'FATAL', code: string, text: string): Buffer {
  const fields = `S${severity}\0V${severity}\0C${code}\0M${text}\0\0`
  return message('E', Buffer.from(fields))
}

/** The zero-terminated texts at the start of a message's body. */
export function textsOf(bytes: Buffer, count: number): string[] {
  const texts: string[] = []
  let at = HEADER
  for (let n = 0; n < count; n++) {
    const end = bytes.indexOf(0, at)
    if (end < 0) break
    texts.push(bytes.toString('utf8', at, end))
    at = end + 1
  }
  return texts
}

/** The SQLSTATE of an ErrorResponse. */
export function sqlStateOf(bytes: Buffer): string {
  for (let at = HEADER; at < bytes.length && bytes[at] !== 0; ) {
    const end = bytes.indexOf(0, at + 1)
    if (end < 0) break
    if (bytes[at] === 0x43) return bytes.toString('latin1', at + 1, end)
    at = end + 1
  }
  return 'XX000'
}
