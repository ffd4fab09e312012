/** Whether a delete can hit what a load adds, wherever it stands. */
import { hasClock } from './rules/clock.ts'
import type { Statement } from './sql/statement.ts'
import { conjuncts, findWords } from './sql/tokens.ts'

/**
 * All rows are deleted, or those of a slice that the condition names. One that only knows an upper bound, `at < ...`,
 * throws old rows away and leaves those of the last run in place.
 */
export function makesRoom({ kind, tokens }: Statement): boolean {
  if (kind === 'truncate') return true
  if (kind !== 'delete') return false
  const where = findWords(tokens, ['where'])
  if (where < 0) return true
  const condition = tokens.slice(where + 1)
  // A condition that the host puts together is not seen.
  if (condition[0]?.kind === 'hole') return true
  return conjuncts(condition).some((part) =>
    part.some(({ kind: sort, value }, index) => {
      if (sort === 'word') return ['in', 'between', 'like', 'any'].includes(value)
      if (sort !== 'symbol') return false
      // `now() - at > interval '7 days'` is an upper bound too, `at > now() - interval '7 days'` is none.
      if (/^>=?$/.test(value)) return !hasClock(part.slice(0, index))
      if (/^<=?$/.test(value)) return hasClock(part.slice(0, index))
      return value === '='
    }),
  )
}
