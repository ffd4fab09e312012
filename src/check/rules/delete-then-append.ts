import { spellings, spellingsOf } from '../cleared-by-helper.ts'
import type { FileFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts, HostFunction } from '../languages/host.ts'
import { ancestor } from '../languages/tree.ts'
import { nameOf } from '../sequence.ts'
import type { Name } from '../sql/statement.ts'
import { hasWords } from '../sql/tokens.ts'
import { commitOf } from '../transactions.ts'
import { usesOfTable } from '../uses-index.ts'
import { type AppendCall, appendCalls } from './append-calls.ts'

// Deletes in SQL whose rows come back by a call of the host language, which no statement of the file shows.

/** Helpers that are named for what they do. */
const LOADS = /^_?(?:bulk_?)?(?:insert|load|copy|upload|write|append|populate|fill)(?:_|[A-Z]|$)/

/** A `DELETE` and then a bulk append of the host language, or a statement that is only known by its variable. */
export function* beforeHostAppends(
  file: FileFacts,
  host: HostFacts,
  told: ReadonlySet<number>,
): Iterable<Report> {
  const deletes = file.sql.filter(
    ({ statement: { kind }, fn }) => (kind === 'delete' || kind === 'truncate') && fn !== undefined,
  )
  if (deletes.length === 0) return
  const appends = appendsOf(file, host, deletes)
  const unread = lastUnread(file, host)
  const inserts = lastInserts(file)
  for (const cleared of deletes) {
    if (told.has(cleared.start)) continue
    if (['request', 'migration', 'test', 'seed'].includes(cleared.context)) continue
    const append = appendBehind(cleared, appends.get(cleared.fn))
    if (append !== undefined) {
      const commit = commitOf(append.call, host)
      if (commit.transaction !== undefined && commit.transaction === cleared.transaction) continue
      const far =
        append.call.start - cleared.start > 2000 ||
        host.text.slice(cleared.start, append.start).split('\n').length > 9
      yield {
        start: far ? append.start : cleared.start,
        end: far ? append.end : cleared.end,
        message: `Rows of ${nameOf(cleared.statement.target)} are deleted by one statement and appended by another job: a crash in between leaves them missing`,
        class: 'window',
        severity: 'warning',
        confidence: cleared.commitsAlone ? 'high' : endsBefore(cleared, append.call) ? 'medium' : 'low',
      }
      continue
    }
    if (!cleared.commitsAlone || cleared.call === undefined) continue
    const { call } = cleared
    const next = unread.get(cleared.fn)?.get(`${call.receiver} ${call.name}`) ?? -1
    const insert = inserts.get(cleared.fn) ?? -1
    if (next <= call.end || insert > cleared.order || !/run|execute|query/.test(call.name)) continue
    yield {
      start: cleared.start,
      end: cleared.end,
      message: `Rows of ${nameOf(cleared.statement.target)} are deleted and committed before the statement that loads them anew runs: a crash in between leaves them missing`,
      class: 'window',
      severity: 'warning',
      confidence: 'medium',
    }
  }
}

/** One task empties the whole table, another one of the same file fills it: two commits, whatever the order. */
export function* betweenTasks(file: FileFacts, host: HostFacts): Iterable<Report> {
  if (!/\b(?:airflow|prefect|dagster|luigi)\b/.test(host.imports)) return
  for (const emptied of file.sql) {
    const { statement, fn } = emptied
    const whole =
      statement.kind === 'truncate' || (statement.kind === 'delete' && !hasWords(statement.tokens, 'where'))
    if (!whole || fn === undefined || statement.target === undefined || /[{⟦]/.test(statement.target.text))
      continue
    const filled =
      usesOfTable(file, statement.target).find(
        (use) =>
          use.fn !== undefined && use.fn !== fn && ['insert', 'copy', 'load'].includes(use.statement.kind),
      ) ??
      appendCalls(host).find(
        ({ call, target }) =>
          target !== undefined && call.fn !== undefined && call.fn !== fn && meansTarget(target, emptied),
      )
    if (filled === undefined) continue
    const other = file.sql.some((use) => use.fn === fn && use !== emptied && use.statement.kind === 'insert')
    if (other || isLoadedBeside(emptied, host)) continue
    yield {
      start: filled.start,
      end: filled.end,
      message: `Another task empties ${nameOf(statement.target)} and commits: a crash in between leaves it empty`,
      class: 'window',
      severity: 'warning',
      confidence: 'medium',
    }
  }
}

function isLoadedBeside(emptied: SqlUse, host: HostFacts): boolean {
  return appendCalls(host).some(({ call }) => call.fn === emptied.fn)
}

type Append = Pick<AppendCall, 'call' | 'target' | 'start' | 'end'>

/** Appends of one function in the order they stand, by the last name of their table; undefined: of any. */
type Appends = ReadonlyMap<string | undefined, readonly Append[]>

/** Bulk appends, inserts built by SQLAlchemy, and helpers that are handed the table that was emptied. */
function appendsOf(
  file: FileFacts,
  host: HostFacts,
  deletes: readonly SqlUse[],
): ReadonlyMap<HostFunction | undefined, Appends> {
  const firsts = firstDeletes(deletes)
  const run = new Set(file.sql.map(({ call }) => call?.node))
  const others = host.calls.flatMap((call): Append[] => {
    const first = firsts.get(call.fn)
    const { start, end } = call
    const emptied = (spelling: string): boolean => (first?.get(spelling) ?? start) < start
    if (!emptied(ANY)) return []
    const named = (): boolean =>
      LOADS.test(call.name) &&
      !run.has(call.node) &&
      [...call.args, ...call.named.values()].some((one) => spellingsOf(host.source(one)).some(emptied))
    return runsInsertObject(call, host) || named() ? [{ call, target: undefined, start, end }] : []
  })
  const found = new Map<HostFunction | undefined, Map<string | undefined, Append[]>>()
  for (const one of [...appendCalls(host), ...others].sort((left, right) => left.start - right.start)) {
    const ofFunction = found.get(one.call.fn) ?? new Map<string | undefined, Append[]>()
    found.set(one.call.fn, ofFunction)
    for (const name of new Set([lastNameOf(one.target), ALL])) {
      const list = ofFunction.get(name)
      if (list === undefined) ofFunction.set(name, [one])
      else list.push(one)
    }
  }
  return found
}

/** No table is spelled like these. */
const ANY = '\0any'
const ALL = '\0all'

/** Of each function, where the first delete stands: of any table, and of each by the ways to write its name. */
function firstDeletes(
  deletes: readonly SqlUse[],
): ReadonlyMap<HostFunction | undefined, ReadonlyMap<string, number>> {
  const found = new Map<HostFunction | undefined, Map<string, number>>()
  for (const { fn, start, statement } of deletes) {
    const first = found.get(fn) ?? new Map<string, number>()
    found.set(fn, first)
    for (const spelling of [ANY, ...(statement.target === undefined ? [] : spellings(statement.target))])
      first.set(spelling, Math.min(first.get(spelling) ?? start, start))
  }
  return found
}

/** The first append behind the delete that may be about its table. */
function appendBehind(cleared: SqlUse, appends: Appends | undefined): Append | undefined {
  const name = cleared.statement.target
  const any = name === undefined || name.text.includes('{')
  const lists = any ? [ALL] : [undefined, lastNameOfTarget(name)]
  return lists
    .flatMap((key) => appends?.get(key)?.find(({ call }) => call.start > cleared.start) ?? [])
    .sort((left, right) => left.start - right.start)[0]
}

/** Of each function, the last call of each callee that runs a statement which is only known by its variable. */
function lastUnread(
  file: FileFacts,
  host: HostFacts,
): ReadonlyMap<HostFunction | undefined, ReadonlyMap<string, number>> {
  const run = new Set(file.sql.map(({ call }) => call))
  const found = new Map<HostFunction | undefined, Map<string, number>>()
  for (const call of host.calls) {
    if (run.has(call) || holdsText(host, call)) continue
    const last = found.get(call.fn) ?? new Map<string, number>()
    found.set(call.fn, last)
    const callee = `${call.receiver} ${call.name}`
    last.set(callee, Math.max(last.get(callee) ?? -1, call.start))
  }
  return found
}

function lastInserts(file: FileFacts): ReadonlyMap<HostFunction | undefined, number> {
  const found = new Map<HostFunction | undefined, number>()
  for (const { fn, order, statement } of file.sql)
    if (statement.kind === 'insert') found.set(fn, Math.max(found.get(fn) ?? -1, order))
  return found
}

/** `conn.execute(insert(orders), rows)`, also by a variable. */
function runsInsertObject(call: HostCall, host: HostFacts): boolean {
  const [first] = call.args
  if (host.language !== 'python' || call.name !== 'execute' || first === undefined) return false
  const source = host.source(first)
  const given =
    first.type === 'identifier'
      ? host.assignments.find((one) => one.name === source && one.fn === call.fn && one.start < call.start)
      : undefined
  return /(?:^|\.)(?:\w+_)?insert\(/.test(given === undefined ? source : host.source(given.value))
}

/** The block that is the transaction of the delete ends before the call. */
function endsBefore(cleared: SqlUse, call: HostCall): boolean {
  const block = cleared.call === undefined ? undefined : ancestor(cleared.call.node, 'with_statement')
  return cleared.transaction?.startsWith('with ') === true && block !== undefined && block.end <= call.start
}

function holdsText(host: HostFacts, call: HostCall): boolean {
  const first = call.args[0]
  return first !== undefined && host.textOf(first) !== undefined
}

function meansTarget(target: string | undefined, cleared: SqlUse): boolean {
  const name = cleared.statement.target
  if (name === undefined || name.text.includes('{')) return true
  const written = lastNameOf(target)
  return written === undefined || written === lastNameOfTarget(name)
}

function lastNameOfTarget(name: Name): string {
  return (name.parts.at(-1) ?? '').replace(/[{}]/g, '')
}

/** The last name of a table as the host writes it; undefined where it may be any. */
function lastNameOf(target: string | undefined): string | undefined {
  if (target === undefined || target.includes('⟦')) return undefined
  return (
    target
      .toLowerCase()
      .replace(/[{}'"\s]/g, '')
      .split('.')
      .at(-1) ?? ''
  )
}
