import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Of a run of the run log, what these tests look at. */
export interface LoggedRun {
  readonly runId: string
  readonly slice: string
  readonly status: string
  readonly logicalTime: string | null
}

export interface Ended {
  readonly status: number | null
  /** Both streams, as they came. */
  readonly text: string
}

/** A program that is running. */
export interface Running {
  readonly ended: Promise<Ended>
  /** What it has said until now. */
  text(): string
  kill(signal: NodeJS.Signals): void
}

/** A folder with the pipelines of examples/slices, a `stet` on the path, and an orchestrator's home. */
export interface Workshop extends AsyncDisposable {
  readonly folder: string
  readonly pipelines: string
  /** Starts a program of the orchestrator's environment. */
  start(program: string, args: readonly string[]): Running
  /** The same, to its end. */
  call(program: string, args: readonly string[]): Promise<Ended>
  /** The run log, oldest first. */
  runs(): Promise<readonly LoggedRun[]>
  /** Puts a shell script in front of the real command, which it starts as `"$STET" "$@"`. */
  stetIs(script: string): Promise<void>
}

/**
 * @param bin The folder of the orchestrator's programs.
 * @param env Of the orchestrator, besides the path and where the pipelines are; `{folder}` is the workshop's.
 */
export async function workshop(bin: string, env: Readonly<Record<string, string>>): Promise<Workshop> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-orchestrator-'))
  const pipelines = join(folder, 'pipelines')
  await cp(join(root, 'examples/slices'), pipelines, {
    recursive: true,
    filter: (path) => !path.includes('.duckdb'),
  })
  await mkdir(join(folder, 'bin'))
  await mkdir(join(folder, 'home'))
  const real = join(folder, 'bin', 'real-stet')
  const executable = { mode: 0o755 }
  await writeFile(real, `#!/bin/sh\nexec '${process.execPath}' '${root}dist/cli/bin.js' "$@"\n`, executable)
  const stetIs = (script: string) =>
    writeFile(join(folder, 'bin', 'stet'), `#!/bin/sh\nSTET='${real}'\n${script}\n`, executable)
  await stetIs('exec "$STET" "$@"')
  const its = Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, value.replace('{folder}', folder)]),
  )
  const started = new Set<Running>()
  const start = (program: string, args: readonly string[]): Running => {
    const child = spawn(program, args, {
      cwd: folder,
      env: {
        ...process.env,
        ...its,
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        PIPELINES: pipelines,
        NO_COLOR: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
    }
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (status) => {
        started.delete(running)
        resolve({ status, text })
      })
    })
    const running: Running = { ended, text: () => text, kill: (signal) => child.kill(signal) }
    started.add(running)
    return running
  }
  return {
    folder,
    pipelines,
    start: (program, args) => start(join(bin, program), args),
    call: (program, args) => start(join(bin, program), args).ended,
    stetIs,
    runs: async () => {
      const { text } = await start(real, ['runs', '--json', '--into', join(pipelines, 'stet.duckdb')]).ended
      return (JSON.parse(text) as { runs: LoggedRun[] }).runs.toReversed()
    },
    [Symbol.asyncDispose]: async () => {
      for (const running of started) running.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A file of examples/, with what a test cannot wait for put otherwise. */
export async function example(
  path: string,
  replacements: readonly (readonly [string, string])[] = [],
): Promise<string> {
  let text = await readFile(join(root, 'examples', path), 'utf8')
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new Error(`examples/${path} has no ${from} to replace`)
    text = text.replace(from, to)
  }
  return text
}

/** A pipeline of the name `visits` that says that it reads, and never gets to the end of its source. */
export const HANGING = `import { join } from 'node:path'
import { definePipeline } from 'stet'
import { rows } from 'stet/sources/rows'
import { duckdb } from 'stet/targets/duckdb'

export default definePipeline({
  name: 'visits',
  source: rows({
    columns: { visit: 'text', day: 'date', page: 'text' },
    rows: async function* () {
      process.stderr.write('reading without end\\n')
      yield { visit: 'V-1', day: '2025-05-02', page: '/' }
      await new Promise(() => setInterval(() => {}, 1_000))
    },
  }),
  target: duckdb({ file: join(import.meta.dirname, 'stet.duckdb') }),
  table: 'visits',
  write: { strategy: 'replace-partition', by: 'day', size: 'day', key: ['visit'] },
})
`
