/** `stet-ignore` comments of every language, and whether each of them is needed. */
import type { Finding } from './finding.ts'
import { lineIndex } from './lines.ts'

export interface Suppression {
  readonly path: string
  /** Where the comment stands. */
  readonly line: number
  /** The line it speaks of; undefined for the whole file. */
  readonly target: number | undefined
  /** Empty: every rule. */
  readonly rules: readonly string[]
  readonly reason: string
}

const COMMENT =
  /(?:--|#|\/\/|\/\*|\{#-?|<!--)\s*stet-ignore(-file)?\b[ \t]*([\w-]+(?:\s*,\s*[\w-]+)*)?[ \t]*(?::[ \t]*([^\n]*?))?[ \t]*(?:\*\/|-?#\}|-->)?\s*$/
const ONLY_COMMENT = /^\s*(?:--|#(?!!)|\/\/|\/\*|\{#)/

export function readSuppressions(path: string, text: string): Suppression[] {
  if (!text.includes('stet-ignore')) return []
  const lines = lineIndex(text)
  const found: Suppression[] = []
  for (let number = 1; number <= lines.count; number += 1) {
    const line = lines.line(number)
    const match = COMMENT.exec(line)
    if (match === null) continue
    let target: number | undefined = number
    if (match[1] !== undefined) target = undefined
    else if (line.slice(0, match.index).trim() === '') {
      // Alone on its line it speaks of the next line that is no comment itself.
      target = number + 1
      while (target < lines.count && ONLY_COMMENT.test(lines.line(target))) target += 1
    }
    found.push({
      path,
      line: number,
      target,
      rules: match[2] === undefined ? [] : match[2].split(',').map((rule) => rule.trim()),
      reason: (match[3] ?? '').trim(),
    })
  }
  return found
}

export interface Suppressed {
  readonly findings: readonly Finding[]
  /** Comments that silence nothing. */
  readonly unused: readonly Suppression[]
  /** Comments that silence something without saying why. */
  readonly bare: readonly Suppression[]
}

/** A comment without a reason silences nothing unless bare ones are allowed: a reason is what the next reader needs. */
export function applySuppressions(
  findings: readonly Finding[],
  suppressions: readonly Suppression[],
  allowBare: boolean,
): Suppressed {
  const used = new Set<Suppression>()
  const bare = new Set<Suppression>()
  const marked = findings.map((finding) => {
    const match = suppressions.find(
      (one) =>
        one.path === finding.path &&
        (one.target === undefined || one.target === finding.from.line) &&
        (one.rules.length === 0 || one.rules.includes(finding.rule)),
    )
    if (match === undefined) return finding
    used.add(match)
    if (match.reason === '' && !allowBare) {
      bare.add(match)
      return finding
    }
    return { ...finding, suppressed: { reason: match.reason, by: 'comment' as const } }
  })
  return { findings: marked, unused: suppressions.filter((one) => !used.has(one)), bare: [...bare] }
}
