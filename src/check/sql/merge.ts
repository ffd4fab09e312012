/** `merge into`. */

import { readAssignments } from './assignments.ts'
import type { Draft } from './draft.ts'
import { readName } from './name.ts'
import type { MergeBranch } from './statement.ts'
import { afterBracket, areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

export function merge(tokens: Tokens): Draft {
  let at = isWord(tokens, 1, 'into') ? 2 : 1
  const named = readName(tokens, at)
  const depth = tokenAt(tokens, 0).depth
  const using = findWords(tokens, ['using'], 1, depth)
  if (named === undefined || using < 0) return { kind: 'other' }
  at = named.next
  if (areWords(tokens, at, ['with']) && isSymbol(tokens, at + 1, '(')) at = afterBracket(tokens, at + 1)
  const targetAlias = using > at ? tokenAt(tokens, using - 1).value : undefined
  const on = findWords(tokens, ['on'], using, depth)
  const firstWhen = findWords(tokens, ['when'], using, depth)
  const end = firstWhen < 0 ? tokens.length : firstWhen
  const source = tokens.slice(using + 1, on < 0 ? end : on)
  const sourceName = isSymbol(source, 0, '(') ? undefined : readName(source, 0)?.name
  const alias = source.at(-1)
  return {
    kind: 'merge',
    target: named.name,
    merge: {
      source,
      sourceName,
      on: on < 0 ? [] : tokens.slice(on + 1, end),
      branches: readBranches(tokens.slice(end), depth),
      targetAlias,
      sourceAlias: alias?.kind === 'word' || alias?.kind === 'quoted' ? alias.value : undefined,
    },
    query: source,
  }
}

function readBranches(tokens: Tokens, depth: number): MergeBranch[] {
  const branches: MergeBranch[] = []
  let at = 0
  while (isWord(tokens, at, 'when')) {
    const next = findWords(tokens, ['when'], at + 1, depth)
    const branch = tokens.slice(at, next < 0 ? tokens.length : next)
    const then = findWords(branch, ['then'], 0, depth)
    const verb = tokenAt(branch, then + 1).value
    const set = findWords(branch, ['set'], then, depth)
    branches.push({
      matched: !isWord(branch, 1, 'not'),
      bySource: findWords(branch, ['by', 'source'], 0, depth) > 0,
      condition: (() => {
        const and = findWords(branch, ['and'], 0, depth)
        return and > 0 && and < then ? branch.slice(and + 1, then) : []
      })(),
      action: verb === 'update' || verb === 'insert' || verb === 'delete' ? verb : 'nothing',
      set: set < 0 ? [] : readAssignments(branch.slice(set + 1)),
    })
    if (next < 0) break
    at = next
  }
  return branches
}
