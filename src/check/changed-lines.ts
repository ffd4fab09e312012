/** Lines that a change adds, as git tells them. */
import { execFileSync } from 'node:child_process'
import { StetError } from '../errors.ts'
import type { Finding } from './finding.ts'

export type ChangedLines = ReadonlyMap<string, readonly { readonly from: number; readonly to: number }[]>

export function changedLines(root: string, base: string): ChangedLines {
  const run = (...args: string[]): string => {
    try {
      return execFileSync('git', args, {
        cwd: root,
        encoding: 'utf8',
        maxBuffer: 1 << 28,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    } catch (cause) {
      throw new StetError('STET_USAGE', `Cannot compare with "${base}": git knows no such revision here`, {
        hint: 'In CI, fetch it first: git fetch origin main',
        cause,
      })
    }
  }
  // Against the merge base, so that what others changed meanwhile is not taken for part of the change.
  let from = base
  try {
    from = execFileSync('git', ['merge-base', base, 'HEAD'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    // A shallow clone holds no common ancestor; the revision itself is the next best.
  }
  const changed = new Map<string, { from: number; to: number }[]>()
  let path = ''
  for (const line of run(
    '-c',
    'core.quotePath=false',
    'diff',
    '--unified=0',
    '--no-color',
    '--relative',
    '--no-ext-diff',
    from,
    '--',
  ).split('\n')) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)
    if (file !== null) path = file[1] ?? ''
    const hunk = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line)
    if (hunk === null) continue
    const start = Number(hunk[1])
    const count = hunk[2] === undefined ? 1 : Number(hunk[2])
    if (count > 0) changed.set(path, [...(changed.get(path) ?? []), { from: start, to: start + count - 1 }])
  }
  for (const added of run('ls-files', '-z', '--others', '--exclude-standard').split('\0')) {
    if (added !== '') changed.set(added, [{ from: 1, to: Number.MAX_SAFE_INTEGER }])
  }
  return changed
}

/** Whether the finding lies on a changed line: a statement of which any line changed is part of the change. */
export function isChanged(finding: Finding, changed: ChangedLines): boolean {
  return (changed.get(finding.path) ?? []).some(
    (range) => range.from <= finding.to.line && finding.from.line <= range.to,
  )
}
