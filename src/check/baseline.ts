/** Findings that a repository has already, so that only new ones fail. Keys survive moved lines. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { StetError } from '../errors.ts'
import type { Finding } from './finding.ts'

export interface Baseline {
  readonly version: 1
  /** Fingerprint to the rule and path it stands for, for the reader of a diff. */
  readonly findings: Readonly<Record<string, string>>
}

export function readBaseline(path: string): Baseline | undefined {
  if (!existsSync(path)) return undefined
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new StetError('STET_CONFIG', `Cannot read the baseline ${path}: it is not JSON`, {
      hint: 'Write it anew: stet check --update-baseline',
      cause,
    })
  }
  if (
    typeof content !== 'object' ||
    content === null ||
    !('version' in content) ||
    content.version !== 1 ||
    !('findings' in content)
  ) {
    throw new StetError('STET_CONFIG', `Cannot read the baseline ${path}: wanted version 1`, {
      hint: 'Write it anew: stet check --update-baseline',
    })
  }
  const findings = content.findings
  return {
    version: 1,
    findings:
      typeof findings === 'object' && findings !== null
        ? Object.fromEntries(Object.entries(findings).map(([key, value]) => [key, String(value)]))
        : {},
  }
}

export function applyBaseline(
  findings: readonly Finding[],
  baseline: Baseline | undefined,
): { findings: Finding[]; gone: number } {
  if (baseline === undefined) return { findings: [...findings], gone: 0 }
  const seen = new Set<string>()
  const marked = findings.map((finding) => {
    if (baseline.findings[finding.fingerprint] === undefined) return finding
    seen.add(finding.fingerprint)
    return finding.suppressed === undefined
      ? { ...finding, suppressed: { reason: 'in the baseline', by: 'baseline' as const } }
      : finding
  })
  return { findings: marked, gone: Object.keys(baseline.findings).filter((key) => !seen.has(key)).length }
}

/** `update`: all findings of now; `prune`: only those of the old baseline that are still there. */
export function writeBaseline(
  path: string,
  findings: readonly Finding[],
  keepOnly: Baseline | undefined,
): void {
  const kept = findings.filter(
    (finding) =>
      finding.suppressed?.by !== 'comment' &&
      finding.severity !== 'info' &&
      (keepOnly === undefined || keepOnly.findings[finding.fingerprint] !== undefined),
  )
  const entries = kept.map((finding): [string, string] => [
    finding.fingerprint,
    `${finding.rule} ${finding.path}`,
  ])
  entries.sort(([, left], [, right]) => (left < right ? -1 : 1))
  writeFileSync(path, `${JSON.stringify({ version: 1, findings: Object.fromEntries(entries) }, null, 2)}\n`)
}
