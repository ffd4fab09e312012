import type { Socket } from 'node:net'
import type { Framer, Piece } from './frames.ts'
import type { Outlet } from './outlet.ts'

export interface PumpOptions {
  readonly from: Socket
  readonly to: Socket
  /** Of `to`. */
  readonly outlet: Outlet
  readonly framer: Framer
  /** Writes what is to go on; a promise makes everything behind it wait. */
  readonly handle: (piece: Piece) => void | Promise<void>
  readonly onFailure: () => void
}

/** Hands the pieces of one direction to `handle`, in order, no faster than `to` takes what is written to it. */
export function pump({ from, to, outlet, framer, handle, onFailure }: PumpOptions): void {
  let pieces: Piece[] = []
  let at = 0
  let isWaiting = false
  let hasEnded = false

  const goOn = () => {
    isWaiting = false
    if (!from.destroyed) from.resume()
    run()
  }
  const wait = (what: Promise<void>) => {
    isWaiting = true
    from.pause()
    what.then(goOn, onFailure)
  }
  const run = () => {
    while (at < pieces.length && !isWaiting) {
      const piece = pieces[at++]
      const done = piece === undefined ? undefined : handle(piece)
      if (done !== undefined) wait(done)
    }
    outlet.flush()
    if (isWaiting) return
    pieces = []
    at = 0
    // Whatever was sent before an orderly end still goes out.
    if (hasEnded) to.end()
    else if (to.writableNeedDrain) wait(drained(to))
  }

  from.on('data', (chunk: Buffer) => {
    const more = framer(chunk)
    if (at === pieces.length) {
      pieces = more
      at = 0
    } else for (const piece of more) pieces.push(piece)
    if (!isWaiting) run()
  })
  from.on('end', () => {
    hasEnded = true
    if (!isWaiting) run()
  })
  from.on('error', () => to.destroy())
  from.on('close', () => {
    if (!hasEnded) to.destroy()
  })
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.once('drain', done)
    socket.once('close', done)
  })
}
