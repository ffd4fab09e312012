import type { ChangedExample, RowExample } from './state/diff.ts'

/** What can be wrong after a rerun, the worst first. */
export const CLASSES = [
  'lost',
  'doubled',
  'different',
  'stuck',
  'claims success',
  'not two at once',
  'keys forgotten',
  'left behind',
  'gap',
  'touched',
  'renumbered',
] as const

export type Class = (typeof CLASSES)[number]

/** What convicts unless the user says otherwise. */
export const DEFAULT_FAIL_ON: readonly Class[] = ['lost', 'doubled', 'different', 'stuck', 'claims success']

/** One way in which a state is not that of a clean run. */
export interface Difference {
  readonly class: Class
  /** `fact`, `out.csv`, `POST /v1/charges`. */
  readonly where: string
  readonly kind: 'table' | 'file' | 'request' | 'definition'
  /** Rows, files or requests concerned. */
  readonly count: number
  /** How many there are after a clean run, and how many here. */
  readonly clean: number
  readonly here: number
  readonly examples: readonly RowExample[]
  readonly changes: readonly ChangedExample[]
  /** Says more than the counts, where there is more. */
  readonly note: string | null
}

/** The worst of several differences: by class, then by how much is concerned. */
export function worstOf(differences: readonly Difference[]): Difference | null {
  const [worst] = [...differences].sort((a, b) => severity(a.class) - severity(b.class) || b.count - a.count)
  return worst ?? null
}

export function severity(name: Class): number {
  return CLASSES.indexOf(name)
}
