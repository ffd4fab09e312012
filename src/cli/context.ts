/** Where text goes: the part of a stream that commands need. */
export interface Output {
  write(text: string): void
  readonly isTerminal: boolean
  /** Width of the terminal. */
  readonly columns: number
}

/** Time, so that tests can hold it still. */
export interface Clock {
  /** Milliseconds that only ever grow. */
  now(): number
  /** What day it is; chooses no slice, and only says which of them have ended. */
  date(): Date
  /** Calls again and again until the returned function is called. Never keeps the process alive. */
  every(intervalMs: number, callback: () => void): () => void
}

/** What a command has of its surroundings. Nothing in src/cli but `bin.ts` reaches for `process`. */
export interface CliContext {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** `user@host`: who a change of the record was made by. */
  readonly user: string
  readonly clock: Clock
  /** Fires when the person or the system asks to stop. */
  readonly signal: AbortSignal
}
