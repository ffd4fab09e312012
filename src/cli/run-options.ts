import type { Command } from 'commander'
import type { RunOptions } from '../pipeline/types.ts'
import type { CliContext } from './context.ts'
import { parseDuration, parseMemory } from './option-values.ts'
import type { Reporter } from './reporter.ts'

/** The options of everything that runs or plans. */
export interface RunningOptions {
  readonly memoryLimit?: string
  readonly lockTimeout?: number
}

export function addRunningOptions(command: Command): Command {
  return command
    .optionsGroup('How it runs:')
    .option('--memory-limit <size>', "of the local engine, such as 2GB (default: DuckDB's own)", parseMemory)
    .option(
      '--lock-timeout <time>',
      'how long to wait for another run or writer (default: 30s)',
      parseDuration,
    )
}

export function runOptionsOf(options: RunningOptions, context: CliContext, reporter: Reporter): RunOptions {
  return {
    cwd: context.cwd,
    signal: context.signal,
    onProgress: reporter.onProgress,
    onNotice: reporter.notice,
    memoryLimit: options.memoryLimit,
    lockTimeoutMs: options.lockTimeout,
    now: () => context.clock.date(),
  }
}
