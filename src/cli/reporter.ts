import type { ProgressListener } from '../model/progress.ts'
import type { CliContext } from './context.ts'
import type { ErrorDocument } from './documents.ts'
import { exitStatusOf, type Failure, failureOf, renderFailure, renderStack } from './failure.ts'
import { NO_PROGRESS_LINE, progressLine } from './progress.ts'
import { redact } from './redact.ts'
import { type Colors, colorsFor, escapeLines, wantsColors } from './text.ts'

/** The options that every command has. */
export interface OutputOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  readonly debug?: boolean
}

/** How a command speaks: results on stdout, everything else on stderr. */
export interface Reporter {
  /** For stdout. */
  readonly colors: Colors
  readonly json: boolean
  /** Text that was asked for. Nothing under `--json`. */
  print(text: string): void
  /** The account of what was done: as {@link print}, and nothing under `--quiet`. */
  account(text: string): void
  /** The one JSON document of `--json`; otherwise nothing. */
  document(value: object): void
  /** A sentence beside the result. */
  notice(message: string): void
  /** Tells of an error in words on stderr, and gives what to put into the document of `--json`. */
  failure(error: unknown, pipeline?: string, atLeast?: number): Failure
  readonly onProgress: ProgressListener
  /** Takes the progress line away. */
  endProgress(): void
}

export function reporterFor(context: CliContext, options: OutputOptions): Reporter {
  const { stdout, stderr, env } = context
  const json = options.json === true
  const quiet = options.quiet === true
  const colors = colorsFor(wantsColors(env, stdout.isTerminal))
  const errorColors = colorsFor(wantsColors(env, stderr.isTerminal))
  const line = quiet ? NO_PROGRESS_LINE : progressLine(stderr, context.clock)
  const print = (text: string) => {
    if (!json) line.interrupt(() => stdout.write(`${text}\n`))
  }
  return {
    colors,
    json,
    print,
    account: (text) => {
      if (!quiet) print(text)
    },
    document: (value) => {
      if (json) stdout.write(`${JSON.stringify(value, null, 2)}\n`)
    },
    notice: (message) => {
      if (quiet) return
      const text = `${errorColors.yellow('note:')} ${escapeLines(redact(message))}\n`
      line.interrupt(() => stderr.write(text))
    },
    failure: (error, pipeline, atLeast) => {
      const failure = failureOf(error)
      const debug = options.debug === true || env.STET_DEBUG === '1'
      line.interrupt(() => {
        stderr.write(`${renderFailure(failure, errorColors, pipeline, atLeast)}\n`)
        if (debug) stderr.write(`${renderStack(error)}\n`)
      })
      return failure
    },
    onProgress: line.listener,
    endProgress: line.end,
  }
}

/** Ends a command that has nothing to show but the error: the words, or the document of `--json`. */
export function endWithFailure(reporter: Reporter, error: unknown, atLeast = 1): number {
  reporter.endProgress()
  const failure = reporter.failure(error, undefined, atLeast)
  reporter.document({ format: 'stet-error-1', error: failure } satisfies ErrorDocument)
  return Math.max(atLeast, exitStatusOf(failure))
}
