/**
 * Stet's own log of runs: the tables of its schema, in the server or in a file that holds tables. The name of a file is
 * never meant, though `stet.duckdb` looks like it.
 */
const RUN_LOG = 'stet.*'
const RUN_LOG_TABLE = /^(?:.*:)?stet\.[^:]*$/

/** What a comparison leaves out: tables, columns as `table.column`, files. `*` stands for any characters. */
export interface Ignore {
  table(name: string): boolean
  column(table: string, column: string): boolean
  file(path: string): boolean
  /** A column that every run fills differently: only whether there is a value counts. */
  varies(table: string, column: string): boolean
  with(patterns: readonly string[]): Ignore
  withVarying(columns: readonly string[]): Ignore
  /** Nothing of what a later run may go by is left out. */
  readonly nothing: Ignore
}

export function ignoring(patterns: readonly string[], varying: readonly string[] = []): Ignore {
  const tests = patterns.filter((pattern) => pattern !== RUN_LOG).map(toTest)
  const withoutRunLog = patterns.includes(RUN_LOG)
  const matches = (...names: readonly string[]) => tests.some((test) => names.some((name) => test.test(name)))
  const differing = new Set(varying)
  let nothing: Ignore | undefined
  return {
    table: (name) => matches(name) || (withoutRunLog && RUN_LOG_TABLE.test(name)),
    column: (table, column) => matches(`${table}.${column}`),
    file: (path) => matches(path),
    varies: (table, column) => differing.has(`${table}.${column}`),
    with: (more) => ignoring([...patterns, ...more], varying),
    withVarying: (columns) => ignoring(patterns, [...varying, ...columns]),
    get nothing() {
      nothing ??= ignoring([], varying)
      return nothing
    },
  }
}

function toTest(pattern: string): RegExp {
  const literal = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*')
  return new RegExp(`^${literal}$`)
}
