import type { Progress, ProgressListener } from '../model/run.ts'
import type { Clock, Output } from './context.ts'
import { cut } from './text.ts'
import { countOf, formatBytes, formatDuration, groupDigits } from './words.ts'

/** A run that is over sooner shows no progress. */
const SHOW_AFTER_MS = 1000
const REDRAW_MS = 200

const CLEAR_LINE = '\r\u001b[K'

export interface ProgressLine {
  readonly listener: ProgressListener
  /** Takes the line away, runs `print`, and lets the line come back with the next redraw. */
  interrupt(print: () => void): void
  /** Takes the line away for good. */
  end(): void
}

/** Nothing to show, for pipes, `--quiet` and `--json`. */
export const NO_PROGRESS_LINE: ProgressLine = {
  listener: () => {},
  interrupt: (print) => print(),
  end: () => {},
}

/** One line that is rewritten while a run works, on a terminal only. */
export function progressLine(output: Output, clock: Clock): ProgressLine {
  if (!output.isTerminal) return NO_PROGRESS_LINE
  const startedAt = clock.now()
  let latest: Progress | null = null
  let phaseStartedAt = startedAt
  let shown = false

  const redraw = () => {
    const now = clock.now()
    if (now - startedAt < SHOW_AFTER_MS) return
    // A line that fills the last column would wrap, and could not be rewritten any more.
    output.write(CLEAR_LINE + cut(describeProgress(latest, now - phaseStartedAt), output.columns - 1))
    shown = true
  }
  const hide = () => {
    if (shown) output.write(CLEAR_LINE)
    shown = false
  }
  const stopRedrawing = clock.every(REDRAW_MS, redraw)
  return {
    listener: (progress) => {
      if (latest?.phase !== progress.phase) phaseStartedAt = clock.now()
      latest = progress
    },
    interrupt: (print) => {
      hide()
      print()
    },
    end: () => {
      stopRedrawing()
      hide()
    },
  }
}

const PHASES = {
  reading: 'reading the source',
  transforming: 'transforming',
  waiting: 'waiting',
  pulling: "reading the target's rows",
  comparing: 'comparing',
  writing: 'writing',
} as const satisfies Record<Progress['phase'], string>

/**
 * `reading the source  1,200,000 rows  45.1 MB of 115 MB  600,000 rows/s  3.1 s left`; where there is nothing to count,
 * how long it has taken so far.
 */
export function describeProgress(progress: Progress | null, elapsedMs: number): string {
  const { phase, rows, bytes, bytesTotal } = progress ?? {}
  const parts: string[] = [phase === undefined ? 'working' : PHASES[phase]]
  if (rows === undefined && bytes === undefined) parts.push(formatDuration(elapsedMs))
  if (rows !== undefined) parts.push(countOf(rows, 'row'))
  if (bytes !== undefined) {
    parts.push(
      bytesTotal === undefined ? formatBytes(bytes) : `${formatBytes(bytes)} of ${formatBytes(bytesTotal)}`,
    )
  }
  // The first moments of a phase say nothing about its speed.
  if (elapsedMs >= REDRAW_MS) {
    if (rows !== undefined && rows > 0) parts.push(`${groupDigits(perSecond(rows, elapsedMs))} rows/s`)
    else if (bytes !== undefined && bytes > 0) parts.push(`${formatBytes(perSecond(bytes, elapsedMs))}/s`)
    if (bytes !== undefined && bytes > 0 && bytesTotal !== undefined && bytesTotal > bytes) {
      parts.push(`${formatDuration(((bytesTotal - bytes) / bytes) * elapsedMs)} left`)
    }
  }
  return parts.join('  ')
}

function perSecond(count: number, elapsedMs: number): number {
  return Math.round((count * 1000) / elapsedMs)
}
