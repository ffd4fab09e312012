import type { CheckResult } from '../command.ts'

/** Workflow commands that GitHub shows as annotations on the changed lines. */
export function renderGithub(result: CheckResult): string {
  const level = { error: 'error', warning: 'warning', info: 'notice' } as const
  return result.findings
    .filter((finding) => finding.suppressed === undefined)
    .map((finding) => {
      const properties = [
        `file=${property(finding.path)}`,
        `line=${finding.from.line}`,
        `endLine=${finding.to.line}`,
        `col=${finding.from.column}`,
        `title=${property(`stet ${finding.rule}`)}`,
      ]
      return `::${level[finding.severity]} ${properties.join(',')}::${data(`${finding.message}. Safe: ${finding.advice}`)}\n`
    })
    .join('')
}

function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
