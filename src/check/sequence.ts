/** Order, transactions and guards around a statement: the facts that tell a fault from its look-alikes. */
import type { FileFacts, ProjectFacts, SqlUse } from './facts.ts'
import type { HostCall, HostFacts, HostFunction } from './languages/host.ts'
import type { MappedText } from './languages/mapped-text.ts'
import { ancestor, type SyntaxNode } from './languages/tree.ts'
import { makesRoom } from './makes-room.ts'
import { oncePer } from './per-file.ts'
import { readName, sameTable } from './sql/name.ts'
import type { Name, Statement } from './sql/statement.ts'
import { findWords, hasWords, isSymbol, isWord, type Tokens, tokenAt } from './sql/tokens.ts'
import { usesBeside, usesOfTable, usesOfTableBeside, usesOfTransaction } from './uses-index.ts'

/** Statements of the same file, and of the same function in a host file, that run before. */
function earlierIn(
  file: FileFacts,
  fn: HostFunction | undefined,
  order: number,
  origin?: SqlUse['origin'],
): SqlUse[] {
  const origins: readonly SqlUse['origin'][] =
    origin === undefined ? ['file', 'text', 'shell', 'routine'] : [origin]
  const found = origins.flatMap((one) => usesBeside(file, fn, one)).filter((one) => one.order < order)
  return origins.length > 1 ? found.sort((left, right) => left.order - right.order) : found
}

/** Earlier statements of the same function and origin about the same table, the last first. */
export function earlierOnTable(file: FileFacts, use: SqlUse, table?: Name): SqlUse[] {
  return usesOfTableBeside(file, use.fn, use.origin, table ?? use.statement.target)
    .filter((one) => one.order < use.order)
    .reverse()
}

/** The last statement before it that empties the target or a part of it, or makes the table anew. */
export function clearedBy(file: FileFacts, use: SqlUse): SqlUse | undefined {
  return namesOf(file, use.statement.target)
    .flatMap((target) =>
      // Constants of a module stand in any order; only what is run has a before and an after.
      earlierOnTable(file, use, target).filter(
        (one) =>
          clears(one.statement, target) &&
          (use.origin !== 'text' ||
            one.mapped === use.mapped ||
            (one.call !== undefined && use.call !== undefined)),
      ),
    )
    .at(0)
}

/** ClickHouse: a distributed table is filled, and emptied by the table of the shards behind it, `<name>_local`. */
function namesOf(file: FileFacts, target: Name | undefined): readonly (Name | undefined)[] {
  const last = target?.parts.at(-1)
  if (target === undefined || last === undefined || !isOfCluster(file)) return [target]
  return [target, { ...target, parts: [...target.parts.slice(0, -1), `${last}_local`] }]
}

const isOfCluster = oncePer(({ text }: FileFacts): boolean => /clickhouse|\bon\s+cluster\b/i.test(text))

/** Another function of the file empties the table or makes it anew: a task before this one, as far as a file can tell. */
function clearedElsewhere(file: FileFacts, use: SqlUse): boolean {
  const { target } = use.statement
  return (
    file.host !== undefined &&
    usesOfTable(file, target).some(
      (one) =>
        one.fn !== use.fn &&
        clears(one.statement, target) &&
        (one.statement.kind !== 'delete' || makesRoom(one.statement)),
    )
  )
}

/** Another function or file empties the table or makes it anew; in which order the two run is not seen. */
export function madeAnewElsewhere(file: FileFacts, use: SqlUse, project: ProjectFacts): boolean {
  const { target } = use.statement
  if (target === undefined) return false
  const by = project.emptied.get(target.parts.slice(-2).join('.'))
  return (
    (use.origin === 'file' && [...(by ?? [])].some((path) => path !== file.path)) ||
    clearedElsewhere(file, use)
  )
}

function clears(statement: Statement, target: Name | undefined): boolean {
  if (!sameTable(statement.target, target) && !statement.moreTargets.some((name) => sameTable(name, target)))
    return false
  switch (statement.kind) {
    case 'delete':
    case 'truncate':
      return true
    case 'drop':
      return true
    case 'create-table':
      return statement.orReplace || statement.temporary || !statement.guarded
    case 'insert':
    case 'load':
      return statement.overwrite
    case 'alter-table':
      return (
        hasWords(statement.tokens, 'drop', 'partition') ||
        hasWords(statement.tokens, 'detach') ||
        hasWords(statement.tokens, 'switch') ||
        hasWords(statement.tokens, 'delete')
      )
    default:
      return false
  }
}

/** Whether two statements commit together: yes, no, or only their caller knows. */
export function together(left: SqlUse, right: SqlUse): 'yes' | 'no' | 'unknown' {
  if (left.transaction !== undefined && left.transaction === right.transaction) return 'yes'
  if (left.transaction !== undefined || right.transaction !== undefined) return 'no'
  if (left.commitsAlone || right.commitsAlone) return 'no'
  return 'unknown'
}

/** The source of an insert leaves out what the target holds: anti-join, `not in`, or beyond its maximum. */
export function leavesOutExisting(query: Tokens, target: Name | undefined): boolean {
  if (query.length === 0) return false
  if (hasWords(query, 'except')) return true
  const reads = target === undefined || readsTable(query, target)
  if (hasWords(query, 'not', 'exists') || hasWords(query, 'not', 'in'))
    return reads || hasWords(query, 'not', 'exists')
  if (!reads) return false
  if (
    hasWords(query, 'left') &&
    (findWords(query, ['is', 'null']) >= 0 || testsEmpty(query)) &&
    !narrowedToNothing(query)
  )
    return true
  return strictlyBeyondMaximum(query)
}

/** `length(t.id) = 0`, `t.id = ''`: ClickHouse fills the missing side with defaults instead of NULL. */
function testsEmpty(query: Tokens): boolean {
  return query.some((token, index) => {
    if (token.value !== '=') return false
    const right = tokenAt(query, index + 1)
    if (right.kind === 'string' && right.value === '') return true
    return right.value === '0' && /^(?:length|empty|char_length)$/.test(callBefore(query, index))
  })
}

/** The function whose closing bracket stands before this place. */
function callBefore(tokens: Tokens, index: number): string {
  if (!isSymbol(tokens, index - 1, ')')) return ''
  const { depth } = tokenAt(tokens, index - 1)
  for (let at = index - 2; at > 0; at -= 1)
    if (isSymbol(tokens, at, '(') && tokenAt(tokens, at).depth === depth) return tokenAt(tokens, at - 1).value
  return ''
}

/** `where ts > (select max(ts) from this)` inside the anti-join: nothing of the target is ever seen by it. */
function narrowedToNothing(query: Tokens): boolean {
  for (let at = findWords(query, ['max']); at >= 0; at = findWords(query, ['max'], at + 1)) {
    for (let back = at; back > at - 4 && back > 0; back -= 1) {
      if (tokenAt(query, back).value === '>' && tokenAt(query, back).depth > (query[0]?.depth ?? 0))
        return true
    }
  }
  return false
}

/** `x > (select max(x) from target)` with `>` and not `>=`. */
function strictlyBeyondMaximum(query: Tokens): boolean {
  for (let at = findWords(query, ['max']); at >= 0; at = findWords(query, ['max'], at + 1)) {
    for (let back = at; back > at - 6 && back > 0; back -= 1) {
      if (isSymbol(query, back, '>')) return true
    }
  }
  return false
}

/** Whether the tokens read from that table in a `from` or `join`. */
export function readsTable(tokens: Tokens, target: Name): boolean {
  return sourceTables(tokens).some((name) => sameTable(name, target))
}

export function sourceTables(tokens: Tokens): Name[] {
  const found: Name[] = []
  for (let index = 0; index < tokens.length - 1; index += 1) {
    if (!isWord(tokens, index, 'from', 'join', 'using')) continue
    const at = isWord(tokens, index + 1, 'only', 'lateral') ? index + 2 : index + 1
    const named = readName(tokens, at)
    if (named !== undefined && !isSymbol(tokens, at, '(')) found.push(named.name)
  }
  return found
}

/**
 * Rows are claimed by a mark that is set in the same transaction: `insert ... ; update source set done = true` where
 * the rows are chosen by `done = false`. A rerun then finds nothing left to do.
 */
export function claimed(file: FileFacts, use: SqlUse): boolean {
  if (use.transaction === undefined) return false
  return marksOf(file, use, use.transaction).some((name) => !sameTable(name, use.statement.target))
}

const marks = new WeakMap<FileFacts, Map<string, readonly (Name | undefined)[]>>()

/** Tables in which the transaction sets a column that a statement beside it tests. */
function marksOf(file: FileFacts, use: SqlUse, transaction: string): readonly (Name | undefined)[] {
  const ofFile = marks.get(file) ?? new Map<string, readonly (Name | undefined)[]>()
  marks.set(file, ofFile)
  const question = `${transaction} ${use.origin} ${use.fn?.node.start ?? -1}`
  const known = ofFile.get(question)
  if (known !== undefined) return known
  const around = usesBeside(file, use.fn, use.origin)
  const found = usesOfTransaction(file, transaction).flatMap(({ fn, origin, statement }) =>
    fn === use.fn &&
    origin === use.origin &&
    statement.kind === 'update' &&
    statement.set.some(({ column }) => around.some((one) => testsMark(one.statement.tokens, column)))
      ? [statement.target]
      : [],
  )
  ofFile.set(question, found)
  return found
}

/** `done is null`, `done = false`, `not done`, `status = 'new'`. */
function testsMark(tokens: Tokens, column: string): boolean {
  return tokens.some((token, index) => {
    if ((token.kind !== 'word' && token.kind !== 'quoted') || token.value.toLowerCase() !== column)
      return false
    if (isWord(tokens, index + 1, 'is') && isWord(tokens, index + 2, 'null', 'false')) return true
    if (isWord(tokens, index - 1, 'not')) return true
    const inSet = isWord(tokens, index - 1, 'set')
    if (inSet || !isSymbol(tokens, index + 1, '=')) return false
    const value = tokenAt(tokens, index + 2)
    return value.value === 'false' || value.value === '0' || value.kind === 'string'
  })
}

/** The insert stands in a branch that was taken because a query or an update did not find the row. */
export function checkedBefore(file: FileFacts, use: SqlUse): boolean {
  if (use.origin === 'routine') return branchesOnTarget(file, use)
  const host = file.host
  const call = use.call
  if (host === undefined || call === undefined) return false
  // The rows that are inserted were read by a query that leaves out what the target holds.
  // The same holds for the rows that go into other tables beside it, in one transaction.
  const earlier = earlierIn(file, use.fn, use.order)
  const beside = [
    use,
    ...(use.transaction === undefined ? [] : usesOfTransaction(file, use.transaction)).filter(
      (one) =>
        one !== use && one.fn === use.fn && one.origin === use.origin && one.statement.kind === 'insert',
    ),
  ]
  const targets = new Map(
    beside.flatMap(({ statement: { target } }) => (target === undefined ? [] : [[target.text, target]])),
  )
  const chosen = earlier.some(
    ({ statement }) =>
      statement.kind === 'select' &&
      tablesRead(statement).some((name) =>
        [...targets.values()].some(
          (target) => sameTable(name, target) && leavesOutExisting(statement.tokens, target),
        ),
      ),
  )
  if (chosen) return true
  const branch = ancestorWithin(
    call.node,
    use.fn,
    'if_statement',
    'elif_clause',
    'else_clause',
    'conditional_expression',
    'ternary_expression',
  )
  if (branch === undefined) return false
  return earlier.some(
    ({ statement }) =>
      (statement.kind === 'select' &&
        tablesRead(statement).some((name) => sameTable(name, use.statement.target))) ||
      (statement.kind === 'update' && sameTable(statement.target, use.statement.target)),
  )
}

/** PL/pgSQL: `select x into y from t; if y is null then insert into t ...`. */
function branchesOnTarget(file: FileFacts, use: SqlUse): boolean {
  return (
    isInBranch(use) &&
    earlierIn(file, use.fn, use.order, 'routine').some(
      ({ statement, mapped }) =>
        mapped === use.mapped &&
        (statement.kind === 'select' || hasWords(statement.tokens, 'select')) &&
        tablesRead(statement).some((name) => sameTable(name, use.statement.target)),
    )
  )
}

function isInBranch({ mapped, statement }: SqlUse): boolean {
  const turns = branchesOf(mapped)
  // The last turn that ends before the statement.
  let low = 0
  let high = turns.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((turns[middle]?.end ?? 0) <= statement.start) low = middle + 1
    else high = middle
  }
  return (turns[low - 1]?.open ?? 0) > 0
}

/** Where branches of a routine begin (`if ... then`) and end (`end if`), with how many are open behind each. */
const branchesOf = oncePer(({ text }: MappedText): readonly { end: number; open: number }[] => {
  const turns: { end: number; open: number }[] = []
  let open = 0
  let asked = false
  for (const { 0: word, index } of text.matchAll(/\bend\s+if\b|\bif\b|\bthen\b|;/gi)) {
    const isThen = /^then$/i.test(word)
    const closes = /^end/i.test(word)
    if (closes || (isThen && asked)) {
      open += closes ? -1 : 1
      turns.push({ end: index + word.length, open })
    }
    if (isThen || word === ';') asked = false
    else if (!closes) asked = true
  }
  return turns
})

const tablesRead = oncePer(({ tokens }: Statement): readonly Name[] => sourceTables(tokens))

/** A duplicate key is caught and taken for "already there". */
export function duplicateIsCaught(host: HostFacts | undefined, node: SyntaxNode | undefined): boolean {
  if (host === undefined || node === undefined) return false
  return host.catches.some(
    (one) =>
      one.body.start <= node.start &&
      node.end <= one.body.end &&
      /IntegrityError|UniqueViolation|DuplicateKey|duplicate|23505|ER_DUP_ENTRY|P2002|AlreadyExists|Conflict/i.test(
        host.source(one.handler),
      ),
  )
}

function ancestorWithin(
  node: SyntaxNode,
  fn: HostFunction | undefined,
  ...types: readonly string[]
): SyntaxNode | undefined {
  const found = ancestor(node, ...types)
  if (found === undefined) return undefined
  return fn === undefined || found.start >= fn.node.start ? found : undefined
}

/** Calls of the same function. */
export function callsIn(host: HostFacts, fn: HostFunction | undefined): HostCall[] {
  return host.calls.filter((call) => call.fn === fn)
}

/** What stands before a place in its function; in one of tens of thousands of characters only the nearest part. */
export function textBefore(host: HostFacts, fn: HostFunction | undefined, at: number): string {
  return host.text.slice(Math.max(fn?.node.start ?? 0, at - 40_000), at)
}

const LOG_TABLE =
  /(?:^|_)(?:logs?|audit(?:s|_log|_trail)?|errors?|traces?|events?_log|changelog|activity|notifications?|messages?|heartbeats?|debug|gaps|alerts|incidents|failures)$|^(?:log|audit|debug)_/
const STAGING_TABLE =
  /(?:^|_)(?:stg|stage|staging|staged|tmp|temp|temporary|scratch|work|landing|load|delta|swap)(?:_|$|\d)|^#|^\$\{?tmp/

export function isLogTable(name: Name | undefined, project: ProjectFacts): boolean {
  const last = name?.parts.at(-1) ?? ''
  return LOG_TABLE.test(last) || project.settings.logTables.some((pattern) => pattern.test(name?.text ?? ''))
}

export function isStagingTable(name: Name | undefined, project: ProjectFacts): boolean {
  const all = name?.text ?? ''
  return (
    STAGING_TABLE.test(name?.parts.at(-1) ?? '') ||
    /(?:^|[._])(?:stg|staging|temp|tmp|processing)(?:_\w*)?\./.test(all) ||
    project.settings.stagingTables.some((pattern) => pattern.test(all))
  )
}

/** Made as a temporary table by the same file. */
export function isTemporary(file: FileFacts, use: SqlUse): boolean {
  // `#t` and the table variable `@t` of Transact-SQL end with their batch.
  if (/^(?:#|\{?@)/.test(use.statement.target?.text ?? '')) return true
  return usesOfTable(file, use.statement.target).some(
    (one) =>
      one.statement.kind === 'create-table' &&
      one.statement.temporary &&
      sameTable(one.statement.target, use.statement.target),
  )
}

export function nameOf(name: Name | undefined): string {
  if (name === undefined) return 'the table'
  const text = name.text.replace(/[\s\n]+/g, ' ')
  return text.length > 60 ? `"${text.slice(0, 57)}..."` : `"${text}"`
}
