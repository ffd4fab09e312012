/** What a comparison leaves out: tables, columns as `table.column`, files. `*` stands for any characters. */
export interface Ignore {
  table(name: string): boolean
  column(table: string, column: string): boolean
  file(path: string): boolean
  with(patterns: readonly string[]): Ignore
}

export function ignoring(patterns: readonly string[]): Ignore {
  const tests = patterns.map(toTest)
  const matches = (...names: readonly string[]) => tests.some((test) => names.some((name) => test.test(name)))
  return {
    table: (name) => matches(name),
    column: (table, column) => matches(`${table}.${column}`),
    file: (path) => matches(path),
    with: (more) => ignoring([...patterns, ...more]),
  }
}

function toTest(pattern: string): RegExp {
  const literal = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*')
  return new RegExp(`^${literal}$`)
}
