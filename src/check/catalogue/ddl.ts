/** Tables and their changes out of DDL of any dialect, read tolerantly. */
import { readName } from '../sql/name.ts'
import type { Name, Statement } from '../sql/statement.ts'
import {
  afterBracket,
  areWords,
  findWords,
  hasWords,
  insideBracket,
  isSymbol,
  isWord,
  splitByComma,
  type Tokens,
  tokenAt,
} from '../sql/tokens.ts'
import {
  addColumn,
  addKey,
  type DdlFact,
  emptyTable,
  looksLikeTouch,
  setNotNull,
  type TableDraft,
} from './table.ts'

const GENERATED_TYPE = /^(?:small|big)?serial[248]?$/
const GENERATED = new Set([
  'auto_increment',
  'autoincrement',
  'identity',
  'nextval',
  'uuid_generate_v4',
  'gen_random_uuid',
  'generate_uuid',
  'uuid_string',
  'newid',
  'rowversion',
])
/** First words of what stands among the columns of a table and is none. */
const NOT_A_COLUMN = [
  'primary',
  'unique',
  'constraint',
  'key',
  'index',
  'foreign',
  'check',
  'exclude',
  'like',
  'fulltext',
  'period',
] as const

/** What a statement says of a table; undefined if nothing. `at` gives the place in the file. */
export function readDdl(
  statement: Statement,
  path: string,
  at: (offset: number) => number,
): DdlFact | undefined {
  const { kind, target, tokens } = statement
  if (target === undefined) return undefined
  switch (kind) {
    case 'create-table':
      return {
        table: readTable(statement, target, path, at(statement.start)),
        parents: referencedWithCascade(tokens),
      }
    case 'create-trigger':
      return hasWords(tokens, 'update') && looksLikeTouch(tokens.map((token) => token.value).join(' '))
        ? {
            target,
            change: (table) => {
              table.touchTrigger = true
            },
          }
        : undefined
    case 'create-index':
      return isWord(tokens, 1, 'unique')
        ? { target, change: (table) => readUniqueIndex(tokens, table) }
        : undefined
    case 'alter-table':
      return { target, change: (table) => alter(tokens, table) }
    default:
      return undefined
  }
}

/** Whether the statement is of a kind that {@link readDdl} reads. */
export function isDdl(statement: Statement): boolean {
  return ['create-table', 'create-trigger', 'create-index', 'alter-table'].includes(statement.kind)
}

function readTable(statement: Statement, name: Name, path: string, start: number): TableDraft {
  const { tokens } = statement
  const table = emptyTable(name, path, start)
  table.temporary = statement.temporary
  table.upsertStore =
    /replacing\s*mergetree|collapsingmergetree|aggregatingmergetree|summingmergetree|engine\s*=\s*(?:set|join)\b/i.test(
      tokens.map((token) => token.value).join(' '),
    )
  const behind = tokens.findIndex((token) => token.start >= name.end)
  table.fromQuery =
    statement.rows === 'select' ||
    // A front of ClickHouse over the table of each shard, which has the engine that decides.
    /engine\s*=\s*distributed\b/i.test(tokens.map((token) => token.value).join(' ')) ||
    // A partition, a copy and a clone have the keys of another table.
    (behind > 0 &&
      (areWords(tokens, behind, ['partition', 'of']) || isWord(tokens, behind, 'like', 'clone', 'copy')))
  const open = tokens.findIndex(
    (token) => token.kind === 'symbol' && token.value === '(' && token.start >= name.end,
  )
  if (open < 0 || table.fromQuery) return table
  const inside = insideBracket(tokens, open)
  const tail = tokens.slice(afterBracket(tokens, open))
  const constraints: Tokens[] = []
  if (hasWords(tail, 'unique', 'key') || hasWords(tail, 'primary', 'key')) constraints.push(tail)
  for (const part of splitByComma(inside)) {
    if (isWord(part, 0, 'like')) table.fromQuery = true
    if (isWord(part, 0, ...NOT_A_COLUMN)) constraints.push(part)
    else readColumn(part, table, path)
  }
  for (const part of constraints) readConstraint(part, table)
  return table
}

function readColumn(part: Tokens, table: TableDraft, path: string): void {
  const first = tokenAt(part, 0)
  if (first.kind !== 'word' && first.kind !== 'quoted') return
  const primary = hasWords(part, 'primary', 'key')
  const generated =
    part.some(
      (token) => token.kind === 'word' && (GENERATED_TYPE.test(token.value) || GENERATED.has(token.value)),
    ) ||
    // The rowid of SQLite.
    (hasWords(part, 'integer', 'primary', 'key') &&
      part.length <= 5 &&
      table.columns.length === 0 &&
      path.includes('sqlite'))
  const name = first.value.toLowerCase()
  addColumn(table, {
    name,
    notNull: hasWords(part, 'not', 'null') || primary || generated,
    generated,
    defaulted: hasWords(part, 'default'),
  })
  if (primary || hasWords(part, 'unique'))
    addKey(table, [name], { primary, nullsNotDistinct: hasWords(part, 'nulls', 'not', 'distinct') })
}

function readConstraint(part: Tokens, table: TableDraft): void {
  const primary = hasWords(part, 'primary', 'key')
  const unique = findWords(part, ['unique'])
  if (!primary && unique < 0) return
  const at = primary ? findWords(part, ['primary']) : unique
  const open = part.findIndex((token, index) => index > at && token.kind === 'symbol' && token.value === '(')
  if (open < 0) return
  const columns = splitByComma(insideBracket(part, open)).map((one) => tokenAt(one, 0).value.toLowerCase())
  addKey(table, columns, { primary, nullsNotDistinct: hasWords(part, 'nulls', 'not', 'distinct') })
}

function readUniqueIndex(tokens: Tokens, table: TableDraft): void {
  const on = findWords(tokens, ['on'])
  const open = tokens.findIndex((token, index) => index > on && token.value === '(')
  if (open < 0) return
  const columns = splitByComma(insideBracket(tokens, open)).map((one) =>
    isSymbol(one, 1, '(') ? one.map((token) => token.value).join('') : tokenAt(one, 0).value.toLowerCase(),
  )
  addKey(table, columns, {
    nullsNotDistinct: hasWords(tokens, 'nulls', 'not', 'distinct'),
    partial: findWords(tokens, ['where']) > 0,
  })
}

function alter(tokens: Tokens, table: TableDraft): void {
  for (let at = findWords(tokens, ['add']); at >= 0; at = findWords(tokens, ['add'], at + 1)) {
    const name = isWord(tokens, at + 1, 'column') ? at + 2 : at + 1
    const start = areWords(tokens, name, ['if', 'not', 'exists']) ? name + 3 : name
    const column = tokenAt(tokens, start)
    if (
      column.kind === 'quoted' ||
      (column.kind === 'word' &&
        !['constraint', 'primary', 'unique', 'foreign', 'check', 'index', 'partition'].includes(column.value))
    ) {
      const end = tokens.findIndex(
        (token, index) => index > start && token.value === ',' && token.depth === 0,
      )
      const rest = tokens.slice(start, end < 0 ? tokens.length : end)
      readColumn(rest, table, '')
    }
  }
  if (
    findWords(tokens, ['add', 'constraint']) > 0 ||
    findWords(tokens, ['add', 'primary']) > 0 ||
    findWords(tokens, ['add', 'unique']) > 0
  )
    readConstraint(tokens, table)
  const notNull = findWords(tokens, ['set', 'not', 'null'])
  if (notNull > 0) setNotNull(table, tokenAt(tokens, notNull - 1).value.toLowerCase(), true)
}

function referencedWithCascade(tokens: Tokens): Name[] {
  const found: Name[] = []
  for (let at = findWords(tokens, ['references']); at >= 0; at = findWords(tokens, ['references'], at + 1)) {
    const named = readName(tokens, at + 1)
    if (named === undefined) continue
    const clause = tokens.slice(named.next, named.next + 12)
    if (hasWords(clause, 'on', 'delete')) found.push(named.name)
  }
  return found
}
