/** `create` and `alter table`. */
import type { Draft } from './draft.ts'
import { readColumns, readName } from './name.ts'
import { areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

const TABLE_WORDS = [
  'table',
  'temp',
  'temporary',
  'transient',
  'external',
  'unlogged',
  'global',
  'local',
  'or',
  'replace',
  'foreign',
  'volatile',
  'hybrid',
  'dynamic',
  'live',
  'streaming',
  'iceberg',
  'multiset',
  'set',
  'recursive',
  'materialized',
  'secure',
  'force',
  'constraint',
  'unique',
]

export function create(tokens: Tokens): Draft {
  let at = 1
  let orReplace = false
  let temporary = false
  const before = new Set<string>()
  while (isWord(tokens, at, ...TABLE_WORDS)) {
    const word = tokenAt(tokens, at).value
    if (word === 'replace') orReplace = true
    if (word === 'temp' || word === 'temporary' || word === 'volatile') temporary = true
    before.add(word)
    at += 1
    if (word === 'table') break
  }
  if (!before.has('table')) {
    const what = tokenAt(tokens, at).value
    const guarded = areWords(tokens, at + 1, ['if', 'not', 'exists'])
    const nameAt = guarded ? at + 4 : at + 1
    if (what === 'view')
      return { kind: 'create-view', orReplace, guarded, temporary, target: readName(tokens, nameAt)?.name }
    if (what === 'index') {
      const on = findWords(tokens, ['on'], at)
      const table = readName(tokens, isWord(tokens, on + 1, 'only') ? on + 2 : on + 1)
      return { kind: 'create-index', orReplace, guarded, target: on < 0 ? undefined : table?.name }
    }
    if (what === 'trigger') {
      const on = findWords(tokens, ['on'], at)
      return {
        kind: 'create-trigger',
        orReplace,
        guarded,
        target: on < 0 ? undefined : readName(tokens, on + 1)?.name,
      }
    }
    if (what === 'function' || what === 'procedure') return { kind: 'create-routine', orReplace, guarded }
    return { kind: 'create-other', orReplace, guarded }
  }
  const guarded = areWords(tokens, at, ['if', 'not', 'exists'])
  if (guarded) at += 3
  const named = readName(tokens, at)
  if (named === undefined) return { kind: 'create-table', orReplace, temporary, guarded }
  const depth = tokenAt(tokens, 0).depth
  const as = findWords(tokens, ['as'], named.next, depth)
  const select = isWord(tokens, as + 1, 'select', 'with') || isSymbol(tokens, as + 1, '(')
  const columns = isSymbol(tokens, named.next, '(') ? readColumns(tokens, named.next) : undefined
  return {
    kind: 'create-table',
    target: named.name,
    orReplace,
    guarded,
    temporary: temporary || named.name.text.startsWith('#'),
    columns,
    rows: as >= 0 && select ? 'select' : undefined,
    query: as >= 0 && select ? tokens.slice(as + 1) : [],
  }
}

export function alterTable(tokens: Tokens): Draft {
  let at = 2
  while (isWord(tokens, at, 'only', 'if', 'exists')) at += 1
  return { kind: 'alter-table', target: readName(tokens, at)?.name }
}
