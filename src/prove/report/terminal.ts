import type { PlannedTrial } from '../plan/trials.ts'
import type { Proof } from '../prove.ts'
import type { Class } from '../verdict.ts'
import { type Finding, findingsOf, subjectOf } from './findings.ts'
import { rowLines } from './rows.ts'
import { faultText, timelineLines } from './timeline.ts'
import {
  cleanText,
  inconclusiveText,
  networkText,
  outcomeText,
  plural,
  pointsAt,
  runLogHint,
  seconds,
  touchedText,
  trialText,
  triedText,
  verdictText,
  worstGap,
} from './wording.ts'

export interface Paint {
  readonly bad: (text: string) => string
  readonly good: (text: string) => string
  readonly warn: (text: string) => string
  readonly dim: (text: string) => string
}

const same = (text: string) => text
export const PLAIN_PAINT: Paint = { bad: same, good: same, warn: same, dim: same }

const LABEL = 15
const WIDTH = 80

/** The report for a person. */
export function terminalReport(proof: Proof, failOn: readonly Class[], paint: Paint = PLAIN_PAINT): string {
  const findings = findingsOf(proof, failOn)
  const convictions = findings.filter((finding) => finding.convicts)
  const warnings = findings.filter((finding) => !finding.convicts)
  const command = `stet prove -- ${proof.command.join(' ')}`
  const lines = [
    `${command.padEnd(WIDTH - 8)}${seconds(proof.ms).padStart(8)}`,
    '',
    ...cleanLines(proof),
    networkLine(proof, paint),
  ]
  if (proof.obstacle !== null) {
    lines.push('', `  ${paint.warn('NOTHING PROVED')}  ${proof.obstacle.what}`)
    if (proof.obstacle.hint !== null) lines.push(`    ${proof.obstacle.hint}`)
    return lines.join('\n')
  }
  lines.push(...twiceLines(proof, failOn, paint), ...crashLines(proof, convictions))
  for (const finding of convictions) lines.push('', ...convictionLines(finding, proof, paint))
  const warned = warningLines(proof, warnings, failOn, paint)
  if (warned.length > 0) lines.push('', ...warned)
  lines.push('', ...closingLines(proof, convictions.length > 0 ? '' : '  for what --fail-on names', paint))
  return lines.join('\n')
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(LABEL)}  ${text}`
}

function cleanLines(proof: Proof): readonly string[] {
  const { clean, volatile } = proof
  const changes = clean.changes.map(({ table, before, after }) => `${table} ${signed(after - before)}`)
  const lines = [
    labelled('clean run', [cleanText(proof), changes.join(', ')].filter((part) => part !== '').join('; ')),
  ]
  if (volatile.length > 0) {
    lines.push(labelled('left out', `${volatile.join(', ')}: two clean runs fill them differently`))
  }
  return lines
}

function networkLine(proof: Proof, paint: Paint): string {
  const text = networkText(proof)
  return labelled('network', proof.isFenced ? text : paint.warn(`${text} (--allow-network)`))
}

function twiceLines(proof: Proof, failOn: readonly Class[], paint: Paint): readonly string[] {
  const found = proof.trials.find((trial) => trial.planned === null)?.differences ?? []
  const text = found.map((one) => `${one.class}: ${subjectOf(one)}`).join('; ')
  const lines = [labelled('twice', text === '' ? 'equal' : text)]
  const rewritten = touchedText(proof)
  if (rewritten !== null) {
    const line = labelled('', `rewritten although equal: ${rewritten}`)
    lines.push(failOn.includes('touched') ? paint.bad(line) : line)
  }
  return lines
}

function crashLines({ trials, counts }: Proof, convictions: readonly Finding[]): readonly string[] {
  if (trials.length <= 1) return []
  const broken = new Set(
    convictions
      .flatMap((finding) => [finding.trial, ...finding.also])
      .flatMap(({ planned }) => (planned === null ? [] : [`${planned.start} ${planned.fault.position}`])),
  )
  const many = plural(counts.pointsTried, 'point')
  const text =
    broken.size === 0
      ? `equal at ${many}`
      : `${broken.size} of ${many} ${broken.size === 1 ? 'breaks' : 'break'} it`
  return [labelled('faults', text)]
}

function convictionLines(finding: Finding, proof: Proof, paint: Paint): readonly string[] {
  const { difference, trial, also, claimsSuccess, cause } = finding
  const head = `  ${paint.bad(finding.class.toUpperCase())}  ${subjectOf(difference)}`
  const number = `trial ${trial.n}`
  const lines = [`${head}${number.padStart(Math.max(WIDTH - head.length, number.length + 2))}`]
  if (trial.planned === null) lines.push(`    ${trialText(trial, proof)}`)
  else {
    const { start, fault } = trial.planned
    lines.push(`    ${trialText(trial, proof)}:`)
    lines.push(...timelineLines(fault, pointsAt(start, proof)).map((line) => `    ${line}`))
  }
  if (claimsSuccess) lines.push('    it then ended with status 0, so nobody runs it again')
  lines.push(`    ${outcomeText(finding)}`)
  lines.push(...rowLines(difference).map((line) => `      ${line}`))
  const others = trial.differences.filter((one) => one !== difference)
  if (others.length > 0)
    lines.push(`    also ${others.map((one) => `${one.class}: ${subjectOf(one)}`).join('; ')}`)
  if (cause !== null) lines.push(`    why: ${cause.why}`, `    cure: ${cause.cure}`)
  if (also.length > 0) lines.push(paint.dim(`    the same in trial ${also.map(({ n }) => n).join(', ')}`))
  lines.push(paint.dim(`    again: stet prove --replay ${trial.n} …   look: add --keep`))
  const ignore = runLogHint(finding)
  if (ignore !== null) lines.push(`    ${ignore}`)
  return lines
}

function placeOf({ start, fault }: PlannedTrial, proof: Proof): string {
  return faultText(fault, pointsAt(start, proof))
}

function warningLines(
  proof: Proof,
  warnings: readonly Finding[],
  failOn: readonly Class[],
  paint: Paint,
): readonly string[] {
  const lines = warnings.map((finding) => {
    const { class: name, difference, trial, cause } = finding
    const place =
      trial.planned === null
        ? trial.between === 'nothing'
          ? 'twice'
          : trialText(trial, proof)
        : placeOf(trial.planned, proof)
    const note = difference.note === null ? '' : ` (${difference.note})`
    const head = labelled(name, `${subjectOf(difference)}${note}: ${place}, trial ${trial.n}`)
    return paint.warn(cause === null ? head : `${head}\n${labelled('', cause.cure)}`)
  })
  const gap = worstGap(proof)
  if (gap !== null) {
    const line = labelled('gap', `${gap.text}, trial ${gap.trial}`)
    lines.push(failOn.includes('gap') ? paint.bad(line) : paint.warn(line))
  }
  return lines
}

function closingLines(proof: Proof, byWish: string, paint: Paint): readonly string[] {
  const lines = [labelled('tried', triedText(proof)), labelled('not tried', proof.notTried.join('; '))]
  const verdict = verdictText(proof)
  switch (proof.verdict) {
    case 'convicted':
      return [...lines, `  ${paint.bad(verdict)}${byWish}`]
    case 'survives':
      return [...lines, `  ${paint.good(verdict)}`]
    case 'inconclusive':
      return [...lines, `  ${paint.warn(verdict)}  ${inconclusiveText(proof)}`]
  }
}

function signed(count: number): string {
  return `${count < 0 ? '−' : '+'}${plural(Math.abs(count), 'row')}`
}
