import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, open, write } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { StetError } from '../../errors.ts'
import type { Fence, Invocation } from '../sandbox/fence.ts'
import { deferred } from '../wire/deferred.ts'
import { fileCallOf, nameOfCall, WATCHED_CALLS } from './calls.ts'
import { type FileChange, fileCounter } from './changes.ts'

export interface FileTraceOptions {
  /** Where its own pipe may lie. */
  readonly folder: string
  /** The command's folder, and its home: what outlives a run. */
  readonly work: string
  readonly home: string
  /** Names that differ in digits or endings made up by chance count as one. */
  readonly foldNames: boolean
  readonly counts: (path: string) => boolean
  readonly onChange: (change: FileChange) => void
  /** Keeps whoever made this call waiting after it, so that a kill finds nothing else done. */
  readonly delay: { readonly call: string; readonly ms: number } | null
}

/** Sees the file calls of a command and all it starts, in any language, in their order. */
export interface FileTrace extends AsyncDisposable {
  wrap(command: Invocation): Invocation
  /** How often each system call was seen, on files of the command and others. */
  readonly calls: ReadonlyMap<string, number>
  readonly changes: number
  /** Calls `act` at once when a change fits; not for later ones. */
  when(fits: (change: FileChange) => boolean, act: () => void): void
  /** All that the command did until it ended has been told. */
  settled(): Promise<void>
}

const END = 'stet: the command has ended'

/** Needs strace and the right to trace; see `canTrace`. */
export async function startFileTrace(options: FileTraceOptions): Promise<FileTrace> {
  const { folder, work, onChange } = options
  const fifo = join(folder, 'strace')
  await makeFifo(fifo)
  // Opened for writing too, or it would end with the first writer.
  const descriptor = await promisify(open)(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  const counter = fileCounter(options)
  const calls = new Map<string, number>()
  let waiting: { readonly fits: (change: FileChange) => boolean; readonly act: () => void } | null = null
  let changes = 0
  const hasEnded = deferred()

  const take = (line: string) => {
    if (line === END) return hasEnded.resolve()
    const name = nameOfCall(line)
    if (name === null) return undefined
    calls.set(name, (calls.get(name) ?? 0) + 1)
    const call = fileCallOf(line, work)
    const change = call === null ? null : counter(call)
    if (change === null) return undefined
    if (change.verb === 'settle') return onChange(change)
    changes += 1
    const found = waiting
    if (found?.fits(change) === true) {
      waiting = null
      found.act()
    }
    return onChange(change)
  }
  const socket = readLines(descriptor, take)
  return {
    calls,
    get changes() {
      return changes
    },
    wrap: ({ program, args }) => ({
      program: 'strace',
      args: [...straceArgs(fifo, options.delay), '--', program, ...args],
    }),
    when(fits, act) {
      waiting = { fits, act }
    },
    async settled() {
      // A line may have been cut off by the kill.
      await promisify(write)(descriptor, Buffer.from(`\n${END}\n`))
      await hasEnded.promise
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(socket, 'close')
      socket.destroy()
      await closed
    },
  }
}

/** `-D`: the command stays our child, and what it leaves running does not keep us waiting. */
function straceArgs(output: string, delay: FileTraceOptions['delay']): readonly string[] {
  const inject = delay === null ? [] : ['-e', `inject=${delay.call}:delay_exit=${Math.ceil(delay.ms * 1000)}`]
  const watched = ['-e', `trace=${WATCHED_CALLS.map((name) => `?${name}`).join(',')}`, '-e', 'signal=none']
  return ['-D', '-f', '-qq', '--seccomp-bpf', '-y', '-z', '-s', '0', ...watched, ...inject, '-o', output]
}

/** Null when commands can be traced here, else the reason why not. */
export async function whyNoTrace(fence: Fence, path: string): Promise<string | null> {
  const program = { program: 'strace', args: [...straceArgs('/dev/null', null), '--', 'true'] }
  const { program: file, args } = fence.wrap(program, { ownProcesses: true })
  const child = spawn(file, args, { env: { PATH: path }, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  return new Promise((resolve) => {
    child.once('error', () => resolve('strace is not installed'))
    child.once('close', (status) => {
      if (status === 0 && complaint === '') resolve(null)
      else
        resolve(
          /not found|No such file/.test(complaint) ? 'strace is not installed' : 'strace may not trace here',
        )
    })
  })
}

async function makeFifo(path: string): Promise<void> {
  const child = spawn('mkfifo', [path], { stdio: 'ignore' })
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new StetError('STET_INTERNAL', `Cannot make the pipe ${path}`)
}

function readLines(fd: number, take: (line: string) => void): Socket {
  const socket = new Socket({ fd, readable: true, writable: false })
  let rest = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  })
  socket.on('error', () => undefined)
  return socket
}
