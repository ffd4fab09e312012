/** `update` and `delete`. */

import { readAssignments } from './assignments.ts'
import type { Draft } from './draft.ts'
import { readName } from './name.ts'
import { findWords, isWord, type Tokens, tokenAt } from './tokens.ts'

export function update(tokens: Tokens): Draft {
  const depth = tokenAt(tokens, 0).depth
  let at = 1
  while (isWord(tokens, at, 'only', 'ignore', 'low_priority') || (isWord(tokens, at, 'or') && at < 3))
    at += isWord(tokens, at, 'or') ? 2 : 1
  const named = readName(tokens, at)
  const set = findWords(tokens, ['set'], at, depth)
  if (named === undefined || set < 0) return { kind: 'other' }
  const where = findWords(tokens, ['where'], set, depth)
  const from = findWords(tokens, ['from'], set, depth)
  const returning = findWords(tokens, ['returning'], set, depth)
  const ends = [where, from, returning].filter((index) => index >= 0)
  return {
    kind: 'update',
    target: named.name,
    set: readAssignments(tokens.slice(set + 1, ends.length === 0 ? tokens.length : Math.min(...ends))),
    where: where < 0 ? undefined : tokens.slice(where + 1, returning > where ? returning : tokens.length),
    query: from < 0 ? [] : tokens.slice(from),
  }
}

export function remove(tokens: Tokens): Draft {
  const depth = tokenAt(tokens, 0).depth
  const from = findWords(tokens, ['from'], 1, depth)
  const at = from === 1 ? 2 : from > 1 && from <= 4 ? from + 1 : 1
  const named = readName(tokens, isWord(tokens, at, 'only') ? at + 1 : at)
  if (named === undefined) return { kind: 'other' }
  const where = findWords(tokens, ['where'], at, depth)
  const returning = findWords(tokens, ['returning'], at, depth)
  return {
    kind: 'delete',
    target: named.name,
    where: where < 0 ? undefined : tokens.slice(where + 1, returning > where ? returning : tokens.length),
    query: [],
  }
}
