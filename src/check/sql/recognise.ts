/** The shape of one statement: its kind, and by kind its parts. */

import { copy, load } from './bulk.ts'
import { remove, update } from './change.ts'
import { alterTable, create } from './create.ts'
import type { Draft } from './draft.ts'
import { HEADS } from './heads.ts'
import { insert } from './insert.ts'
import type { Token } from './lexer.ts'
import { merge } from './merge.ts'
import { listOfNames } from './name.ts'
import type { Statement } from './statement.ts'
import { areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

/** First words of procedural code, which lead up to a statement in it. */
const PROCEDURAL = [
  'if',
  'while',
  'declare',
  'begin',
  'for',
  'foreach',
  'loop',
  'exception',
  'else',
  'elsif',
  'when',
]

export function recognise(tokens: readonly Token[]): Statement[] {
  let from = 0
  // A template expression that stands alone before the statement: `{{ config(...) }} select ...`.
  while (tokenAt(tokens, from).kind === 'hole' && from + 1 < tokens.length) from += 1
  if (isWord(tokens, from, 'go')) from += 1
  if (isWord(tokens, from, 'explain')) from += isWord(tokens, from + 1, 'analyze') ? 2 : 1
  // Procedural `begin insert ...; end`: the block has no transaction of its own.
  const block = ['begin', 'then', 'else', 'loop', 'do']
  while (isWord(tokens, from, ...block) && HEADS.has(tokenAt(tokens, from + 1).value)) from += 1
  const rest = from === 0 ? tokens : tokens.slice(from)
  if (rest.length === 0) return []
  if (isWord(rest, 0, 'create') && !isWord(rest, 1, 'table')) {
    const body = rest.findIndex(
      (token, index) =>
        index > 2 &&
        isWord(rest, index, 'begin', 'as') &&
        HEADS.has(tokenAt(rest, index + 1).value) &&
        token.depth === 0,
    )
    if (body > 0) return [shape(rest.slice(0, body + 1)), shape(rest.slice(body + 1))]
  }
  if (isWord(rest, 0, ...PROCEDURAL)) {
    const body = rest.findIndex(
      (_, index) =>
        isWord(rest, index, 'begin', 'then', 'as', 'loop', 'else') &&
        HEADS.has(tokenAt(rest, index + 1).value),
    )
    // `if not exists (select ...) begin insert ...`: the statement runs once by itself.
    const asked =
      body > 0 &&
      rest.slice(0, body).some((token) => token.kind === 'word' && token.value === 'if') &&
      rest.slice(0, body).some((token) => token.kind === 'word' && token.value === 'exists')
    if (body > 0 && !asked) return [shape(rest.slice(body + 1))]
    if (asked) return [{ ...shape(rest), kind: 'other' }]
  }
  return [shape(rest)]
}

function shape(tokens: Tokens): Statement {
  const first = tokenAt(tokens, 0)
  const draft = recogniseKind(tokens, first)
  return {
    tokens,
    start: first.start,
    end: tokenAt(tokens, tokens.length - 1).end,
    kind: draft.kind,
    target: draft.target,
    moreTargets: draft.moreTargets ?? [],
    columns: draft.columns,
    rows: draft.rows,
    query: draft.query ?? [],
    conflict: draft.conflict,
    overwrite: draft.overwrite ?? false,
    partition: draft.partition ?? false,
    temporary: draft.temporary ?? false,
    guarded: draft.guarded ?? false,
    orReplace: draft.orReplace ?? false,
    set: draft.set ?? [],
    where: draft.where,
    merge: draft.merge,
  }
}

function recogniseKind(tokens: Tokens, first: Token): Draft {
  if (first.kind === 'meta') return { kind: 'meta' }
  switch (first.value) {
    case 'with': {
      const main = mainAfterWith(tokens)
      if (main < 0) return { kind: 'select', query: tokens }
      const inner = recogniseKind(tokens.slice(main), tokenAt(tokens, main))
      return inner.kind === 'select'
        ? { kind: 'select', query: tokens }
        : { ...inner, query: [...tokens.slice(0, main), ...(inner.query ?? [])] }
    }
    case 'from':
    case 'select':
      return selectInto(tokens)
    case 'insert':
      return insert(tokens)
    case 'replace':
      return isWord(tokens, 1, 'into') || tokens.some((token) => token.value === 'values')
        ? insert(tokens)
        : { kind: 'other' }
    case 'upsert':
      return {
        ...insert(tokens),
        conflict: {
          action: 'update',
          how: 'on-conflict',
          columns: undefined,
          constraint: false,
          set: [],
          where: undefined,
          start: first.start,
          end: first.end,
        },
      }
    case 'merge':
      return merge(tokens)
    case 'update':
      return update(tokens)
    case 'delete':
      return remove(tokens)
    case 'truncate': {
      const at = isWord(tokens, 1, 'table') ? 2 : 1
      const only = isWord(tokens, at, 'only') ? at + 1 : at
      const guard = areWords(tokens, only, ['if', 'exists']) ? only + 2 : only
      return { kind: 'truncate', ...listOfNames(tokens, guard) }
    }
    case 'create':
      return create(tokens)
    case 'alter':
      return isWord(tokens, 1, 'table') ? alterTable(tokens) : { kind: 'other' }
    case 'drop': {
      const guarded = areWords(tokens, 2, ['if', 'exists']) || areWords(tokens, 3, ['if', 'exists'])
      const at = findWords(tokens, ['exists'])
      return { kind: 'drop', guarded, ...listOfNames(tokens, guarded && at > 0 ? at + 1 : 2) }
    }
    case 'copy':
      return copy(tokens)
    case 'load':
      return load(tokens)
    case 'export':
      return { kind: 'export' }
    case 'begin':
    case 'start':
      return { kind: first.value === 'begin' || isWord(tokens, 1, 'transaction') ? 'begin' : 'other' }
    case 'commit':
      return { kind: 'commit' }
    case 'end':
      return { kind: tokens.length === 1 || isWord(tokens, 1, 'transaction', 'work') ? 'commit' : 'other' }
    case 'rollback':
    case 'abort':
      return { kind: 'rollback' }
    case 'call':
    case 'exec':
    case 'execute':
      return { kind: 'call' }
    case 'set':
      return { kind: 'set' }
    case 'grant':
    case 'revoke':
      return { kind: 'grant' }
    case '(':
      return { kind: isWord(tokens, 1, 'select', 'with') ? 'select' : 'other', query: tokens }
    default:
      return { kind: 'other' }
  }
}

/** Behind the common table expressions; -1 if the text ends before the statement does. */
function mainAfterWith(tokens: Tokens): number {
  const depth = tokenAt(tokens, 0).depth
  for (let index = 1; index < tokens.length; index += 1) {
    const token = tokenAt(tokens, index)
    if (token.depth !== depth || token.kind !== 'word') continue
    if (
      ['select', 'insert', 'update', 'delete', 'merge', 'from'].includes(token.value) &&
      !isWord(tokens, index - 1, 'as')
    ) {
      return index
    }
  }
  return -1
}

/** `select ... into t` makes a table in Transact-SQL and PostgreSQL. */
function selectInto(tokens: Tokens): Draft {
  const depth = tokenAt(tokens, 0).depth
  const into = findWords(tokens, ['into'], 1, depth)
  const from = findWords(tokens, ['from'], 1, depth)
  if (into > 0 && from > into && tokenAt(tokens, into + 1).kind !== 'hole') {
    const temporary = isWord(tokens, into + 1, 'temp', 'temporary') || isSymbol(tokens, into + 1, '#')
    return { kind: 'select', query: tokens, temporary }
  }
  return { kind: 'select', query: tokens }
}
