import type { Progress, ProgressListener } from '../model/progress.ts'
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
  let pace: Pace = { phaseStartedAt: startedAt, first: null, latest: null }
  let shown = false

  const redraw = () => {
    const now = clock.now()
    if (now - startedAt < SHOW_AFTER_MS) return
    // A line that fills the last column would wrap, and could not be rewritten any more.
    output.write(CLEAR_LINE + cut(describePace(pace, now), output.columns - 1))
    shown = true
  }
  const hide = () => {
    if (shown) output.write(CLEAR_LINE)
    shown = false
  }
  const stopRedrawing = clock.every(REDRAW_MS, redraw)
  return {
    listener: (progress) => {
      const told = { at: clock.now(), progress }
      pace =
        pace.latest !== null && phaseOf(pace.latest.progress) === phaseOf(progress)
          ? { ...pace, first: countsMore(pace.first, progress) ? told : pace.first, latest: told }
          : { phaseStartedAt: told.at, first: told, latest: told }
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
  opening: 'opening the target',
  reading: 'reading the source',
  checking: 'checking what was read',
  transforming: 'transforming',
  waiting: 'waiting',
  pulling: "reading the target's rows",
  comparing: 'comparing',
  writing: 'writing',
} as const satisfies Record<Phase, string>

type Phase = Progress['phase'] | 'checking'

/** When all bytes are in, the rows still have to be found in them and read: no more bytes come, and it is no standstill. */
function phaseOf({ phase, bytes, bytesTotal }: Progress): Phase {
  return phase === 'reading' && bytes !== undefined && bytesTotal !== undefined && bytes >= bytesTotal
    ? 'checking'
    : phase
}

interface Told {
  readonly at: number
  readonly progress: Progress
}

/** What was told of the phase that is under way. */
export interface Pace {
  readonly phaseStartedAt: number
  readonly first: Told | null
  readonly latest: Told | null
}

/**
 * `reading the source  1,200,000 rows  45.1 MB of 115 MB  600,000 rows/s  3.1 s left`; where nothing moves that could
 * be counted, how long the phase has taken so far.
 */
export function describePace(pace: Pace, now: number): string {
  const { rows, bytes, bytesTotal } = pace.latest?.progress ?? {}
  const phase = pace.latest === null ? null : phaseOf(pace.latest.progress)
  const parts: string[] = [phase === null ? 'working' : PHASES[phase]]
  if (rows !== undefined) parts.push(countOf(rows, 'row'))
  if (bytes !== undefined) {
    parts.push(
      bytesTotal === undefined || phase === 'checking'
        ? formatBytes(bytes)
        : `${formatBytes(bytes)} of ${formatBytes(bytesTotal)}`,
    )
  }
  const rowRate = rateOf(pace, 'rows')
  const byteRate = rateOf(pace, 'bytes')
  if (rowRate !== null) parts.push(`${groupDigits(Math.round(rowRate))} rows/s`)
  else if (byteRate !== null) parts.push(`${formatBytes(byteRate)}/s`)
  else parts.push(formatDuration(now - pace.phaseStartedAt))
  if (byteRate !== null && bytes !== undefined && bytesTotal !== undefined && bytesTotal > bytes) {
    parts.push(`${formatDuration(((bytesTotal - bytes) / byteRate) * 1000)} left`)
  }
  return parts.join('  ')
}

/** Whether this is the first that is told with a number, of the phase: only from then on there is a pace. */
function countsMore(first: Told | null, progress: Progress): boolean {
  const { rows, bytes } = first?.progress ?? {}
  return (
    (rows === undefined && progress.rows !== undefined) ||
    (bytes === undefined && progress.bytes !== undefined)
  )
}

/** Per second, between what was told first and last: one number alone may be a total, and says nothing of speed. */
function rateOf({ first, latest }: Pace, unit: 'rows' | 'bytes'): number | null {
  const from = first?.progress[unit]
  const to = latest?.progress[unit]
  if (first === null || latest === null || from === undefined || to === undefined) return null
  return to > from && latest.at > first.at ? ((to - from) * 1000) / (latest.at - first.at) : null
}
