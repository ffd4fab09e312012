import { meansTable } from '../cleared-by-helper.ts'
import type { FileFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { ancestor } from '../languages/tree.ts'
import { callsIn, nameOf } from '../sequence.ts'
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
  for (const cleared of file.sql) {
    if (
      (cleared.statement.kind !== 'delete' && cleared.statement.kind !== 'truncate') ||
      told.has(cleared.start)
    )
      continue
    if (['request', 'migration', 'test', 'seed'].includes(cleared.context) || cleared.fn === undefined)
      continue
    const append = appendsOf(file, host).find(
      (one) =>
        one.call.fn === cleared.fn && one.call.start > cleared.start && meansTarget(one.target, cleared),
    )
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
    const next = callsIn(host, cleared.fn).find(
      (one) =>
        one.start > call.end &&
        one.receiver === call.receiver &&
        one.name === call.name &&
        !holdsText(host, one) &&
        !file.sql.some((use) => use.call === one),
    )
    const inserts = file.sql.some(
      (one) => one.fn === cleared.fn && one.order > cleared.order && one.statement.kind === 'insert',
    )
    if (next === undefined || inserts || !/run|execute|query/.test(call.name)) continue
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
    const other = file.sql.some((use) => use.fn === fn && use !== emptied && use.statement.kind === 'insert')
    if (filled === undefined || other || isLoadedBeside(emptied, host)) continue
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

/** Bulk appends, inserts built by SQLAlchemy, and helpers that are handed the table that was emptied. */
function appendsOf(
  file: FileFacts,
  host: HostFacts,
): readonly Pick<AppendCall, 'call' | 'target' | 'start' | 'end'>[] {
  const others = host.calls.flatMap((call) => {
    const emptied = file.sql.filter(
      (one) =>
        one.fn === call.fn &&
        one.start < call.start &&
        (one.statement.kind === 'delete' || one.statement.kind === 'truncate'),
    )
    const { node, start, end } = call
    if (emptied.length === 0) return []
    if (runsInsertObject(call, host)) return [{ call, target: undefined, start, end }]
    const named = emptied.find(
      ({ statement: { target } }) =>
        LOADS.test(call.name) &&
        target !== undefined &&
        [...call.args, ...call.named.values()].some((one) => meansTable(host.source(one), target)),
    )
    return named === undefined || file.sql.some((one) => one.call?.node === node)
      ? []
      : [{ call, target: undefined, start, end }]
  })
  return [...appendCalls(host), ...others].sort((left, right) => left.start - right.start)
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
  if (target === undefined || name === undefined) return true
  const last = (name.parts.at(-1) ?? '').replace(/[{}]/g, '')
  const other =
    target
      .toLowerCase()
      .replace(/[{}⟦⟧'"\s]/g, '')
      .split('.')
      .at(-1) ?? ''
  return last === other || target.includes('⟦') || name.text.includes('{')
}
