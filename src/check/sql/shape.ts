/**
 * Splits a lexed text into statements and recognises their shape: kind, target, columns, conflict clause, source.
 * Deliberately shallow: the rules need the same few facts in every dialect, and a statement that is not understood
 * is kept as `other`, never an error.
 */
import type { LexedSql, Token } from './lexer.ts'
import type { Assignment, Conflict, Merge, MergeBranch, Name, Statement, StatementKind } from './statement.ts'
import {
  afterBracket,
  areWords,
  columnOf,
  findWords,
  insideBracket,
  isSymbol,
  isWord,
  splitByComma,
  type Tokens,
  tokenAt,
} from './tokens.ts'

const HEADS = new Set(['insert', 'delete', 'update', 'merge', 'truncate', 'drop', 'alter', 'create'])
/** Words behind which a head is the part of a clause: `on delete cascade`, `then update`, `for update`. */
const CLAUSE_BEFORE_HEAD = new Set([
  ...['then', 'do', 'on', 'for', 'or', 'before', 'after', 'of', 'explain', 'as', 'instead', 'analyze'],
  ...[
    'grant',
    'revoke',
    'and',
    'not',
    'no',
    'key',
    'is',
    'in',
    'default',
    'using',
    'option',
    'with',
    'pre',
    'post',
  ],
])
const WITHOUT_SPLIT = new Set(['grant', 'revoke', 'comment'])

export function splitStatements({ tokens }: LexedSql): Statement[] {
  const statements: Statement[] = []
  let current: Token[] = []
  const finish = (): void => {
    if (current.length > 0) statements.push(...recognise(current))
    current = []
  }
  for (const token of tokens) {
    if (token.kind === 'symbol' && token.value === ';') {
      finish()
      continue
    }
    if (token.kind === 'meta') {
      finish()
      current = [token]
      finish()
      continue
    }
    if (startsAnother(current, token)) finish()
    current.push(token)
  }
  finish()
  return statements
}

/** Transact-SQL and many scripts leave the semicolon out; a head at the start of a line is then all there is. */
function startsAnother(current: readonly Token[], token: Token): boolean {
  const first = current[0]
  const before = current.at(-1)
  if (first === undefined || before === undefined || !token.startsLine || token.kind !== 'word') return false
  if (token.value === 'go' && current.length > 0) return true
  if (!HEADS.has(token.value) || token.depth > first.depth) return false
  if (WITHOUT_SPLIT.has(first.value)) return false
  if (before.kind === 'symbol' && before.value !== ')' && before.value !== ']') return false
  if (before.kind === 'word' && CLAUSE_BEFORE_HEAD.has(before.value)) return false
  // `if not exists (...) begin insert` belongs together up to its first statement.
  if (
    isWord(current, 0, 'if') &&
    !current.some((part) => part.depth === first.depth && HEADS.has(part.value))
  )
    return false
  // `with x as (...)` and `explain` lead up to their statement.
  if (isWord(current, 0, 'with'))
    return current.some((part) => part.depth === first.depth && HEADS.has(part.value))
  if (isWord(current, 0, 'create') && current.some((part) => part.value === 'trigger')) return false
  // The words of an `alter table` with several actions: `alter table t\n add a,\n drop b`.
  if (isWord(current, 0, 'alter')) {
    return !(token.value === 'drop' || token.value === 'alter') || isWord([token], 0, 'create')
  }
  return true
}

function recognise(tokens: readonly Token[]): Statement[] {
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
  if (isWord(rest, 0, 'if', 'while', 'declare')) {
    const body = rest.findIndex(
      (_, index) =>
        index > 0 && isWord(rest, index, 'begin', 'then', 'as') && HEADS.has(tokenAt(rest, index + 1).value),
    )
    // `if not exists (select ...) begin insert ...`: the statement runs once by itself.
    const asked =
      body > 0 && rest.slice(0, body).some((token) => token.kind === 'word' && token.value === 'exists')
    if (body > 0 && !asked) return [shape(rest.slice(body + 1))]
    if (asked) return [{ ...shape(rest), kind: 'other' }]
  }
  return [shape(rest)]
}

interface Draft {
  kind: StatementKind
  target?: Name | undefined
  moreTargets?: readonly Name[]
  columns?: readonly string[] | undefined
  rows?: Statement['rows']
  query?: Tokens
  conflict?: Conflict | undefined
  overwrite?: boolean
  partition?: boolean
  temporary?: boolean
  guarded?: boolean
  orReplace?: boolean
  set?: readonly Assignment[]
  where?: Tokens | undefined
  merge?: Merge | undefined
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

function listOfNames(tokens: Tokens, from: number): Pick<Draft, 'target' | 'moreTargets'> {
  const names: Name[] = []
  for (let at = from; ; ) {
    const named = readName(tokens, at)
    if (named === undefined) break
    names.push(named.name)
    at = isSymbol(tokens, named.next, '*') ? named.next + 1 : named.next
    if (!isSymbol(tokens, at, ',')) break
    at += 1
  }
  return { target: names[0], moreTargets: names.slice(1) }
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

interface ReadName {
  readonly name: Name
  readonly next: number
}

/** A dotted name; parts may be holes, or glued out of holes and words: `{schema}.stage_{table}`. */
export function readName(tokens: Tokens, from: number): ReadName | undefined {
  const parts: string[] = []
  let part = ''
  let onlyHole = true
  let index = from
  let end = -1
  // `identifier($name)` of Snowflake and `table(...)` wrap the name.
  const first = tokenAt(tokens, from)
  if (isWord(tokens, from, 'identifier') && isSymbol(tokens, from + 1, '(')) {
    const inner = readName(tokens, from + 2)
    return inner === undefined ? undefined : { name: inner.name, next: inner.next + 1 }
  }
  for (; index < tokens.length; index += 1) {
    const token = tokenAt(tokens, index)
    const glued = token.start === end
    if (token.kind === 'symbol' && token.value === '.') {
      // The depth of `...` in a text that is no SQL stops the name.
      parts.push(part)
      part = ''
      onlyHole = true
      end = token.end
      continue
    }
    const opensBracket = isSymbol(tokens, index, '[') && tokenAt(tokens, index + 2).value === ']'
    if (end >= 0 && !glued && part !== '') break
    if (opensBracket) {
      part += tokenAt(tokens, index + 1).value.toLowerCase()
      onlyHole = false
      index += 2
      end = tokenAt(tokens, index).end
      continue
    }
    if (token.kind === 'word' || token.kind === 'number' || (token.kind === 'string' && index === from)) {
      part += token.value
      onlyHole = false
    } else if (token.kind === 'quoted') {
      const pieces = token.value.toLowerCase().split('.')
      const last = pieces.pop() ?? ''
      parts.push(...pieces)
      part += last
      onlyHole = onlyHole && /^(?:\{[^{}]*\}|⟦[^⟧]*⟧|\$\{[^{}]*\})$/.test(last)
    } else if (token.kind === 'hole') {
      part += `{${token.value.replace(/\s+/g, '')}}`
    } else if (glued && part !== '' && (token.value === '-' || token.value === '$' || token.value === '@')) {
      part += token.value
    } else if (token.value === '#' && part === '') {
      part += '#'
      if (isSymbol(tokens, index + 1, '#')) index += 1
      end = tokenAt(tokens, index).end
      continue
    } else break
    end = token.end
  }
  if (part === '' && parts.length === 0) return undefined
  if (part !== '') parts.push(part)
  const last = parts.at(-1) ?? ''
  return {
    name: {
      text: parts.join('.'),
      parts,
      start: first.start,
      end: end < 0 ? first.end : end,
      unknown: onlyHole && last.startsWith('{') && !/^\{\{?(?:this|ref\(|source\()/.test(last),
    },
    next: index,
  }
}

function readColumns(tokens: Tokens, open: number): string[] | undefined {
  const inside = insideBracket(tokens, open)
  if (inside.length === 0) return undefined
  if (isWord(inside, 0, 'select', 'with')) return undefined
  return splitByComma(inside).map((part) => columnOf(part) ?? part.map((token) => token.value).join(''))
}

function insert(tokens: Tokens): Draft {
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
    else break
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

function readConflict(tokens: Tokens, from: number): Conflict | undefined {
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

/** `a = x, (b, c) = (y, z), t.d = w`. */
function readAssignments(tokens: Tokens): Assignment[] {
  const found: Assignment[] = []
  for (const part of splitByComma(tokens)) {
    const equals = part.findIndex(
      (token) =>
        token.kind === 'symbol' && (token.value === '=' || token.value === ':=' || token.value === '+='),
    )
    if (equals <= 0) continue
    const left = part.slice(0, equals)
    const start = tokenAt(part, 0).start
    if (isSymbol(left, 0, '(')) {
      const columns = splitByComma(insideBracket(left, 0)).map((one) => columnOf(one) ?? '')
      const values = isSymbol(part, equals + 1, '(') ? splitByComma(insideBracket(part, equals + 1)) : []
      columns.forEach((column, index) => {
        found.push({ column, value: values[index] ?? part.slice(equals + 1), start })
      })
      continue
    }
    const column = columnOf(left)
    if (column === undefined) continue
    // `n += 1` of Transact-SQL reads as `n = n + 1`.
    const value =
      tokenAt(part, equals).value === '+=' ? [...left, ...part.slice(equals)] : part.slice(equals + 1)
    found.push({ column, value, start })
  }
  return found
}

function merge(tokens: Tokens): Draft {
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

function update(tokens: Tokens): Draft {
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

function remove(tokens: Tokens): Draft {
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

function create(tokens: Tokens): Draft {
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

function alterTable(tokens: Tokens): Draft {
  let at = 2
  while (isWord(tokens, at, 'only', 'if', 'exists')) at += 1
  return { kind: 'alter-table', target: readName(tokens, at)?.name }
}

function copy(tokens: Tokens): Draft {
  const at = isWord(tokens, 1, 'into') ? 2 : 1
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
  if (from < 0 || (to >= 0 && to < from)) return { kind: to >= 0 || from < 0 ? 'export' : 'other' }
  return { kind: 'copy', target: named.name, columns, rows: 'select' }
}

function load(tokens: Tokens): Draft {
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

/** A name that stands outside of SQL, as that of a model or of a migration. */
export function nameFromText(text: string): Name {
  return { text, parts: text.toLowerCase().split('.'), start: 0, end: 0, unknown: false }
}

/** Whether two names can mean the same table: equal, or one is the other without its schema. */
export function sameTable(left: Name | undefined, right: Name | undefined): boolean {
  if (left === undefined || right === undefined) return false
  const shorter = Math.min(left.parts.length, right.parts.length)
  if (shorter === 0) return false
  for (let index = 1; index <= shorter; index += 1) {
    if (left.parts.at(-index) !== right.parts.at(-index)) return false
  }
  return true
}
