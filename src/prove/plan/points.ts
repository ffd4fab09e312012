import type { MutatingRequest } from '../http/recorder.ts'
import type { Unit } from '../wire/proxy.ts'

/** A place in a run where something becomes durable: what a crash right after it leaves behind is a state of its own. */
export interface Point {
  readonly kind: 'commit' | 'request'
  /** With `occurrence`, finds the place again in another run. */
  readonly signature: string
  readonly occurrence: number
  /** What became durable, statement by statement. */
  readonly what: readonly string[]
  /** How many transactions the server ended in this one message; only the last can be told apart from outside. */
  readonly transactions: number
}

/** Something that happened in a recorded run, in order. */
export type Event =
  | { readonly kind: 'answer'; readonly unit: Unit; readonly transactions: number }
  | { readonly kind: 'request'; readonly request: MutatingRequest }

/** The points of a recorded run: answers with which a transaction that wrote has ended, and requests. */
export function pointsOf(events: readonly Event[], units: readonly Unit[]): readonly Point[] {
  return events.flatMap((event): Point[] => {
    if (event.kind === 'request') {
      const { signature, occurrence, method, path, body } = event.request
      const what = [`${method} ${path} ${body}`.trim()]
      return [{ kind: 'request', signature, occurrence, what, transactions: 0 }]
    }
    const { unit, transactions } = event
    if (unit.answer?.status !== 'I' || transactions === 0) return []
    const { signature, occurrence } = unit
    return [{ kind: 'commit', signature, occurrence, what: writesOf(unit, units), transactions }]
  })
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

/** Whether both runs have the same points, in whatever order. */
export function samePoints(one: readonly Point[], other: readonly Point[]): boolean {
  const names = (points: readonly Point[]) => points.map(nameOf).sort().join('\n')
  return names(one) === names(other)
}

export function nameOf({ kind, signature, occurrence }: Point): string {
  return `${kind} ${signature} ${occurrence}`
}
