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
  const tests = patterns.map(toTest)
  const matches = (...names: readonly string[]) => tests.some((test) => names.some((name) => test.test(name)))
  const differing = new Set(varying)
  let nothing: Ignore | undefined
  return {
    table: (name) => matches(name),
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
