import { isUtf8 } from 'node:buffer'

/** Checks a stream of bytes for UTF-8, chunk by chunk. */
export interface Utf8Check {
  push(chunk: Uint8Array): void
  /** Offset of the first byte that is not UTF-8, or null. */
  end(): number | null
}

/** Makes a check whose chunks may be cut in the middle of a character. */
export function checkUtf8(): Utf8Check {
  let offset = 0
  let carry: Uint8Array = new Uint8Array(0)
  let invalidAt: number | null = null
  const examine = (bytes: Uint8Array) => {
    if (isUtf8(bytes)) return
    invalidAt = offset + validPrefix(bytes)
  }
  return {
    push(chunk) {
      if (invalidAt !== null) return
      const bytes = carry.length === 0 ? chunk : Buffer.concat([carry, chunk])
      const whole = bytes.length - openTail(bytes)
      examine(bytes.subarray(0, whole))
      // Copied: a reader may use the chunk's memory again.
      carry = Uint8Array.from(bytes.subarray(whole))
      offset += whole
    },
    end() {
      if (invalidAt === null) examine(carry)
      return invalidAt
    },
  }
}

/** How many bytes at the end begin a character that may go on in the next chunk: 0 to 3. */
function openTail(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

/** Length of the longest valid beginning; by halving, since one check of a whole chunk takes microseconds. */
function validPrefix(bytes: Uint8Array): number {
  let valid = 0
  let invalid = bytes.length
  while (invalid - valid > 4) {
    const middle = (valid + invalid) >>> 1
    const whole = middle - openTail(bytes.subarray(0, middle))
    if (whole <= valid) break
    if (isUtf8(bytes.subarray(valid, whole))) valid = whole
    else invalid = middle
  }
  for (let end = valid + 1; end <= Math.min(valid + 8, bytes.length); end++) {
    if (isUtf8(bytes.subarray(valid, end))) valid = end
  }
  return valid
}
