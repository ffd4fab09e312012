/** Finds where the records of a CSV stream end, chunk by chunk. */
export interface RecordEnds {
  /** Offset in the chunk behind the last record that ends in it; 0 when none does. */
  push(chunk: Uint8Array): number
  /** Records that have ended. */
  readonly records: number
  /** Bytes of the longest record since the last call, one that has not ended included. */
  takeLongest(): number
}

const QUOTE = 0x22
const NEWLINE = 0x0a

/** A newline ends a record unless the quotes before it are odd in number. */
export function findRecordEnds(): RecordEnds {
  let quoted = false
  let records = 0
  let length = 0
  let longest = 0
  return {
    push(chunk) {
      let start = 0
      for (let i = 0; i < chunk.length; i++) {
        const byte = chunk[i]
        if (byte === QUOTE) quoted = !quoted
        else if (byte === NEWLINE && !quoted) {
          records++
          longest = Math.max(longest, length + i + 1 - start)
          start = i + 1
          length = 0
        }
      }
      length += chunk.length - start
      return start
    },
    get records() {
      return records
    },
    takeLongest() {
      const taken = Math.max(longest, length)
      longest = 0
      return taken
    },
  }
}
