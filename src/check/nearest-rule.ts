/** What somebody may have meant who names a rule that does not exist. */
import { RULES } from './rules/index.ts'

export function hintForRule(id: string): string {
  const byWord = RULES.filter(
    (one) => one.id.includes(id) || id.split('-').some((word) => word.length > 3 && one.id.includes(word)),
  )
  const near = RULES.filter((one) => distance(one.id, id) <= Math.max(2, id.length / 4))
  const close = [...new Set([...near, ...byWord])].slice(0, 4).map((one) => one.id)
  return close.length > 0 ? `Did you mean: ${close.join(', ')}` : 'List them: stet explain'
}

/** Letters to insert, leave out or change to get from one to the other. */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let at = 1; at <= left.length; at += 1) {
    const next = [at]
    for (let to = 1; to <= right.length; to += 1)
      next.push(
        Math.min(
          (row[to] ?? 0) + 1,
          (next[to - 1] ?? 0) + 1,
          (row[to - 1] ?? 0) + (left[at - 1] === right[to - 1] ? 0 : 1),
        ),
      )
    row = next
  }
  return row[right.length] ?? 0
}
