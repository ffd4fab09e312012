import { classesOf, type Proof } from '../prove.ts'
import type { TrialResult } from '../trial.ts'
import type { Class } from '../verdict.ts'
import { type Finding, findingsOf, subjectOf } from './findings.ts'
import { escaped } from './markup.ts'
import { inconclusiveText, outcomeText, touchedText, trialText, verdictText } from './wording.ts'

/** One case in JUnit's XML: its body is what a failure, an error or a skip puts into it. */
interface Case {
  readonly name: string
  readonly ms: number
  readonly outcome: 'passed' | 'failure' | 'error' | 'skipped'
  readonly message: string
  readonly text: string
}

/** JUnit XML: the clean run and every trial is a case; one that convicts has failed, a place not met again is skipped. */
export function junitReport(proof: Proof, failOn: readonly Class[]): string {
  const findings = findingsOf(proof, failOn)
  const cases = [cleanCase(proof), ...proof.trials.map((trial) => trialCase(trial, findings, proof, failOn))]
  const count = (outcome: Case['outcome']) => cases.filter((one) => one.outcome === outcome).length
  const suite = `stet prove -- ${proof.command.join(' ')}`
  const counts = `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${inSeconds(proof.ms)}"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="stet prove" ${counts}>`,
    `  <testsuite name="${escaped(suite)}" ${counts}>`,
    ...cases.map((one) => caseXml(one, suite)),
    `    <system-out>${escaped(`${verdictText(proof)}\nnot tried: ${proof.notTried.join('; ')}`)}</system-out>`,
    '  </testsuite>',
    '</testsuites>',
  ].join('\n')
}

function caseXml({ name, ms, outcome, message, text }: Case, suite: string): string {
  const head = `    <testcase classname="${escaped(suite)}" name="${escaped(name)}" time="${inSeconds(ms)}"`
  if (outcome === 'passed') return `${head}/>`
  return `${head}><${outcome} message="${escaped(message)}">${escaped(text)}</${outcome}></testcase>`
}

/** Where nothing could be proved, this is the case that says so. */
function cleanCase(proof: Proof): Case {
  const { clean, obstacle, verdict } = proof
  const base = { name: 'two clean runs from the same start', ms: clean.ms }
  if (obstacle !== null) {
    return { ...base, outcome: 'error', message: obstacle.what, text: obstacle.hint ?? '' }
  }
  if (verdict !== 'inconclusive') return { ...base, outcome: 'passed', message: '', text: '' }
  const message = `inconclusive: ${inconclusiveText(proof)}`
  return { ...base, outcome: 'error', message, text: message }
}

function trialCase(
  trial: TrialResult,
  findings: readonly Finding[],
  proof: Proof,
  failOn: readonly Class[],
): Case {
  const name = `trial ${trial.n}: ${trialText(trial, proof)}`
  const base = { name, ms: trial.first.ms + (trial.isFromMemo ? 0 : (trial.rerun?.ms ?? 0)) }
  if (!trial.isReached) {
    const message = 'the place was not met again'
    return { ...base, outcome: 'skipped', message, text: message }
  }
  const rewritten = isPlainRerun(trial) ? touchedText(proof) : null
  const seen = [...classesOf(trial), ...(rewritten === null ? [] : (['touched'] as const))]
  const convicting = seen.filter((one) => failOn.includes(one))
  if (convicting.length === 0) return { ...base, outcome: 'passed', message: '', text: '' }
  const finding = findings.find((one) => one.trial === trial || one.also.includes(trial))
  const subjects = trial.differences.map((one) => `${one.class}: ${subjectOf(one)}`)
  const cause = finding?.cause ?? null
  const lines = [
    ...subjects,
    ...(rewritten === null ? [] : [`rewritten although equal: ${rewritten}`]),
    ...(finding === undefined ? [] : [outcomeText(finding)]),
    ...(cause === null ? [] : [`why: ${cause.why}`, `cure: ${cause.cure}`]),
    `again: stet prove --replay ${trial.n}`,
  ]
  const message = subjects[0] ?? convicting.join(', ')
  return { ...base, outcome: 'failure', message, text: lines.join('\n') }
}

function isPlainRerun({ planned, between }: TrialResult): boolean {
  return planned === null && between === 'nothing'
}

function inSeconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}
