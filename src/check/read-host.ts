/** Python, TypeScript and JavaScript: the SQL texts in them, and the calls that run them. */

import { type Context, contextOfHost } from './context.ts'
import { guessDialect } from './dialect.ts'
import type { FileFacts, ReadOptions, SqlUse } from './facts.ts'
import type { HostCall, HostFacts, HostFunction, HostText } from './languages/host.ts'
import type { MappedText } from './languages/mapped-text.ts'
import { ancestor } from './languages/tree.ts'
import { literally } from './literally.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import { SQL_START, usesOf, withExplicitTransactions } from './sql-uses.ts'
import { commitOf } from './transactions.ts'

/** Calls that show a text or write it to a file. */
const LOGGERS =
  /^(?:writeFile|writeFileSync|write_text|write|print|log|info|debug|warning|warn|error|exception|critical|echo|append|ValueError|Exception|Error|RuntimeError|fail|test|it|describe|startswith|includes|endswith|replace|match|search|sub|compile|getLogger|assert\w*|expect|add_argument|help)$/

export async function readHost(
  path: string,
  text: string,
  language: 'python' | 'typescript',
  options: ReadOptions,
): Promise<FileFacts> {
  // Loaded with the grammar only when a file needs it: a run over SQL alone starts in a fraction of the time.
  const facts: HostFacts =
    language === 'python'
      ? await (await import('./languages/python.ts')).readPython(text)
      : await (await import('./languages/typescript.ts')).readTypeScript(path, text)
  const contexts = new Map<HostFunction | undefined, Context>()
  const contextOf = (fn: HostFunction | undefined): Context => {
    const known = contexts.get(fn)
    if (known !== undefined) return known
    const found = contextOfHost(path, facts, fn, options.kind)
    contexts.set(fn, found)
    return found
  }
  const uses: SqlUse[] = []
  let broken = 0
  for (const one of facts.texts) {
    const { mapped } = one
    if (mapped.text.length < 5 || !SQL_START.test(mapped.text)) continue
    if (one.call !== undefined && LOGGERS.test(one.call.name)) continue
    const whole = withAppended(one, facts)
    const run = one.call ?? runOf(one, facts)
    const fn = run?.fn ?? one.fn
    const commit = run === undefined ? { transaction: undefined, commitsAlone: false } : commitOf(run, facts)
    const statements = splitStatements(lexSql(whole.text))
    broken += statements.filter(
      (statement) =>
        statement.kind === 'other' &&
        /^(?:insert|merge|update|delete)$/.test(statement.tokens[0]?.value ?? ''),
    ).length
    // One call sends its statements together; PostgreSQL and MySQL drivers wrap a list in one transaction as well.
    const together =
      statements.length > 1 && commit.commitsAlone && !/bigquery|snowflake/i.test(facts.imports)
    const script = scriptOf(one, facts)
    uses.push(
      ...usesOf(statements, whole, {
        origin: 'text',
        context: contextOf(fn),
        text: one,
        fn,
        call: run,
        transaction:
          script ??
          (together || (one.inList && commit.commitsAlone)
            ? `call ${run?.start ?? one.start}`
            : commit.transaction),
        commitsAlone: commit.commitsAlone && !together && !one.inList && script === undefined,
        loop: run?.loop ?? false,
        order: run === undefined ? one.start : run.start + Math.max(one.start - run.start, 0),
      }),
    )
  }
  uses.sort((left, right) => left.order - right.order)
  return {
    path,
    text,
    language,
    dialect: options.dialect ?? guessDialect(path, text),
    context: contextOf(undefined),
    sql: withExplicitTransactions(
      uses,
      (left, right) => left.fn === right.fn && left.call?.receiver === right.call?.receiver,
    ),
    host: facts,
    shell: undefined,
    model: undefined,
    tags: [],
    comments: [],
    notUnderstood: facts.errors + broken,
    contextOf,
  }
}

/** Statements that are put together in one variable, `sql += "delete ..."`, are sent as one text. */
function scriptOf(one: HostText, facts: HostFacts): string | undefined {
  const ofVariable = facts.assignments.filter((given) => given.name === one.variable && given.fn === one.fn)
  if (one.variable === undefined || !ofVariable.some((given) => given.appends)) return undefined
  const begun = ofVariable.filter((given) => !given.appends && given.start <= one.start).at(-1)
  const next = ofVariable.find((given) => !given.appends && given.start > one.start)
  const grows = ofVariable.some(
    (given) =>
      given.appends &&
      given.start > (begun?.start ?? -1) &&
      given.start < (next?.start ?? Number.POSITIVE_INFINITY),
  )
  return begun !== undefined && grows && !/bigquery|snowflake/i.test(facts.imports)
    ? `text ${begun.start}`
    : undefined
}

/** `sql += " where ..."` behind it belongs to the text. */
function withAppended(one: HostText, facts: HostFacts): MappedText {
  if (one.variable === undefined) return one.mapped
  const more = facts.assignments.filter(
    (later) => later.name === one.variable && later.fn === one.fn && later.start > one.start && later.appends,
  )
  if (more.length === 0) return one.mapped
  // What is a statement of its own is read by itself, where it stands.
  const added = more
    .map((later) => facts.textOf(later.value) ?? '')
    .filter((text) => !SQL_START.test(text))
    .join(' ')
  const { length } = one.mapped.text
  return {
    text: `${one.mapped.text} ${added}`,
    at: (offset) => one.mapped.at(Math.min(offset, Math.max(0, length - 1))),
  }
}

interface CallIndex {
  readonly byName: ReadonlyMap<string, readonly HostCall[]>
  /** By each word of its short arguments. */
  readonly byWord: ReadonlyMap<string, readonly HostCall[]>
}

const indexes = new WeakMap<HostFacts, CallIndex>()

function indexCalls(facts: HostFacts): CallIndex {
  const known = indexes.get(facts)
  if (known !== undefined) return known
  const byName = new Map<string, HostCall[]>()
  const byWord = new Map<string, HostCall[]>()
  const put = (map: Map<string, HostCall[]>, key: string, call: HostCall): void => {
    const list = map.get(key)
    if (list === undefined) map.set(key, [call])
    else list.push(call)
  }
  for (const call of facts.calls) {
    put(byName, call.name, call)
    const words = new Set<string>()
    for (const argument of [...call.args, ...call.named.values()]) {
      if (argument.end - argument.start >= 400) continue
      for (const [word] of facts.source(argument).matchAll(/[\p{L}_$][\p{L}\p{N}_$]*/gu)) words.add(word)
    }
    for (const word of words) put(byWord, word, call)
  }
  const index: CallIndex = { byName, byWord }
  indexes.set(facts, index)
  return index
}

function callsOf(facts: HostFacts, name: string): readonly HostCall[] {
  return indexCalls(facts).byName.get(name) ?? []
}

function callsNaming(facts: HostFacts, word: string): readonly HostCall[] {
  return indexCalls(facts).byWord.get(word) ?? []
}

/** The call that a text is handed to by its variable: `sql = "insert ..."`, later `cur.execute(sql, rows)`. */
function runOf(one: HostText, facts: HostFacts): HostCall | undefined {
  if (one.variable === undefined) return returnedTo(one, facts)
  const name = literally(one.variable)
  const takes = new RegExp(
    `^(?:await\\s+)?(?:[\\w.]+\\()*(?:self\\.|\\w+\\.)?${name.replace(/^self\\\./, '')}(?:$|[\\s.,)\\[%])`,
  )
  const last = one.variable.split('.').at(-1) ?? ''
  return callsNaming(facts, last).find((call) => {
    if (call.start <= one.start && one.fn !== undefined) return false
    if (one.fn !== undefined && !within(call.fn, one.fn)) return false
    if (LOGGERS.test(call.name) || call.name === 'format') return false
    return [...call.args, ...call.named.values()].some((argument) => {
      const source = facts.source(argument)
      return source.length < 400 && takes.test(source)
    })
  })
}

/** `execute(insert_sql(points))` where `insert_sql` returns the text. */
function returnedTo(one: HostText, facts: HostFacts): HostCall | undefined {
  const { fn } = one
  if (
    fn === undefined ||
    fn.name === '' ||
    ancestor(one.node, 'return_statement', ...FUNCTION_TYPES)?.type !== 'return_statement'
  )
    return undefined
  const inner = callsOf(facts, fn.name).find((call) => call.fn !== fn)
  if (inner === undefined) return undefined
  const outer = inner.node.parent?.parent
  return (outer === undefined ? undefined : facts.callOf(outer)) ?? inner
}

const FUNCTION_TYPES = [
  'function_definition',
  'lambda',
  'arrow_function',
  'function_declaration',
  'method_definition',
  'function_expression',
]

function within(fn: HostFunction | undefined, outer: HostFunction): boolean {
  for (let at = fn; at !== undefined; at = at.parent) if (at === outer) return true
  return false
}
