import type { FileChange } from '../files/changes.ts'
import type { MutatingRequest } from '../http/recorder.ts'
import type { Unit } from '../wire/proxy.ts'

/** A place in a run where something becomes durable: what a crash right after it leaves behind is a state of its own. */
export interface Point {
  readonly kind: 'commit' | 'inner commit' | 'request' | 'file change' | 'moment'
  /** With `occurrence`, finds the place again in another run. */
  readonly signature: string
  readonly occurrence: number
  /** Points of one shape are alike, so that some of them stand for all. */
  readonly shape: string
  /** What became durable, statement by statement. */
  readonly what: readonly string[]
  /** How many transactions the server ended in this one message; only the last can be told apart from outside. */
  readonly transactions: number
  /** How many commits the message has, where they were counted. */
  readonly commits?: number
  /** Of a commit inside of a message: which one, from 1. */
  readonly inner?: number
  /** Which connection of the run a commit comes over, from 1 in the order they were opened. */
  readonly connection?: number
  /** Of a file change: the system call that makes it, and what it does to which file. */
  readonly change?: FileStep
  /** Of a moment, counted from the start of the command. */
  readonly afterMs?: number
}

interface FileStep {
  readonly call: string
  readonly verb: FileChange['verb']
  readonly file: string
  /** Writes to the file go on. */
  readonly isTorn: boolean
}

/** Something that happened in a recorded run, in order. */
export type Event =
  | { readonly kind: 'answer'; readonly unit: Unit; readonly transactions: number }
  | { readonly kind: 'request'; readonly request: MutatingRequest }
  | { readonly kind: 'file change'; readonly change: FileChange }

/**
 * The points of a recorded run: answers with which a transaction that wrote has ended, requests, and changes of files.
 * Of writes to one file, one after the other and not synced in between, the first leaves a torn file and the last a
 * whole one.
 */
export function pointsOf(events: readonly Event[], units: readonly Unit[]): readonly Point[] {
  return events.flatMap((event, at) => {
    if (event.kind === 'request') return [requestPoint(event.request)]
    if (event.kind === 'answer') return commitPoints(event, units)
    return changePoints(event, events[at - 1], events[at + 1])
  })
}

function requestPoint({ signature, occurrence, method, path, body }: MutatingRequest): Point {
  const what = [`${method} ${path} ${body}`.trim()]
  return { kind: 'request', signature, occurrence, shape: signature, what, transactions: 0 }
}

function commitPoints(
  { unit, transactions }: Event & { kind: 'answer' },
  units: readonly Unit[],
): readonly Point[] {
  if (unit.answer?.status !== 'I' || transactions === 0) return []
  const { signature, occurrence, connection } = unit
  const what = writesOf(unit, units)
  return [{ kind: 'commit', signature, occurrence, shape: signature, what, transactions, connection }]
}

function changePoints(
  event: Event & { kind: 'file change' },
  before: Event | undefined,
  after: Event | undefined,
): readonly Point[] {
  const { signature, occurrence, shape, what, call, verb, file } = event.change
  if (verb === 'settle') return []
  const [continues, goesOn] = [isSameWrite(event, before), isSameWrite(event, after)]
  if (continues && goesOn) return []
  const part = continues ? ' (the last part)' : goesOn ? ' (the first part)' : ''
  const point = { signature, occurrence, shape: `${shape}${part}`, what: [`${what}${part}`] }
  const change = { call, verb, file, isTorn: goesOn }
  return [{ kind: 'file change', ...point, change, transactions: 0 }]
}

function isSameWrite({ change }: Event & { kind: 'file change' }, other: Event | undefined): boolean {
  return (
    other?.kind === 'file change' &&
    change.verb === 'write' &&
    other.change.verb === 'write' &&
    other.change.file === change.file
  )
}

const SHOWN_STATEMENTS = 4

/** The statements of the unit's transaction that may write. */
function writesOf(unit: Unit, units: readonly Unit[]): readonly string[] {
  const labels: string[] = []
  for (let at = unit.transaction - 1; at < unit.n; at++) {
    const one = units[at]
    if (one === undefined || one.connection !== unit.connection) continue
    for (const statement of one.label.split('; ')) if (!READS.test(statement)) labels.push(statement)
  }
  if (labels.length === 0) return [unit.label]
  if (labels.length <= SHOWN_STATEMENTS) return labels
  return [...labels.slice(0, SHOWN_STATEMENTS - 1), `… ${labels.length - SHOWN_STATEMENTS + 1} more`]
}

const READS =
  /^(begin|start transaction|commit|end|rollback|set|show|select|lock|savepoint|release|discard|deallocate|listen)\b|^$/

/** Whether both runs have the same commits and requests, in whatever order. */
export function samePoints(one: readonly Point[], other: readonly Point[]): boolean {
  return sameNames(one, other, (kind) => kind !== 'file change')
}

/** Whether both runs change the same files as often, in whatever order. */
export function sameFileChanges(one: readonly Point[], other: readonly Point[]): boolean {
  return sameNames(one, other, (kind) => kind === 'file change')
}

function sameNames(
  one: readonly Point[],
  other: readonly Point[],
  counts: (kind: Point['kind']) => boolean,
): boolean {
  const names = (points: readonly Point[]) =>
    points
      .filter(({ kind }) => counts(kind))
      .map(nameOf)
      .sort()
      .join('\n')
  return names(one) === names(other)
}

/** The points of `one` without changes of files that the other run has not made: no third run can be relied on to. */
export function sharedPoints(one: readonly Point[], other: readonly Point[]): readonly Point[] {
  const known = new Set(other.map(nameOf))
  return one.filter((point) => point.kind !== 'file change' || known.has(nameOf(point)))
}

export function nameOf({ kind, signature, occurrence, inner = 0 }: Point): string {
  return `${kind} ${signature} ${occurrence} ${inner}`
}

/**
 * Leaves out what an embedded database does inside one transaction: that it survives a crash there is its promise and
 * not the job's. What a transaction has come to is durable after the last of its writes, or without its journal.
 */
export function withoutEngineSteps(
  points: readonly Point[],
  databases: ReadonlySet<string>,
): readonly Point[] {
  return points.flatMap((point) => {
    const { change, signature, occurrence } = point
    if (change === undefined || !databases.has(change.file.replace(COMPANION, ''))) return [point]
    const isEnd = change.verb === 'remove' || (change.verb === 'write' && !change.isTorn)
    // Nothing tells its transactions apart, so that none can stand for others.
    return isEnd ? [{ ...point, shape: `${signature} ${occurrence}` }] : []
  })
}

const COMPANION = /(\.wal|-wal|-journal)$/

/** Names the message that a commit is in, in whatever run. */
export function messageName({ signature, occurrence }: Pick<Point, 'signature' | 'occurrence'>): string {
  return `${signature} ${occurrence}`
}

const MOMENTS = 8

/** Where file calls cannot be seen: moments, spread over the time that a clean run takes. */
export function momentsOf(cleanMs: number): readonly Point[] {
  return Array.from({ length: MOMENTS }, (_, n) => {
    const share = (n + 0.5) / MOMENTS
    const signature = `${Math.round(share * 100)} % of the time of a clean run`
    const place = { signature, occurrence: 1, shape: signature, what: [signature] }
    return { kind: 'moment', ...place, transactions: 0, afterMs: share * cleanMs }
  })
}
