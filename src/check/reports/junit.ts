import type { CheckResult } from '../command.ts'
import type { Finding } from '../finding.ts'

/** JUnit XML: one suite a file, one failing case a finding; suppressed findings are skipped cases. */
export function renderJunit(result: CheckResult): string {
  const byPath = new Map<string, Finding[]>()
  for (const finding of result.findings)
    byPath.set(finding.path, [...(byPath.get(finding.path) ?? []), finding])
  const failures = result.findings.filter((finding) => isFailure(finding)).length
  const suites = [...byPath].map(([path, findings]) => {
    const cases = findings.map((finding) => {
      const head = `    <testcase classname="${escaped(path)}" name="${escaped(`${finding.rule} line ${finding.from.line}`)}"`
      if (finding.suppressed !== undefined)
        return `${head}><skipped message="${escaped(finding.suppressed.reason)}"/></testcase>`
      if (!isFailure(finding)) return `${head}/>`
      return `${head}><failure type="${escaped(finding.severity)}" message="${escaped(finding.message)}">${escaped(`${path}:${finding.from.line}:${finding.from.column}\n${finding.advice}`)}</failure></testcase>`
    })
    return `  <testsuite name="${escaped(path)}" tests="${findings.length}" failures="${findings.filter((finding) => isFailure(finding)).length}" errors="0" skipped="${findings.filter((finding) => finding.suppressed !== undefined).length}">\n${cases.join('\n')}\n  </testsuite>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="stet check" tests="${result.findings.length}" failures="${failures}">\n${suites.join('\n')}${suites.length > 0 ? '\n' : ''}</testsuites>\n`
}

function isFailure(finding: Finding): boolean {
  return finding.suppressed === undefined && finding.severity !== 'info'
}

function escaped(text: string): string {
  return (
    text
      // Control characters are not allowed in XML 1.0, not even escaped.
      .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD]/g, '')
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
  )
}
