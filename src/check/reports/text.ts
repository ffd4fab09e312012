/** Findings for people: a code frame, the reason, the safe form. */
import pc from 'picocolors'
import { patchOf } from '../apply-fixes.ts'
import type { CheckResult } from '../command.ts'
import type { Finding } from '../finding.ts'
import { lineIndex } from '../lines.ts'

export interface TextOptions {
  readonly color?: boolean
  /** Hints, and findings that are suppressed, are left out unless asked for. */
  readonly all?: boolean
}

export function renderText(result: CheckResult, options: TextOptions = {}): string {
  const colors = pc.createColors(options.color ?? false)
  const shown = result.findings.filter(
    (finding) => options.all || (finding.severity !== 'info' && finding.suppressed === undefined),
  )
  const out: string[] = []
  for (const finding of shown) out.push(...renderFinding(finding, result, colors), '')
  for (const one of result.bareIgnores)
    out.push(
      `${one.path}:${one.line}: stet-ignore without a reason is not followed; write: stet-ignore ${one.rules[0] ?? 'rule'}: why`,
    )
  for (const one of result.unusedIgnores)
    out.push(
      `${one.path}:${one.line}: stet-ignore${one.rules.length > 0 ? ` ${one.rules.join(', ')}` : ''} silences nothing; remove it`,
    )
  if (result.baselineGone > 0)
    out.push(
      `${result.baselineGone} finding(s) of the baseline are gone; take them out: stet check --prune-baseline`,
    )
  for (const one of result.notUnderstood)
    out.push(colors.dim(`${one.path}: not understood: ${one.count} statement(s)`))
  for (const one of result.notRead) out.push(colors.dim(`${one.path}: not read: ${one.reason}`))
  out.push(summary(result, options.all ?? false))
  return `${out.join('\n')}\n`
}

function renderFinding(
  finding: Finding,
  result: CheckResult,
  colors: ReturnType<typeof pc.createColors>,
): string[] {
  const paint =
    finding.severity === 'error' ? colors.red : finding.severity === 'warning' ? colors.yellow : colors.blue
  const text = result.texts.get(finding.path) ?? ''
  const lines = lineIndex(text)
  const out = [
    `${finding.path}:${finding.from.line}:${finding.from.column} ${paint(finding.severity)} ${colors.bold(finding.rule)} ${colors.dim(`(${finding.class}, ${finding.anomaly}, confidence ${finding.confidence})`)}`,
    `  ${finding.message}.`,
  ]
  const last = Math.min(finding.to.line, finding.from.line + 3)
  const width = String(last).length
  for (let line = finding.from.line; line <= last; line += 1) {
    out.push(`  ${colors.dim(`${String(line).padStart(width)} |`)} ${lines.line(line).slice(0, 140)}`)
    if (line === finding.from.line) {
      const end = finding.to.line === line ? finding.to.column : lines.line(line).length + 1
      const length = Math.max(1, Math.min(end, 140) - finding.from.column)
      out.push(
        `  ${' '.repeat(width)} ${colors.dim('|')} ${' '.repeat(Math.max(0, finding.from.column - 1))}${paint('^'.repeat(length))}`,
      )
    }
  }
  if (finding.to.line > last) out.push(`  ${' '.repeat(width)} ${colors.dim('| ...')}`)
  out.push(`  ${colors.green('safe:')} ${finding.advice}`)
  if (finding.fix !== undefined) {
    out.push(
      `  ${colors.dim(finding.fix.safe ? `fix (stet check --fix): ${finding.fix.title}` : `suggestion: ${finding.fix.title}`)}`,
    )
    for (const line of patchOf(text, finding.fix).slice(0, 12)) out.push(`    ${line}`)
  }
  for (const line of finding.witness?.lines ?? []) out.push(`  ${colors.cyan('witness:')} ${line}`)
  if (finding.suppressed !== undefined)
    out.push(`  ${colors.dim(`suppressed: ${finding.suppressed.reason}`)}`)
  return out
}

function summary(result: CheckResult, all: boolean): string {
  const open = result.findings.filter((finding) => finding.suppressed === undefined)
  const count = (test: (finding: Finding) => boolean): number => open.filter(test).length
  const parts = [
    plural(
      count((one) => one.severity === 'error'),
      'error',
    ),
    plural(
      count((one) => one.severity === 'warning' && one.class !== 'window'),
      'warning',
    ),
    plural(
      count((one) => one.severity === 'warning' && one.class === 'window'),
      'window',
    ),
    `${plural(
      count((one) => one.severity === 'info'),
      'hint',
    )}${all ? '' : ' (shown with --all)'}`,
  ]
  const silenced = result.findings.length - open.length
  const tail = [
    silenced > 0 ? `${silenced} suppressed` : '',
    result.fixed > 0 ? `${result.fixed} fixed` : '',
  ].filter((part) => part !== '')
  return `${plural(result.files, 'file')}: ${[...parts, ...tail].join(', ')}; ${result.failing} of them ${result.failing === 1 ? 'fails' : 'fail'} this run. About a rule: stet explain <rule>`
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
