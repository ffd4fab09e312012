import type { Reject } from '../model/source.ts'

/**
 * The rejected rows, each once, however many faults it has. A row of a file is known by its line; the lines of a query's
 * answer mean nothing the next time, so a row without a file is known by how many equal ones came before it.
 */
export function rowsToQuarantine(rejects: readonly Reject[]): readonly Reject[] {
  const seen = new Set<string>()
  const copies = new Map<string, number>()
  return rejects.flatMap((reject) => {
    const place = JSON.stringify([reject.file, reject.line])
    if (reject.line !== null && seen.has(place)) return []
    seen.add(place)
    if (reject.file !== null) return [reject]
    const content = reject.raw ?? JSON.stringify([reject.column, reject.value, reject.reason])
    const copy = (copies.get(content) ?? 0) + 1
    copies.set(content, copy)
    return [{ ...reject, line: copy }]
  })
}
