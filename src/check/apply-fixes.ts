import type { Edit, Finding, Fix } from './finding.ts'

export interface FixedFile {
  readonly path: string
  readonly text: string
  readonly applied: number
}

/** Applies the edits of these findings to one text; where two overlap, the first one wins and the next run sees the other. */
export function applyFixes(path: string, text: string, findings: readonly Finding[]): FixedFile | undefined {
  const chosen: { fix: Fix; from: number; to: number }[] = []
  for (const finding of findings) {
    const { fix } = finding
    if (fix === undefined || !fix.safe || finding.suppressed !== undefined) continue
    const from = Math.min(...fix.edits.map((edit) => edit.start))
    const to = Math.max(...fix.edits.map((edit) => edit.end))
    if (chosen.some((other) => from <= other.to && other.from <= to)) continue
    chosen.push({ fix, from, to })
  }
  if (chosen.length === 0) return undefined
  const edits: Edit[] = chosen
    .flatMap(({ fix }) => [...fix.edits])
    .sort((left, right) => right.start - left.start || right.end - left.end)
  let changed = text
  for (const edit of edits) changed = changed.slice(0, edit.start) + edit.text + changed.slice(edit.end)
  return { path, text: changed, applied: chosen.length }
}

/** The lines around an edit, before and after, as a patch to read. */
export function patchOf(text: string, fix: Fix): string[] {
  const from = Math.min(...fix.edits.map((edit) => edit.start))
  const to = Math.max(...fix.edits.map((edit) => edit.end))
  const start = text.lastIndexOf('\n', from - 1) + 1
  const lineEnd = text.indexOf('\n', to)
  const end = lineEnd < 0 ? text.length : lineEnd
  const before = text.slice(start, end)
  let after = before
  for (const edit of [...fix.edits].sort((left, right) => right.start - left.start)) {
    after = after.slice(0, edit.start - start) + edit.text + after.slice(edit.end - start)
  }
  return [...before.split('\n').map((line) => `- ${line}`), ...after.split('\n').map((line) => `+ ${line}`)]
}
