import type { Point } from './points.ts'

export type FaultKind = 'kill before' | 'kill after' | 'cut before' | 'cut after' | 'error' | 'overlap'

export interface Fault {
  readonly kind: FaultKind
  readonly point: Point
  /** Where the point is in its run, from 1. */
  readonly position: number
  /** SQLSTATE of an `error`. */
  readonly code?: string
}

export interface PlannedTrial {
  /** The same in every proof of the same command: `--replay` takes it. */
  readonly n: number
  /** Whether the interrupted run is the first load or a repetition. */
  readonly start: 'seed' | 'loaded'
  readonly fault: Fault
}

export interface PlanOptions {
  readonly kinds: readonly FaultKind[]
  readonly isExhaustive: boolean
}

interface Chosen {
  readonly point: Point
  readonly position: number
}

/**
 * Of 10,000 commits of a loop the first, a middle and the last say what there is to say. An edge is a point with the
 * kinds of its neighbours; of each edge three points are kept.
 */
export function thin(points: readonly Point[]): readonly Chosen[] {
  const edges = new Map<string, Chosen[]>()
  points.forEach((point, at) => {
    const edge = [points[at - 1], point, points[at + 1]].map((one) => one?.shape ?? '').join(' | ')
    const found = edges.get(edge) ?? []
    edges.set(edge, found)
    found.push({ point, position: at + 1 })
  })
  const kept = new Set<Chosen>()
  for (const found of edges.values()) {
    for (const at of [0, Math.floor(found.length / 2), found.length - 1]) {
      const chosen = found[at]
      if (chosen !== undefined) kept.add(chosen)
    }
  }
  return fewFileChanges([...kept].sort((a, b) => a.position - b.position))
}

const MOST_FILE_CHANGES = 24
/** Its multiples fall evenly everywhere between two whole numbers. */
const GOLDEN = 0.618

/**
 * A run that writes hundreds of unlike files would be all trials: one of each stretch, and the last. Not each in the
 * same place of its stretch, or of two steps that take turns one would never be met.
 */
function fewFileChanges(chosen: readonly Chosen[]): readonly Chosen[] {
  const changes = chosen.filter(({ point }) => point.kind === 'file change')
  const step = changes.length / MOST_FILE_CHANGES
  if (step <= 1) return chosen
  const kept = new Set(
    Array.from({ length: MOST_FILE_CHANGES }, (_, n) => changes[Math.floor((n + ((n * GOLDEN) % 1)) * step)]),
  )
  kept.add(changes.at(-1))
  return chosen.filter((one) => one.point.kind !== 'file change' || kept.has(one))
}

/** serialization_failure: what every job has to expect of every statement. */
const USUAL_ERROR = '40001'
/** deadlock_detected, which leaves a session as the usual one does; admin_shutdown, which ends it. */
const OTHER_ERRORS = ['40P01', '57P01']
/** too_many_connections: a session is refused before it can say anything. */
export const REFUSED_CONNECTION = '53300'
const MOST_OVERLAPS = 4

/**
 * What to try, the most telling first: kills and lost answers, then what happens once for each kind of point.
 * The last point killed 'after' is the state of a whole run, which `twice` has tried; it still shows what a client
 * does that dies before it can write its own mark.
 */
export function planTrials(
  traces: { readonly seed: readonly Point[]; readonly loaded: readonly Point[] },
  { kinds, isExhaustive }: PlanOptions,
): readonly PlannedTrial[] {
  const chosen = (points: readonly Point[]) =>
    isExhaustive ? points.map((point, at) => ({ point, position: at + 1 })) : thin(points)
  const trials: Omit<PlannedTrial, 'n'>[] = []
  const add = (start: 'seed' | 'loaded', kind: FaultKind, { point, position }: Chosen, code?: string) => {
    const fault = { kind, point, position, ...(code === undefined ? {} : { code }) }
    if (kinds.includes(kind)) trials.push({ start, fault })
  }
  const starts = [
    ['seed', chosen(traces.seed)],
    ['loaded', chosen(traces.loaded)],
  ] as const
  for (const [start, points] of starts) {
    for (const one of points) {
      add(start, 'kill after', one)
      if (isOnWire(one) || one.point.kind === 'inner commit') add(start, 'cut after', one)
    }
  }
  for (const [start, points] of starts) {
    const [first] = points
    // Before the first file change is after what came before it, or nothing at all.
    if (first !== undefined && (isOnWire(first) || first.point.kind === 'inner commit')) {
      add(start, 'kill before', first)
    }
    for (const one of oncePerClass(points.filter(isOnWire))) {
      add(start, 'cut before', one)
      if (one.point.kind === 'commit') add(start, 'error', one, USUAL_ERROR)
    }
  }
  const commits = oncePerClass(chosen(traces.seed)).filter(({ point }) => point.kind === 'commit')
  for (const one of commits.slice(0, MOST_OVERLAPS)) add('seed', 'overlap', one)
  for (const one of commits) for (const code of OTHER_ERRORS) add('seed', 'error', one, code)
  for (const one of firstOfConnections(commits, traces.seed)) add('seed', 'error', one, REFUSED_CONNECTION)
  // Number 1 is the plain second run.
  return trials.map((trial, at) => ({ n: at + 2, ...trial }))
}

/** A connection can be lost there; a file knows no connections. */
function isOnWire({ point }: Chosen): boolean {
  return point.kind === 'commit' || point.kind === 'request'
}

/** Of each connection that one of the commits came over, the first point: nothing of it happens when it is refused. */
function firstOfConnections(commits: readonly Chosen[], points: readonly Point[]): readonly Chosen[] {
  const connections = new Set(commits.map(({ point }) => point.connection))
  return [...connections].flatMap((connection): Chosen[] => {
    const at = points.findIndex((point) => point.kind === 'commit' && point.connection === connection)
    const point = points[at]
    return point === undefined ? [] : [{ point, position: at + 1 }]
  })
}

function oncePerClass(points: readonly Chosen[]): readonly Chosen[] {
  const seen = new Set<string>()
  return points.filter(({ point }) => {
    if (seen.has(point.signature)) return false
    seen.add(point.signature)
    return true
  })
}
