import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, Server } from 'node:net'
import { StetError } from '../../errors.ts'

export interface Invocation {
  readonly program: string
  readonly args: readonly string[]
}

export interface WrapOptions {
  /** Gives the program a process tree of its own: killing its root kills all it started, detached or not. */
  readonly ownProcesses?: boolean
  /** Only for root: who the program runs as. */
  readonly uid?: number
}

/** What keeps a program away from every network but the servers that `listen` hands out. */
export interface Fence extends AsyncDisposable {
  /** False where the system gives us no network namespace; programs then reach whatever we reach. */
  readonly isClosed: boolean
  /** A listening socket on loopback as the fenced programs see it. 0 takes a free port. */
  listen(port: number): Promise<Server>
  wrap(command: Invocation, options?: WrapOptions): Invocation
}

/**
 * Lives in the namespace, makes its sockets and passes them out: a socket belongs to the namespace it was made in, so
 * we can accept the connections ourselves. Text, since Node cannot run a TypeScript file as it is.
 */
const HOLDER = `
const net = require('node:net')
process.on('disconnect', () => process.exit())
process.on('message', ({ id, port }) => {
  const server = net.createServer()
  server.on('error', (error) => process.send({ id, error: error.message }))
  server.listen(port, '127.0.0.1', () => process.send({ id }, server, () => server.close()))
})
process.send({ id: 0 })
`

/** Databases and container engines also listen on sockets in the file system, which no network namespace hides. */
const MASK_LOCAL_SOCKETS = `
for folder in /run/postgresql /run/mysqld /run/redis; do
  if [ -d $folder ]; then mount -t tmpfs none $folder; fi
done
for socket in /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock; do
  if [ -S $socket ]; then mount --bind /dev/null $socket; fi
done
exec "$@"`

/** Process 1 ignores signals it does not handle, so the command gets a parent. */
const AS_CHILD = '"$@"; exit $?'

/** A fence that keeps programs from the network, or null with the reason why this system has none. */
export async function openFence(): Promise<Fence | { readonly refused: string }> {
  const isRoot = process.getuid?.() === 0
  if (process.platform !== 'linux') return { refused: `${process.platform} has no network namespaces` }
  // Root needs no user namespace, and in one it could not open files of others.
  const namespaces = isRoot ? ['-n'] : ['-rn']
  const raiseLoopback = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
  const holder = spawn('unshare', [...namespaces, ...raiseLoopback, process.execPath, '-e', HOLDER], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { PATH: process.env.PATH },
  })
  const refusal = await firstAnswer(holder)
  if (refusal !== null) return { refused: refusal }
  const fence = closedFence(holder, isRoot)
  const probe = await tryOut(fence)
  if (probe === null) return fence
  await fence[Symbol.asyncDispose]()
  return { refused: probe }
}

/** No fence: the command was allowed to use the network. */
export function openGround(): Fence {
  return {
    isClosed: false,
    listen: async (port) => {
      const server = createServer().listen(port, '127.0.0.1')
      await once(server, 'listening')
      return server
    },
    wrap: (command) => command,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

function closedFence(holder: ChildProcess, isRoot: boolean): Fence {
  const waiting = new Map<number, (answer: Server | string) => void>()
  holder.on('message', ({ id, error }: { id: number; error?: string }, handle: unknown) => {
    waiting.get(id)?.(handle instanceof Server ? handle : (error ?? 'no socket'))
    waiting.delete(id)
  })
  let asked = 0
  const target = ['-t', String(holder.pid), '-n', ...(isRoot ? [] : ['-U', '--preserve-credentials'])]
  /** Inside the user namespace we are its root; programs shall see themselves as who they are. */
  const asOneself = isRoot
    ? []
    : ['unshare', '-U', `--map-user=${process.getuid?.()}`, `--map-group=${process.getgid?.()}`]
  return {
    isClosed: true,
    async listen(port) {
      const id = ++asked
      const answer = await new Promise<Server | string>((resolve) => {
        waiting.set(id, resolve)
        holder.send({ id, port })
      })
      if (typeof answer === 'string') {
        throw new StetError('STET_USAGE', `Cannot listen on port ${port}: ${answer}`)
      }
      return answer
    },
    wrap({ program, args }, { ownProcesses = false, uid } = {}) {
      const identity =
        uid === undefined ? [] : ['--reuid', String(uid), '--regid', String(uid), '--clear-groups']
      // The kernel ends it when we are gone, even when we were killed and could not.
      const dieWithUs = ['setpriv', ...identity, '--pdeathsig', 'KILL']
      const tree = ownProcesses
        ? ['unshare', '-m', '-p', '-f', '--kill-child', 'sh', '-c', MASK_LOCAL_SOCKETS, 'sh']
        : []
      const asChild = ownProcesses ? ['sh', '-c', AS_CHILD, 'sh'] : []
      return {
        program: 'nsenter',
        args: [...target, '--', ...dieWithUs, ...tree, ...asOneself, ...asChild, program, ...args],
      }
    },
    [Symbol.asyncDispose]: async () => {
      if (holder.exitCode !== null || holder.signalCode !== null) return
      const ended = once(holder, 'exit')
      holder.kill('SIGKILL')
      await ended
    },
  }
}

/** Null when the holder is up, else what it said instead. */
async function firstAnswer(holder: ChildProcess): Promise<string | null> {
  let complaint = ''
  holder.stderr?.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  return new Promise((resolve) => {
    holder.once('message', () => resolve(null))
    holder.once('error', (error) => resolve(error.message))
    holder.once('close', () => resolve(complaint.trim() || 'unshare ended at once'))
  })
}

/** The programs of older systems lack one option or another: better to learn it now than in the first trial. */
async function tryOut(fence: Fence): Promise<string | null> {
  const { program, args } = fence.wrap({ program: 'true', args: [] }, { ownProcesses: true })
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString()
  })
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (status) => resolve(status === 0 ? null : complaint.trim() || `status ${status}`))
  })
}
