import { main } from '../../src/cli/main.ts'

/** What a command line did, run within this process. */
export interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
  /** The document of `--json`. */
  document(): Record<string, unknown>
}

export interface RanWith {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** The present, where a test needs another one. */
  readonly date?: Date
}

/** Runs a command line of tests within this process, with nothing of the process but the folder. */
export async function runCli(
  argv: readonly string[],
  { cwd, env = {}, signal, date }: RanWith,
): Promise<Ran> {
  const written = { stdout: '', stderr: '' }
  const output = (name: keyof typeof written) => ({
    isTerminal: false,
    columns: 100,
    write: (text: string) => {
      written[name] += text
    },
  })
  const status = await main(argv, {
    stdout: output('stdout'),
    stderr: output('stderr'),
    env,
    cwd,
    user: 'tester@here',
    clock: { now: () => 0, date: () => date ?? new Date(), every: () => () => {} },
    signal: signal ?? new AbortController().signal,
  })
  return { status, ...written, document: () => JSON.parse(written.stdout) as Record<string, unknown> }
}
