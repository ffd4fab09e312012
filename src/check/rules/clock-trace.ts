/** From a value back to the clock it was made of. */
import type { HostAssignment, HostFacts, HostFunction } from '../languages/host.ts'
import { descendants, type SyntaxNode } from '../languages/tree.ts'
import { HOST_CLOCK } from './clock.ts'

export interface Trace {
  readonly clock: SyntaxNode
  readonly through: readonly string[]
}

/** The clock call that a value is made of, through variables of the same function; or a call by another pattern. */
export function clockBehind(
  node: SyntaxNode,
  host: HostFacts,
  fn: HostFunction | undefined,
  hops: number,
  pattern: RegExp = HOST_CLOCK,
): Trace | undefined {
  for (const one of descendants(node)) {
    const call = host.callOf(one)
    if (call !== undefined && pattern.test(call.callee) && !(call.callee === 'Date' && call.args.length > 0))
      return hasFallback(node, host) ? undefined : { clock: one, through: [] }
  }
  if (hops === 0) return undefined
  for (const one of descendants(node)) {
    if (
      one.type !== 'identifier' ||
      one.field === 'attribute' ||
      one.field === 'property' ||
      one.field === 'function'
    )
      continue
    const given = assignmentOf(host.source(one), one.start, host, fn)
    if (given === undefined) continue
    const found = clockBehind(given.value, host, fn, hops - 1, pattern)
    if (found !== undefined)
      return {
        clock: found.clock,
        through: [...found.through, given.name, host.source(given.value).slice(0, 200)],
      }
  }
  return undefined
}

/** `day or date.today()`, `given ?? new Date()`: the clock only stands in. */
function hasFallback(node: SyntaxNode, host: HostFacts): boolean {
  return [...descendants(node)].some(
    (one) =>
      // `given.get("day", today)`
      (host.callOf(one)?.name === 'get' && host.callOf(one)?.args.length === 2) ||
      /^(?:boolean_operator|conditional_expression|ternary_expression)$/.test(one.type) ||
      (one.type === 'binary_expression' && /\?\?|\|\|/.test(host.source(one))),
  )
}

function assignmentOf(
  name: string,
  before: number,
  host: HostFacts,
  fn: HostFunction | undefined,
): HostAssignment | undefined {
  const given = host.assignments.filter((one) => one.name === name && one.fn === fn && one.start < before)
  return given.at(-1)
}
