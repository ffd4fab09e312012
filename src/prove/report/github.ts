import type { Proof } from '../prove.ts'
import type { Class } from '../verdict.ts'
import { type Finding, findingsOf, subjectOf } from './findings.ts'
import { outcomeText, touchedText, trialText, verdictText, worstGap } from './wording.ts'

/**
 * Workflow commands that GitHub shows as annotations: an error for each conviction, a warning for the rest.
 *
 * @param script The file that the command runs, where the annotations are to stand; null when there is none.
 */
export function githubReport(proof: Proof, failOn: readonly Class[], script: string | null): string {
  const place = script === null ? '' : `file=${property(script)},line=1,`
  const annotation = (level: 'error' | 'warning' | 'notice', title: string, text: string) =>
    `::${level} ${place}title=${property(`stet prove: ${title}`)}::${data(text)}`
  const lines = findingsOf(proof, failOn).map((finding) =>
    annotation(finding.convicts ? 'error' : 'warning', titleOf(finding), textOf(finding, proof)),
  )
  const gap = worstGap(proof)
  if (gap !== null) {
    const level = failOn.includes('gap') ? 'error' : 'warning'
    lines.push(annotation(level, 'gap', `${gap.text} (trial ${gap.trial})`))
  }
  const rewritten = touchedText(proof)
  if (rewritten !== null && failOn.includes('touched')) {
    lines.push(annotation('error', 'touched', `rewritten although equal: ${rewritten}`))
  }
  if (proof.obstacle !== null) {
    const { what, hint } = proof.obstacle
    lines.push(annotation('error', verdictText(proof), hint === null ? what : `${what}\n${hint}`))
  } else {
    const level = proof.verdict === 'inconclusive' ? 'error' : 'notice'
    lines.push(annotation(level, 'verdict', `${proof.command.join(' ')}: ${verdictText(proof)}`))
  }
  return lines.join('\n')
}

function titleOf({ class: name, difference }: Finding): string {
  return `${name}, ${subjectOf(difference)}`
}

function textOf(finding: Finding, proof: Proof): string {
  const { cause, trial } = finding
  return [
    `${trialText(trial, proof)} (trial ${trial.n})`,
    outcomeText(finding),
    ...(cause === null ? [] : [`why: ${cause.why}`, `cure: ${cause.cure}`]),
  ].join('\n')
}

function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
