import { expect, test } from 'vitest'
import type { Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Class, Difference } from '../verdict.ts'
import { causeOf } from './cause.ts'

function differs(name: Class, kind: Difference['kind'], clean: number, here: number): Difference {
  const count = Math.abs(here - clean)
  return { class: name, where: 'fact', kind, count, clean, here, examples: [], changes: [], note: null }
}

/** Only what a cause is read from; `planned` null is the plain second run. */
function trial(isTwice: boolean, ...differences: readonly Difference[]): TrialResult {
  const fault = { kind: 'kill after', position: 1, point: { kind: 'commit' } }
  const planned = isTwice ? null : { n: 2, start: 'seed', fault }
  return { planned, between: 'nothing', claimsSuccess: false, differences } as unknown as TrialResult
}

const proof = (...points: readonly string[]) =>
  ({ clean: { points: points.map((kind) => ({ kind })) } }) as unknown as Proof

const stuck = differs('stuck', 'definition', 1, 0)
const lost = differs('lost', 'table', 30, 0)

test.each([
  ['rows that a failing rerun has not repaired', lost, [trial(false, stuck, lost)], 'further run fail until'],
  ['rows that a rerun skips', lost, [trial(false, lost)], 'how far it came before the rows are safe'],
  ['one trial of two that fails', lost, [trial(false, stuck, lost), trial(false, lost)], 'how far it came'],
  ['a second run that fails', stuck, [trial(true, stuck)], 'what the first run has left'],
  ['rows gone after a second run', lost, [trial(true, lost)], 'removes rows of the first'],
  ['more rows', differs('different', 'table', 30, 60), [trial(true)], 'under new keys'],
  [
    'other values',
    differs('different', 'table', 30, 30),
    [trial(true)],
    'starts from what the first has left',
  ],
  ['a request never sent', differs('lost', 'request', 1, 0), [trial(false)], 'before it sends it'],
] as const)('the cause of %s', (_, difference, trials, why) => {
  const found = trials.map((one) =>
    one.differences.length > 0 ? one : { ...one, differences: [difference] },
  )
  expect(causeOf(difference, found, proof('commit', 'commit'))?.why).toContain(why)
})

test('with one commit there is no other transaction, so the mark that came first is outside of the database', () => {
  expect(causeOf(lost, [trial(false, lost)], proof('file change', 'commit'))?.why).toContain('the mark that')
})
