/** `copy` and `load data`. */
import type { Draft } from './draft.ts'
import { readColumns, readName } from './name.ts'
import { afterBracket, areWords, findWords, isSymbol, isWord, type Tokens, tokenAt } from './tokens.ts'

export function copy(tokens: Tokens): Draft {
  // MonetDB says first how many records the file has: `copy 500 offset 2 records into t`.
  const records = tokens.findIndex((_, index) => index < 6 && areWords(tokens, index, ['records', 'into']))
  const at = records > 0 ? records + 2 : isWord(tokens, 1, 'into') ? 2 : 1
  if (isSymbol(tokens, at, '(')) return { kind: 'export' }
  const named = readName(tokens, at)
  if (named === undefined || named.name.text.startsWith('@') || named.name.text.startsWith('{@'))
    return { kind: 'export' }
  const depth = tokenAt(tokens, 0).depth
  let next = named.next
  let columns: string[] | undefined
  if (isSymbol(tokens, next, '(')) {
    columns = readColumns(tokens, next)
    next = afterBracket(tokens, next)
  }
  const from = findWords(tokens, ['from'], next, depth)
  const to = findWords(tokens, ['to'], next, depth)
  // `Copy a day's rows from ...` is prose: between the table and `from` stand only columns.
  if (from >= 0 && tokens.slice(next, from).some((token) => token.kind === 'word' || token.kind === 'quoted'))
    return { kind: 'other' }
  if (from < 0 || (to >= 0 && to < from)) return { kind: to >= 0 || from < 0 ? 'export' : 'other' }
  return { kind: 'copy', target: named.name, columns, rows: 'select' }
}

export function load(tokens: Tokens): Draft {
  if (!isWord(tokens, 1, 'data')) return { kind: 'other' }
  const into = findWords(tokens, ['into'])
  const overwrite = findWords(tokens, ['overwrite']) >= 0
  const at = into >= 0 ? into : findWords(tokens, ['overwrite'])
  const table = isWord(tokens, at + 1, 'table') ? at + 2 : at + 1
  const partition = findWords(tokens, ['partition']) > 0 || findWords(tokens, ['partitions']) > 0
  return {
    kind: 'load',
    target: at < 0 ? undefined : readName(tokens, table)?.name,
    overwrite,
    partition,
    rows: 'select',
  }
}
