import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import type { Fence, Invocation } from './fence.ts'

export interface RunOptions {
  readonly fence: Fence
  readonly command: Invocation
  readonly folder: string
  readonly environment: NodeJS.ProcessEnv
  readonly timeLimitMs: number
}

export interface Outcome {
  /** Null when a signal ended it. */
  readonly status: number | null
  readonly ms: number
  /** The end of what it wrote to stdout and stderr. */
  readonly output: string
  readonly end: 'by itself' | 'killed' | 'time limit'
  /** The command could not be started at all. */
  readonly failure: string | null
}

export interface RunningCommand {
  readonly ended: Promise<Outcome>
  /** Ends it and everything it started, at once, as a crash of the machine would. */
  kill(): Promise<Outcome>
}

const OUTPUT_KEPT = 16_384

/** Starts the command without a terminal and without input, in a process tree of its own. */
export function startCommand({
  fence,
  command,
  folder,
  environment,
  timeLimitMs,
}: RunOptions): RunningCommand {
  const { program: file, args } = fence.wrap(command, { ownProcesses: true })
  const started = performance.now()
  const child = spawn(file, args, {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const output = tailOf(child)
  let end: Outcome['end'] = 'by itself'

  const ended = new Promise<Outcome>((resolve) => {
    let failure: string | null = null
    const finish = (status: number | null) => {
      clearTimeout(timer)
      resolve({ status, ms: performance.now() - started, output: output(), end, failure })
    }
    child.once('error', (error) => {
      failure = error.message
      finish(null)
    })
    // 'exit', not 'close': a process it left behind may hold the pipes for ever.
    child.once('exit', (status) => {
      const finished = killTree(child, environment.STET_TRIAL ?? '', fence).then(() => finish(status))
      void finished
    })
  })
  const killFor = async (reason: Outcome['end']) => {
    end = reason
    await killTree(child, environment.STET_TRIAL ?? '', fence)
    return ended
  }
  const timer = setTimeout(() => void killFor('time limit'), timeLimitMs)
  return { ended, kill: () => killFor('killed') }
}

function tailOf(child: ChildProcess): () => string {
  let kept = Buffer.alloc(0)
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      kept = Buffer.concat([kept, chunk]).subarray(-OUTPUT_KEPT)
    })
    stream?.on('error', () => undefined)
  }
  return () => kept.toString('utf8').trim()
}

async function killTree(child: ChildProcess, trial: string, fence: Fence): Promise<void> {
  if (child.pid === undefined) return
  killQuietly(-child.pid)
  // Behind a fence all of them share a process namespace, which ends with its first process.
  if (fence.isClosed || trial === '') return
  for (const pid of await processesOf(trial)) killQuietly(pid)
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone already, which is what was wanted.
  }
}

/** Processes that left the group are still known by their environment. */
async function processesOf(trial: string): Promise<readonly number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name)) continue
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')
    if (environment.split('\0').includes(`STET_TRIAL=${trial}`)) found.push(Number(name))
  }
  return found
}
