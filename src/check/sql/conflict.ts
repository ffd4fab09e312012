/** `on conflict` and `on duplicate key update`. */

import { readAssignments } from './assignments.ts'
import { readColumns } from './name.ts'
import type { Conflict } from './statement.ts'
import { afterBracket, areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

export function readConflict(tokens: Tokens, from: number): Conflict | undefined {
  const depth = tokenAt(tokens, 0).depth
  const duplicate = findWords(tokens, ['on', 'duplicate', 'key', 'update'], from, depth)
  if (duplicate >= 0) {
    return {
      action: 'update',
      how: 'duplicate-key',
      columns: undefined,
      constraint: false,
      set: readAssignments(tokens.slice(duplicate + 4)),
      where: undefined,
      start: tokenAt(tokens, duplicate).start,
      end: tokenAt(tokens, tokens.length - 1).end,
    }
  }
  const on = findWords(tokens, ['on', 'conflict'], from, depth)
  if (on < 0) return undefined
  let at = on + 2
  let columns: string[] | undefined
  let constraint = false
  if (isSymbol(tokens, at, '(')) {
    columns = readColumns(tokens, at)
    at = afterBracket(tokens, at)
  } else if (areWords(tokens, at, ['on', 'constraint'])) {
    constraint = true
    at += 3
  }
  const action = findWords(tokens, ['do'], at, depth)
  const updates = isWord(tokens, action + 1, 'update')
  const clause = action < 0 ? [] : tokens.slice(action + 3)
  const where = findWords(clause, ['where'], 0, depth)
  const returning = findWords(clause, ['returning'], 0, depth)
  const end = returning < 0 ? clause.length : returning
  return {
    action:
      updates || (action < 0 && tokens.slice(at).some((token) => token.kind === 'hole'))
        ? 'update'
        : 'nothing',
    how: 'on-conflict',
    columns,
    constraint,
    set: updates ? readAssignments(clause.slice(0, where < 0 ? end : where)) : [],
    where: updates && where >= 0 ? clause.slice(where + 1, end) : undefined,
    start: tokenAt(tokens, on).start,
    end: tokenAt(tokens, tokens.length - 1).end,
  }
}
