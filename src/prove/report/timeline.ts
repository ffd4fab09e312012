import type { Point } from '../plan/points.ts'
import type { Fault } from '../plan/trials.ts'

const SHOWN_AROUND = 2
const LABEL_WIDTH = 64

/** The points around a fault, with the place of the cut. */
export function timelineOf(fault: Fault, points: readonly Point[]): readonly string[] {
  const at = fault.position - 1
  const isBefore = fault.kind === 'kill before' || fault.kind === 'cut before' || fault.kind === 'error'
  const from = Math.max(0, at - SHOWN_AROUND)
  const to = Math.min(points.length, at + SHOWN_AROUND + 1)
  const lines: string[] = []
  if (from > 0) lines.push(`    … ${from} before`)
  for (let n = from; n < to; n++) {
    const point = points[n]
    if (point === undefined) continue
    if (n === at && isBefore) lines.push(scissors(fault))
    const isDone = n < at || (n === at && !isBefore)
    lines.push(line(n + 1, point, state(point, isDone, n === at, fault)))
    if (n === at && !isBefore) lines.push(scissors(fault))
  }
  if (to < points.length) lines.push(`    … ${points.length - to} more`)
  return lines
}

function line(n: number, point: Point, outcome: string): string {
  const text = point.what.join('; ')
  const shown = text.length > LABEL_WIDTH ? `${text.slice(0, LABEL_WIDTH - 1)}…` : text
  return `${String(n).padStart(5)}  ${shown.padEnd(LABEL_WIDTH)}  ${outcome}`
}

function state({ kind }: Point, isDone: boolean, isHere: boolean, fault: Fault): string {
  if (isDone) return kind === 'commit' ? 'committed' : 'done'
  if (isHere && fault.kind === 'error') return 'refused'
  return fault.kind.startsWith('kill') ? 'never sent' : 'not yet'
}

function scissors({ kind, code }: Fault): string {
  const what = {
    'kill before': 'killed here',
    'kill after': 'killed here',
    'cut before': 'connection lost here',
    'cut after': 'answer lost here',
    error: `error ${code ?? ''} here`,
    overlap: 'a second run starts and ends here',
  }[kind]
  return `   ✂  ${'- '.repeat(8)}${what}`
}

/** `killed after commit 1 of 2`. */
export function faultText({ kind, position, point, code }: Fault, of: number): string {
  const place = `${point.kind} ${position} of ${of}`
  switch (kind) {
    case 'kill before':
      return `killed before ${place}`
    case 'kill after':
      return `killed after ${place}`
    case 'cut before':
      return `connection lost before ${place}`
    case 'cut after':
      return `answer to ${place} lost`
    case 'error':
      return `${place} refused with ${code ?? 'an error'}`
    case 'overlap':
      return `a second run while the first waits before ${place}`
  }
}
