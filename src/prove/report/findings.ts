import { classesOf, type Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import { type Class, type Difference, severity, worstOf } from '../verdict.ts'
import { type Cause, causeOf } from './cause.ts'
import { visible } from './visible.ts'

/** Trials that came to the same end, told once. */
export interface Finding {
  readonly class: Class
  readonly difference: Difference
  /** The trial to show; the others only differ in where they were interrupted. */
  readonly trial: TrialResult
  readonly also: readonly TrialResult[]
  readonly claimsSuccess: boolean
  readonly cause: Cause | null
  readonly convicts: boolean
}

/** What a proof has found, the worst first. */
export function findingsOf(proof: Proof, failOn: readonly Class[]): readonly Finding[] {
  const groups = new Map<string, { difference: Difference; trials: TrialResult[] }>()
  for (const trial of proof.trials) {
    const worst = worstOf(trial.differences)
    if (worst === null) continue
    const key = groupKey(trial, worst)
    const group = groups.get(key) ?? { difference: worst, trials: [] }
    groups.set(key, group)
    group.trials.push(trial)
  }
  const findings = [...groups.values()].flatMap(({ difference, trials }): Finding[] => {
    const [trial, ...also] = trials
    if (trial === undefined) return []
    return [
      {
        class: difference.class,
        difference,
        trial,
        also,
        claimsSuccess: trial.claimsSuccess,
        cause: causeOf(difference, trials, proof),
        convicts: failOn.some((name) => classesOf(trial).includes(name)),
      },
    ]
  })
  return findings.sort(
    (a, b) => Number(b.convicts) - Number(a.convicts) || severity(a.class) - severity(b.class),
  )
}

function groupKey(
  { planned, between, claimsSuccess }: TrialResult,
  { class: name, where, count }: Difference,
): string {
  if (name === 'left behind') return name
  const how = planned === null ? between : planned.fault.kind === 'overlap' ? 'overlap' : 'fault'
  return [name, where, count, how, claimsSuccess].join('|')
}

/** `30 rows in fact`, `1 request POST /v1/charges`. */
export function subjectOf({ kind, count, where: place, note }: Difference): string {
  const where = visible(place)
  const many = (noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`
  switch (kind) {
    case 'table':
      return `${many('row')} in ${where}`
    case 'file':
      return note === 'lines' || note === 'rows' ? `${many(note.slice(0, -1))} in ${where}` : where
    case 'request':
      return `${many('request')} ${where}`
    case 'definition':
      return where
  }
}
