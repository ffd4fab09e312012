import type { CheckResult } from '../command.ts'

/** The JSON document of `stet check`: `schemas/check.json`. */
export interface CheckDocument {
  readonly format: 'stet-check-1'
  readonly files: number
  /** Findings that fail the run. */
  readonly failing: number
  readonly fixed: number
  readonly findings: readonly object[]
  readonly notUnderstood: readonly object[]
  readonly notRead: readonly object[]
  readonly unusedIgnores: readonly object[]
}

export function checkDocument(result: CheckResult): CheckDocument {
  return {
    format: 'stet-check-1',
    files: result.files,
    failing: result.failing,
    fixed: result.fixed,
    findings: result.findings.map((finding) => ({
      rule: finding.rule,
      path: finding.path,
      line: finding.from.line,
      column: finding.from.column,
      endLine: finding.to.line,
      endColumn: finding.to.column,
      severity: finding.severity,
      confidence: finding.confidence,
      class: finding.class,
      anomaly: finding.anomaly,
      message: finding.message,
      advice: finding.advice,
      fingerprint: finding.fingerprint,
      fix: finding.fix === undefined ? null : { title: finding.fix.title, safe: finding.fix.safe },
      suppressed: finding.suppressed ?? null,
      witness: finding.witness ?? null,
    })),
    notUnderstood: result.notUnderstood,
    notRead: result.notRead,
    unusedIgnores: result.unusedIgnores.map(({ path, line, rules }) => ({ path, line, rules })),
  }
}

export function renderJson(result: CheckResult): string {
  return `${JSON.stringify(checkDocument(result), null, 2)}\n`
}
