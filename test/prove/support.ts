import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Proof, type ProveOptions, prove } from '../../src/prove/prove.ts'
import { type Fence, openFence, openGround } from '../../src/prove/sandbox/fence.ts'
import { findPrograms } from '../../src/prove/sandbox/programs.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'

/** A proof is dozens of runs, on a machine that may have other things to do. */
export const PATIENCE_MS = 300_000

export const samples = fileURLToPath(new URL('samples', import.meta.url))

/** The fence where the system has one, as `stet prove` does it. */
export async function testFence(): Promise<Fence> {
  const fence = await openFence()
  return 'refused' in fence ? openGround() : fence
}

export const pythonLacks = (module: string): boolean =>
  spawnSync('python', ['-c', `import ${module}`]).status !== 0
export const hasPsql = spawnSync('psql', ['--version']).status === 0

export async function proveIt(
  options: Partial<ProveOptions> & Pick<ProveOptions, 'command' | 'workFolder'>,
  prover: typeof prove = prove,
): Promise<Proof> {
  await using fence = await testFence()
  return await prover({
    filling: { kind: 'empty' },
    watched: [],
    databaseFiles: [],
    passed: [],
    environment: process.env,
    ignore: [],
    replies: [],
    change: null,
    listenPort: 0,
    traceFiles: true,
    kinds: ['kill before', 'kill after', 'cut before', 'cut after', 'error', 'overlap'],
    isExhaustive: false,
    tryAll: false,
    jobs: 2,
    budgetMs: Number.POSITIVE_INFINITY,
    timeLimitMs: 60_000,
    failOn: DEFAULT_FAIL_ON,
    replay: null,
    programs: await findPrograms(process.env['PATH'] ?? ''),
    fence,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onKept: null,
    ...options,
  })
}
