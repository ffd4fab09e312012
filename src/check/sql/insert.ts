/** `insert`, `replace into`, `insert overwrite`. */

import { readAssignments } from './assignments.ts'
import { readConflict } from './conflict.ts'
import type { Draft } from './draft.ts'
import { readColumns, readName } from './name.ts'
import type { Conflict, Statement } from './statement.ts'
import { afterBracket, areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

export function insert(tokens: Tokens): Draft {
  let at = 1
  let overwrite = false
  let conflictHow: 'ignore' | 'replace' | undefined = isWord(tokens, 0, 'replace') ? 'replace' : undefined
  const conflictStart = tokenAt(tokens, 0).start
  for (;;) {
    if (isWord(tokens, at, 'or')) {
      conflictHow = isWord(tokens, at + 1, 'replace')
        ? 'replace'
        : isWord(tokens, at + 1, 'ignore')
          ? 'ignore'
          : conflictHow
      at += 2
    } else if (isWord(tokens, at, 'ignore')) {
      conflictHow = 'ignore'
      at += 1
    } else if (isWord(tokens, at, 'overwrite')) {
      overwrite = true
      at += 1
    } else if (isWord(tokens, at, 'low_priority', 'high_priority', 'delayed', 'into', 'all', 'first')) at += 1
    else if (isWord(tokens, at, 'table') && !isSymbol(tokens, at + 1, '(')) at += 1
    else if (at === 1 && isMode(tokens)) {
      // Into or overwrite, which only its caller knows: nothing is said of it.
      overwrite = true
      at += 1
    } else break
  }
  if (isWord(tokens, at, 'local', 'directory')) return { kind: 'other' }
  const named = readName(tokens, at)
  if (named === undefined) return { kind: 'other' }
  at = named.next
  let partition = /\$\{?\d{8}|\$\{/.test(named.name.text)
  if (isWord(tokens, at, 'partition') && isSymbol(tokens, at + 1, '(')) {
    partition = true
    at = afterBracket(tokens, at + 1)
  }
  if (isWord(tokens, at, 'if')) at = findWords(tokens, ['exists'], at) + 1 || at
  if (isWord(tokens, at, 'as') && !isWord(tokens, at + 1, 'select', 'with')) at += 2
  else if (
    tokenAt(tokens, at).kind === 'word' &&
    isWord(tokens, at + 1, 'values') &&
    !isWord(tokens, at, 'default')
  )
    at += 1
  let columns: string[] | undefined
  if (isSymbol(tokens, at, '(') && !isWord(tokens, at + 1, 'select', 'with')) {
    columns = readColumns(tokens, at)
    at = afterBracket(tokens, at)
  }
  // BigQuery, Snowflake: `overriding`, `by name`, `partition (...)` behind the columns.
  if (isWord(tokens, at, 'overriding')) at += 3
  if (areWords(tokens, at, ['by', 'name']) || areWords(tokens, at, ['by', 'position'])) at += 2
  if (isWord(tokens, at, 'partition') && isSymbol(tokens, at + 1, '(')) {
    partition = true
    at = afterBracket(tokens, at + 1)
  }
  const replaceWhere = findWords(tokens, ['replace', 'where'], at, tokenAt(tokens, 0).depth)
  if (replaceWhere >= 0) {
    overwrite = true
    partition = true
  }
  const head = tokenAt(tokens, at)
  const rows: Statement['rows'] =
    head.value === 'values' || head.value === 'value' || head.value === 'default' || head.value === 'set'
      ? 'values'
      : head.value === 'select' ||
          head.value === 'with' ||
          head.value === 'from' ||
          head.value === 'table' ||
          head.value === '('
        ? 'select'
        : head.kind === 'hole' || at >= tokens.length
          ? 'unknown'
          : undefined
  if (rows === undefined && tokenAt(tokens, 1).value !== 'into' && !overwrite) return { kind: 'other' }
  const conflict =
    readConflict(tokens, at) ?? simpleConflict(conflictHow, conflictStart, tokenAt(tokens, at).start)
  const queryEnd =
    conflict?.how === 'on-conflict' || conflict?.how === 'duplicate-key'
      ? tokens.findIndex((token) => token.start === conflict.start)
      : tokens.length
  return {
    kind: 'insert',
    target: named.name,
    columns,
    rows: rows ?? 'unknown',
    query: tokens.slice(at, queryEnd < 0 ? tokens.length : queryEnd),
    conflict,
    overwrite,
    partition,
    set: head.value === 'set' ? readAssignments(tokens.slice(at + 1)) : [],
  }
}

/** `insert {{ mode }} {{ target }} select`: two names in a row, of which the first is a hole. */
function isMode(tokens: Tokens): boolean {
  const [, mode, name, next] = tokens
  return (
    mode?.kind === 'hole' &&
    name !== undefined &&
    name.start > mode.end &&
    (name.kind === 'hole' || name.kind === 'quoted' || (name.kind === 'word' && next?.value === '.'))
  )
}

function simpleConflict(
  how: 'ignore' | 'replace' | undefined,
  start: number,
  end: number,
): Conflict | undefined {
  if (how === undefined) return undefined
  return {
    action: how === 'ignore' ? 'nothing' : 'replace',
    how,
    columns: undefined,
    constraint: false,
    set: [],
    where: undefined,
    start,
    end,
  }
}
