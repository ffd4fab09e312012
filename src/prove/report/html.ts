import type { Proof } from '../prove.ts'
import type { Class } from '../verdict.ts'
import { type Finding, findingsOf, subjectOf } from './findings.ts'
import { mapOf } from './html-map.ts'
import { STYLE } from './html-style.ts'
import { timelineSvg } from './html-timeline.ts'
import { escaped } from './markup.ts'
import { rowTable } from './rows.ts'
import {
  cleanText,
  networkText,
  outcomeText,
  pointsAt,
  runLogHint,
  seconds,
  touchedText,
  trialText,
  triedText,
  verdictText,
  worstGap,
} from './wording.ts'

/**
 * The report as one page for a browser. It holds all it shows and runs no script; its own policy forbids the browser to
 * load anything, whatever a name or a value of the proved database says.
 */
export function htmlReport(proof: Proof, failOn: readonly Class[]): string {
  const command = `stet prove -- ${proof.command.join(' ')}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(`${verdictText(proof)}: ${command}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>
<h1><code>${escaped(command)}</code></h1>
<p class="verdict ${proof.verdict}">${escaped(verdictText(proof))}</p>
</header>
${facts(proof)}
${proof.obstacle === null ? experiments(proof, failOn) : ''}
</main>
</body>
</html>
`
}

function facts(proof: Proof): string {
  const { clean, volatile, obstacle, trials } = proof
  const changes = clean.changes.map(({ table, before, after }) => `${table} from ${before} to ${after} rows`)
  const twice = trials.find((trial) => trial.planned === null)?.differences ?? []
  const rewritten = touchedText(proof)
  const entries: (readonly [string, string])[] = [
    ['clean run', [cleanText(proof), ...changes].join('; ')],
    ...(obstacle === null ? [] : [['nothing proved', obstacle.what] as const]),
    ...(obstacle?.hint == null ? [] : [['what to do', obstacle.hint] as const]),
    ...(volatile.length === 0
      ? []
      : [['left out', `${volatile.join(', ')}: two clean runs fill them differently`] as const]),
    ['network', networkText(proof)],
    ...(obstacle !== null
      ? []
      : [
          [
            'twice',
            twice.length === 0 ? 'equal' : twice.map((one) => `${one.class}: ${subjectOf(one)}`).join('; '),
          ] as const,
        ]),
    ...(rewritten === null ? [] : [['rewritten although equal', rewritten] as const]),
    ...(obstacle === null ? [['tried', triedText(proof)] as const] : []),
    ['not tried', proof.notTried.join('; ')],
    ['took', `${seconds(proof.ms)} on PostgreSQL ${proof.postgresVersion}`],
  ]
  const rows = entries.map(([name, text]) => `<dt>${escaped(name)}</dt><dd>${escaped(text)}</dd>`)
  return `<dl>${rows.join('\n')}</dl>`
}

function experiments(proof: Proof, failOn: readonly Class[]): string {
  const findings = findingsOf(proof, failOn)
  const gap = worstGap(proof)
  return [
    mapOf(proof, failOn),
    ...findings.map((finding) => findingSection(finding, proof)),
    gap === null
      ? ''
      : `<section class="finding warns"><h2><b>gap</b> ${escaped(gap.text)} <small>trial ${gap.trial}</small></h2></section>`,
    trialTable(proof),
  ].join('\n')
}

function findingSection(finding: Finding, proof: Proof): string {
  const { difference, trial, also, cause, claimsSuccess, convicts } = finding
  const others = trial.differences.filter((one) => one !== difference)
  const hint = runLogHint(finding)
  const parts = [
    `<h2><b>${escaped(finding.class)}</b> ${escaped(subjectOf(difference))} <small>trial ${trial.n}</small></h2>`,
    `<p>${escaped(trialText(trial, proof))}</p>`,
    trial.planned === null ? '' : timelineSvg(trial.planned.fault, pointsAt(trial.planned.start, proof)),
    claimsSuccess ? '<p>It then ended with status 0, so nobody runs it again.</p>' : '',
    `<p>${escaped(outcomeText(finding))}</p>`,
    rowsHtml(finding),
    others.length === 0
      ? ''
      : `<p>also ${escaped(others.map((one) => `${one.class}: ${subjectOf(one)}`).join('; '))}</p>`,
    cause === null
      ? ''
      : `<p><b>why</b> ${escaped(cause.why)}</p>\n<p><b>cure</b> ${escaped(cause.cure)}</p>`,
    hint === null ? '' : `<p>${escaped(hint)}</p>`,
    also.length === 0 ? '' : `<p class="dim">the same in trial ${also.map(({ n }) => n).join(', ')}</p>`,
    `<p class="dim">again: <code>stet prove --replay ${trial.n} …</code></p>`,
  ]
  const body = parts.filter((part) => part !== '').join('\n')
  return `<section class="finding ${convicts ? 'convicts' : 'warns'}">${body}</section>`
}

function rowsHtml({ difference }: Finding): string {
  const table = rowTable(difference)
  if (table === null) return ''
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    `<tr>${row.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`
  const more = table.more > 0 ? `<p class="dim">… ${table.more} more</p>` : ''
  return `<div class="wide"><table class="rows"><thead>${cells('th', table.head)}</thead><tbody>${table.rows.map((row) => cells('td', row)).join('')}</tbody></table></div>${more}`
}

function trialTable(proof: Proof): string {
  const rows = proof.trials.map((trial) => {
    const found = trial.differences.map((one) => `${one.class}: ${subjectOf(one)}`)
    const end = trial.isReached ? found.join('; ') || 'equal' : 'the place was not met again'
    return `<tr><td>${trial.n}</td><td>${escaped(trialText(trial, proof))}</td><td>${escaped(end)}</td></tr>`
  })
  return `<details><summary>All ${rows.length} trials</summary><div class="wide"><table><thead><tr><th>trial</th><th>what was done</th><th>end</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div></details>`
}
