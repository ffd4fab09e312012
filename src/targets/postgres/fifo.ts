import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket, type SocketConstructorOpts } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { LocalConnection } from '../../model/local.ts'

/** A named pipe in the run's folder, with its read end open. */
export interface Fifo extends AsyncDisposable {
  readonly path: string
  readonly readEnd: Socket
}

/** A named pipe in the run's folder, which the local engine can read like a file, once. */
export interface WritableFifo extends AsyncDisposable {
  readonly path: string
  /**
   * Waits until somebody has opened the pipe for reading, and opens it for writing: what is written sooner is lost when the
   * writer is done before the reader has come. Null when `over` says that nobody will.
   */
  openWriteEnd(over: () => boolean): Promise<Socket | null>
}

/**
 * Makes a pipe that the local engine can write to as to a file. The read end is opened without blocking and read through
 * the event loop: a blocking open or `createReadStream` would hold one of the four threads that the engine's statement
 * needs too, and a statement that fails before it opens the pipe would never let go.
 */
export async function makeFifo(local: LocalConnection): Promise<Fifo> {
  const path = await makePipe(local)
  const readEnd = openEnd(path, constants.O_RDONLY, { readable: true, writable: false, allowHalfOpen: true })
  return { path, readEnd, [Symbol.asyncDispose]: () => dispose(path, readEnd) }
}

/** Makes a pipe that the local engine can read. */
export async function makeWritableFifo(local: LocalConnection): Promise<WritableFifo> {
  const path = await makePipe(local)
  let writeEnd: Socket | null = null
  return {
    path,
    openWriteEnd: async (over) => {
      while (writeEnd === null && !over()) {
        try {
          writeEnd = openEnd(path, constants.O_WRONLY, { readable: false, writable: true })
        } catch (error) {
          // There is no reader yet. A blocking open would wait for one, and hold a thread that the reader may need.
          if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error
          await setTimeout(READER_POLL_MS)
        }
      }
      return writeEnd
    },
    [Symbol.asyncDispose]: () => dispose(path, writeEnd),
  }
}

const READER_POLL_MS = 1

async function makePipe(local: LocalConnection): Promise<string> {
  const path = join(local.directory, `${local.newName('pipe')}.fifo`)
  await promisify(execFile)('mkfifo', ['-m', '600', path])
  return path
}

function openEnd(path: string, flags: number, options: SocketConstructorOpts): Socket {
  const fd = openSync(path, flags | constants.O_NONBLOCK)
  try {
    return new Socket({ ...options, fd })
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

async function dispose(path: string, end: Socket | null): Promise<void> {
  end?.destroy()
  await rm(path, { force: true })
}
