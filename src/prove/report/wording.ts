import type { Point } from '../plan/points.ts'
import type { PlannedTrial } from '../plan/trials.ts'
import type { Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Finding } from './findings.ts'
import { faultText } from './timeline.ts'
import { visible } from './visible.ts'

// What all reports say in the same words.

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** The points of the run that a trial interrupts. */
export function pointsAt(start: PlannedTrial['start'], { clean, again }: Proof): readonly Point[] {
  return start === 'seed' ? clean.points : again
}

const BETWEEN: Readonly<Record<TrialResult['between'], string>> = {
  nothing: 'run twice, without any fault',
  'keys forgotten': 'run again after the service has forgotten the idempotency keys',
  'source changed': 'run, the source changed, and run again',
}

/** `the first load, killed after commit 1 of 2`; `run twice, without any fault`. */
export function trialText({ planned, between }: TrialResult, proof: Proof): string {
  if (planned === null) return BETWEEN[between]
  const { start, fault } = planned
  const which = start === 'seed' ? 'the first load' : 'a repeated load'
  return `${which}, ${faultText(fault, pointsAt(start, proof))}`
}

/** `after the rerun: 60 rows where a clean run leaves 30`. */
export function outcomeText({ difference, claimsSuccess, class: name }: Finding): string {
  const { clean, here, kind, note } = difference
  if (name === 'stuck') return visible(note ?? 'it wrote nothing')
  const when = claimsSuccess ? 'then' : 'after the rerun'
  const isCounted = note === 'lines' || note === 'rows'
  const noun = isCounted ? note.slice(0, -1) : kind === 'request' || kind === 'file' ? kind : 'row'
  const extra = note === null || isCounted ? '' : ` (${note})`
  return `${when}: ${plural(here, noun)} where a clean run leaves ${clean}${extra}`
}

/** A log with a row for each run is doubled by its nature; only its owner can say that it is one. */
export function runLogHint({ trial }: Finding): string | null {
  if (trial.planned !== null || trial.between !== 'nothing') return null
  const log = trial.differences.find(
    ({ class: name, kind, here, clean }) => name === 'doubled' && kind === 'table' && here - clean === 1,
  )
  return log === undefined ? null : `Is ${log.where} a log of runs? Then leave it out: --ignore ${log.where}`
}

/** What a clean run is made of: `3 messages, 2 commits`. */
export function cleanText({ clean }: Proof): string {
  const commits = clean.points.filter((point) => point.kind.endsWith('commit')).length
  return [
    plural(clean.messages, 'message'),
    plural(commits, 'commit'),
    ...(clean.requests > 0 ? [plural(clean.requests, 'request')] : []),
  ].join(', ')
}

/** What was tried, counted. */
export function triedText({ counts, trials }: Proof): string {
  const tried = trials.filter((trial) => trial.isReached).length
  return [
    plural(tried, 'trial'),
    `${counts.pointsTried} of ${plural(counts.points, 'point')}`,
    plural(counts.reruns, 'rerun'),
    ...(counts.sameState > 0 ? [`${counts.sameState} in a state seen before`] : []),
    ...(counts.notReached > 0 ? [`${counts.notReached} places not met again`] : []),
  ].join(', ')
}

/** `SURVIVES 34 trials (14 of 10,010 points)`, never more than that. */
export function verdictText({ verdict, counts, trials, obstacle }: Proof): string {
  if (obstacle !== null) return 'NOTHING PROVED'
  switch (verdict) {
    case 'convicted':
      return 'CONVICTED'
    case 'survives': {
      const tried = trials.filter((trial) => trial.isReached).length
      return `SURVIVES ${plural(tried, 'trial')} (${counts.pointsTried} of ${plural(counts.points, 'point')})`
    }
    case 'inconclusive':
      return 'INCONCLUSIVE'
  }
}

/** Rows that a second run has written again with the same values; null for none. */
export function touchedText({ touched }: Proof): string | null {
  if (touched.length === 0) return null
  return touched.map(({ table, rows, of }) => `${table} ${rows} of ${of} rows`).join(', ')
}

/** Whether the command could reach more than the sandbox. */
export function networkText({ isFenced }: Proof): string {
  return isFenced
    ? 'closed: the command could reach the sandbox and nothing else'
    : 'open: the command could reach other servers'
}

/** Why trials that found nothing are no verdict. */
export function inconclusiveText({ trials }: Proof): string {
  const isFaultTried = trials.some((trial) => trial.planned !== null)
  return isFaultTried
    ? 'too many places were not met again'
    : 'no fault was tried: --budget ended before the first one'
}

export interface WorstGap {
  readonly text: string
  readonly trial: number
}

/** The gap in which readers see least. */
export function worstGap({ trials }: Proof): WorstGap | null {
  const gaps = trials.flatMap((trial) => trial.gaps.map((gap) => ({ ...gap, n: trial.n })))
  const [worst] = gaps.sort((a, b) => a.visible / a.of - b.visible / b.of)
  if (worst === undefined) return null
  const { table, visible, of, n } = worst
  return { text: `until the rerun, readers of ${table} see ${visible} of ${of} rows`, trial: n }
}
