/** Tables, their keys and columns, out of all the DDL of a repository (or a schema dump). */
import type { Token } from './sql/lexer.ts'
import type { Name, Statement } from './sql/statement.ts'
import { readName } from './sql/name.ts'
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
} from './sql/tokens.ts'

interface Column {
  readonly name: string
  readonly notNull: boolean
  /** Filled by the database with a value of its own: serial, identity, auto increment, a random id. */
  readonly generated: boolean
  readonly defaulted: boolean
}

interface Key {
  readonly columns: readonly string[]
  readonly primary: boolean
  readonly nullsNotDistinct: boolean
  /** Every column of it is generated, so no load ever meets it again. */
  readonly generated: boolean
  readonly partial: boolean
}

interface Table {
  readonly name: Name
  readonly path: string
  readonly start: number
  readonly columns: readonly Column[]
  readonly keys: readonly Key[]
  readonly temporary: boolean
  /** `create table ... as select`: columns and keys are not written down. */
  readonly fromQuery: boolean
  /** Merges rows of one key by itself (ReplacingMergeTree) or upserts on insert (Cassandra). */
  readonly upsertStore: boolean
  readonly touchTrigger: boolean
}

export interface Catalogue {
  /** The definition nearest to the file that asks; undefined where the repository holds none. */
  find(name: Name | undefined, path: string): Table | undefined
  /** Whether other tables reference this one with `on delete cascade`. */
  hasChildren(table: Table): boolean
  readonly tables: readonly Table[]
}

interface Draft {
  name: Name
  path: string
  start: number
  columns: Column[]
  keys: Key[]
  temporary: boolean
  fromQuery: boolean
  upsertStore: boolean
  touchTrigger: boolean
}

export interface CatalogueBuilder {
  add(statement: Statement, path: string, at: (offset: number) => number): void
  build(): Catalogue
}

export function catalogueBuilder(): CatalogueBuilder {
  const drafts: Draft[] = []
  const byLastPart = new Map<string, Draft[]>()
  const later: { statement: Statement; path: string }[] = []
  const parents: { parent: Name; path: string }[] = []

  // Every statement asks, most of them for the same few tables.
  const answers = new Map<string, Draft | undefined>()
  const find = (name: Name | undefined, path: string): Draft | undefined => {
    if (name === undefined || name.unknown) return undefined
    const question = `${name.text}\n${path}`
    if (answers.has(question)) return answers.get(question)
    const answer = search(name, path)
    answers.set(question, answer)
    return answer
  }

  const search = (name: Name, path: string): Draft | undefined => {
    let best: Draft | undefined
    let bestScore = -1
    for (const draft of byLastPart.get(name.parts.at(-1) ?? '') ?? []) {
      const schema = name.parts.at(-2)
      const other = draft.name.parts.at(-2)
      if (
        schema !== undefined &&
        other !== undefined &&
        schema !== other &&
        !schema.startsWith('{') &&
        !other.startsWith('{')
      )
        continue
      const score =
        commonFolders(draft.path, path) * 4 + (draft.fromQuery ? 0 : 2) + (draft.path === path ? 1 : 0)
      if (score > bestScore) {
        best = draft
        bestScore = score
      }
    }
    return best
  }

  return {
    add(statement, path, at) {
      if (statement.kind === 'create-table' && statement.target !== undefined) {
        const draft = readTable(statement, statement.target, path, at(statement.start))
        for (const parent of referencedWithCascade(statement.tokens)) parents.push({ parent, path })
        drafts.push(draft)
        const last = statement.target.parts.at(-1) ?? ''
        byLastPart.set(last, [...(byLastPart.get(last) ?? []), draft])
      } else if (['alter-table', 'create-index', 'create-trigger'].includes(statement.kind))
        later.push({ statement, path })
    },
    build() {
      for (const { statement, path } of later) alter(find(statement.target, path), statement)
      const cascading = new Set(parents.map(({ parent, path }) => find(parent, path)))
      return {
        find,
        tables: drafts,
        hasChildren: (table) => cascading.has(drafts.find((draft) => draft === table)),
      }
    },
  }
}

function commonFolders(left: string, right: string): number {
  const a = left.split('/')
  const b = right.split('/')
  let common = 0
  while (common < a.length - 1 && common < b.length - 1 && a[common] === b[common]) common += 1
  return common
}

const GENERATED_TYPE = /^(?:small|big)?serial[248]?$/

function readTable(statement: Statement, name: Name, path: string, start: number): Draft {
  const draft: Draft = {
    name,
    path,
    start,
    columns: [],
    keys: [],
    temporary: statement.temporary,
    fromQuery: statement.rows === 'select',
    upsertStore: /replacing\s*mergetree|collapsingmergetree|aggregatingmergetree|summingmergetree/i.test(
      statement.tokens.map((token) => token.value).join(' '),
    ),
    touchTrigger: false,
  }
  const open = statement.tokens.findIndex(
    (token) => token.kind === 'symbol' && token.value === '(' && token.start >= name.end,
  )
  if (open < 0 || draft.fromQuery) return draft
  const inside = insideBracket(statement.tokens, open)
  const tail = statement.tokens.slice(afterBracket(statement.tokens, open))
  if (hasWords(tail, 'unique', 'key') || hasWords(tail, 'primary', 'key')) readConstraint(tail, draft)
  for (const part of splitByComma(inside)) {
    if (
      isWord(
        part,
        0,
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
      )
    ) {
      readConstraint(part, draft)
      continue
    }
    const first = tokenAt(part, 0)
    if (first.kind !== 'word' && first.kind !== 'quoted') continue
    const notNull = hasWords(part, 'not', 'null') || hasWords(part, 'primary', 'key')
    const generated =
      part.some(
        (token) =>
          token.kind === 'word' &&
          (GENERATED_TYPE.test(token.value) ||
            [
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
            ].includes(token.value)),
      ) ||
      (hasWords(part, 'integer', 'primary', 'key') &&
        part.length <= 5 &&
        draft.columns.length === 0 &&
        path.includes('sqlite'))
    const column = first.value.toLowerCase()
    draft.columns.push({
      name: column,
      notNull: notNull || generated,
      generated,
      defaulted: hasWords(part, 'default'),
    })
    if (hasWords(part, 'primary', 'key') || hasWords(part, 'unique')) {
      draft.keys.push({
        columns: [column],
        primary: hasWords(part, 'primary', 'key'),
        nullsNotDistinct: hasWords(part, 'nulls', 'not', 'distinct'),
        generated,
        partial: false,
      })
    }
  }
  markPrimary(draft)
  return draft
}

/** Columns of a primary key are not null, wherever it is declared. */
function markPrimary(draft: Draft): void {
  for (const key of draft.keys) {
    if (!key.primary) continue
    draft.columns = draft.columns.map((column) =>
      key.columns.includes(column.name) ? { ...column, notNull: true } : column,
    )
  }
}

function readConstraint(part: Tokens, draft: Draft): void {
  const primary = hasWords(part, 'primary', 'key')
  const unique = findWords(part, ['unique'])
  if (!primary && unique < 0) return
  const at = primary ? findWords(part, ['primary']) : unique
  const open = part.findIndex((token, index) => index > at && token.kind === 'symbol' && token.value === '(')
  if (open < 0) return
  const columns = splitByComma(insideBracket(part, open)).map((one) => tokenAt(one, 0).value.toLowerCase())
  const generated =
    columns.length > 0 &&
    columns.every((name) => draft.columns.some((column) => column.name === name && column.generated))
  draft.keys.push({
    columns,
    primary,
    nullsNotDistinct: hasWords(part, 'nulls', 'not', 'distinct'),
    generated,
    partial: false,
  })
  markPrimary(draft)
}

function alter(draft: Draft | undefined, statement: Statement): void {
  if (draft === undefined) return
  const { tokens } = statement
  if (statement.kind === 'create-trigger') {
    if (
      hasWords(tokens, 'update') &&
      /updated?_?at|timestamp|touch|modif|moddatetime/i.test(tokens.map((token) => token.value).join(' '))
    ) {
      draft.touchTrigger = true
    }
    return
  }
  if (statement.kind === 'create-index') {
    if (!isWord(tokens, 1, 'unique')) return
    const on = findWords(tokens, ['on'])
    const open = tokens.findIndex((token, index) => index > on && token.value === '(')
    if (open < 0) return
    const parts = splitByComma(insideBracket(tokens, open))
    const columns = parts.map((one) =>
      isSymbol(one, 1, '(') ? one.map((token) => token.value).join('') : tokenAt(one, 0).value.toLowerCase(),
    )
    draft.keys.push({
      columns,
      primary: false,
      nullsNotDistinct: hasWords(tokens, 'nulls', 'not', 'distinct'),
      generated: false,
      partial: findWords(tokens, ['where']) > 0,
    })
    return
  }
  readConstraint(tokens, draft)
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
      draft.columns.push({
        name: column.value.toLowerCase(),
        notNull: hasWords(rest, 'not', 'null'),
        generated: hasWords(rest, 'serial') || hasWords(rest, 'bigserial'),
        defaulted: hasWords(rest, 'default'),
      })
    }
  }
  const notNull = findWords(tokens, ['set', 'not', 'null'])
  if (notNull > 0) {
    const changed = tokenAt(tokens, notNull - 1).value.toLowerCase()
    draft.columns = draft.columns.map((column) =>
      column.name === changed ? { ...column, notNull: true } : column,
    )
  }
}

function referencedWithCascade(tokens: readonly Token[]): Name[] {
  const found: Name[] = []
  for (let at = findWords(tokens, ['references']); at >= 0; at = findWords(tokens, ['references'], at + 1)) {
    const named = readName(tokens, at + 1)
    if (named === undefined) continue
    const clause = tokens.slice(named.next, named.next + 12)
    if (hasWords(clause, 'on', 'delete')) found.push(named.name)
  }
  return found
}
