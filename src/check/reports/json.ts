import type { CheckResult } from '../command.ts'

/** The result as one JSON document, stable in its order. */
export function renderJson(result: CheckResult): string {
  return `${JSON.stringify(
    {
      version: 1,
      files: result.files,
      failing: result.failing,
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
        fix: finding.fix === undefined ? undefined : { title: finding.fix.title, safe: finding.fix.safe },
        suppressed: finding.suppressed,
        witness: finding.witness,
      })),
      notUnderstood: result.notUnderstood,
      notRead: result.notRead,
      unusedIgnores: result.unusedIgnores.map(({ path, line, rules }) => ({ path, line, rules })),
    },
    null,
    2,
  )}\n`
}
