import type { Point } from '../plan/points.ts'
import { type Fault, REFUSED_CONNECTION } from '../plan/trials.ts'
import { visible } from './visible.ts'

/** One line of the story of an interrupted run, for whoever draws it. */
export type TimelineStep =
  | { readonly kind: 'skipped'; readonly count: number; readonly where: 'before' | 'behind' }
  | {
      readonly kind: 'point'
      /** The point's place in its run, from 1. */
      readonly n: number
      readonly what: string
      readonly outcome: string
      /** Whether it is durable when the fault strikes. */
      readonly isDone: boolean
    }
  | { readonly kind: 'cut'; readonly what: string }

const SHOWN_AROUND = 2
const LABEL_WIDTH = 64

/** The points around a fault, with the place of the cut. */
export function timelineOf(fault: Fault, points: readonly Point[]): readonly TimelineStep[] {
  const at = fault.position - 1
  const isBefore = strikesBefore(fault)
  const from = Math.max(0, at - SHOWN_AROUND)
  const to = Math.min(points.length, at + SHOWN_AROUND + 1)
  const steps: TimelineStep[] = []
  if (from > 0) steps.push({ kind: 'skipped', count: from, where: 'before' })
  for (let n = from; n < to; n++) {
    const point = points[n]
    if (point === undefined) continue
    if (n === at && isBefore) steps.push(cut(fault))
    const isDone = n < at || (n === at && !isBefore)
    const outcome = state(point, isDone, n === at, fault)
    steps.push({ kind: 'point', n: n + 1, what: visible(point.what.join('; ')), outcome, isDone })
    if (n === at && !isBefore) steps.push(cut(fault))
  }
  if (to < points.length) steps.push({ kind: 'skipped', count: points.length - to, where: 'behind' })
  return steps
}

/** The timeline in characters. */
export function timelineLines(fault: Fault, points: readonly Point[]): readonly string[] {
  return timelineOf(fault, points).map(lineOf)
}

function lineOf(step: TimelineStep): string {
  switch (step.kind) {
    case 'skipped':
      return `    … ${step.count} ${step.where === 'before' ? 'before' : 'more'}`
    case 'point': {
      const { n, what, outcome } = step
      const shown = what.length > LABEL_WIDTH ? `${what.slice(0, LABEL_WIDTH - 1)}…` : what
      return `${String(n).padStart(5)}  ${shown.padEnd(LABEL_WIDTH)}  ${outcome}`
    }
    case 'cut':
      return `   ✂  ${'- '.repeat(8)}${step.what}`
  }
}

function strikesBefore({ kind }: Fault): boolean {
  return kind === 'kill before' || kind === 'cut before' || kind === 'error' || kind === 'overlap'
}

function state({ kind }: Point, isDone: boolean, isHere: boolean, fault: Fault): string {
  if (isDone) return kind.endsWith('commit') ? 'committed' : 'done'
  if (isHere && fault.kind === 'error') return 'refused'
  return fault.kind.startsWith('kill') ? 'never sent' : 'not yet'
}

function cut({ kind, point, code }: Fault): TimelineStep {
  const what = {
    'kill before': 'killed here',
    'kill after': 'killed here',
    'cut before': 'connection lost here',
    'cut after': point.kind === 'inner commit' ? 'session ended here' : 'answer lost here',
    error: code === REFUSED_CONNECTION ? `connection refused (${code}) here` : `error ${code ?? ''} here`,
    overlap: 'a second run starts and ends here',
  }[kind]
  return { kind: 'cut', what }
}

/** `killed after commit 1 of 2`: counted among points of its kind (all commits are one), whatever else the run does in between. */
export function faultText({ kind, position, point, code }: Fault, points: readonly Point[]): string {
  const family = (kind: string) => (kind.endsWith('commit') ? 'commit' : kind)
  const isAlike = (other: Point) => family(other.kind) === family(point.kind)
  const place = `${point.kind} ${points.slice(0, position).filter(isAlike).length} of ${points.filter(isAlike).length}`
  switch (kind) {
    case 'kill before':
      return `killed before ${place}`
    case 'kill after':
      return `killed after ${place}`
    case 'cut before':
      return `connection lost before ${place}`
    case 'cut after':
      return point.kind === 'inner commit' ? `session ended after ${place}` : `answer to ${place} lost`
    case 'error':
      if (code === REFUSED_CONNECTION) return `the connection of ${place} refused (${code})`
      return `${place} refused with ${code ?? 'an error'}`
    case 'overlap':
      return `a second run while the first waits before ${place}`
  }
}
