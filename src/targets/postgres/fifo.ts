import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LocalConnection } from '../../model/local.ts'

/** A named pipe in the run's folder, with its read end open. */
export interface Fifo extends AsyncDisposable {
  readonly path: string
  readonly readEnd: Socket
}

/**
 * Makes a pipe that the local engine can write to as to a file. The read end is opened without blocking and read through
 * the event loop: a blocking open or `createReadStream` would hold one of the four threads that the engine's statement
 * needs too, and a statement that fails before it opens the pipe would never let go.
 */
export async function makeFifo(local: LocalConnection): Promise<Fifo> {
  const path = join(local.directory, `${local.newName('pipe')}.fifo`)
  await promisify(execFile)('mkfifo', ['-m', '600', path])
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  let readEnd: Socket
  try {
    readEnd = new Socket({ fd, readable: true, writable: false, allowHalfOpen: true })
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return {
    path,
    readEnd,
    [Symbol.asyncDispose]: async () => {
      readEnd.destroy()
      await rm(path, { force: true })
    },
  }
}
