import type { Socket } from 'node:net'

/** Collects what is written to a socket in one go: a system call for each message would cost more than its parsing. */
export interface Outlet {
  write(bytes: Buffer): void
  /** Hands everything collected to the socket. */
  flush(): void
}

/** Up to here copying is cheaper than a write of several pieces. */
const COPIED_BYTES = 16 * 1024

export function outletOf(socket: Socket): Outlet {
  let waiting: Buffer[] = []
  return {
    write(bytes) {
      const last = waiting.at(-1)
      const joined = last === undefined ? null : asOne(last, bytes)
      if (joined === null) waiting.push(bytes)
      else waiting[waiting.length - 1] = joined
    },
    flush() {
      const [first] = waiting
      if (first === undefined) return
      const all = waiting
      waiting = []
      if (all.length === 1) socket.write(first)
      else if (all.reduce((sum, one) => sum + one.length, 0) <= COPIED_BYTES) socket.write(Buffer.concat(all))
      else {
        socket.cork()
        for (const one of all) socket.write(one)
        socket.uncork()
      }
    },
  }
}

/** Messages that came in one chunk lie behind one another in memory. */
function asOne(before: Buffer, after: Buffer): Buffer | null {
  if (before.buffer !== after.buffer || before.byteOffset + before.length !== after.byteOffset) return null
  return Buffer.from(before.buffer, before.byteOffset, before.length + after.length)
}
