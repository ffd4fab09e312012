/** Tables, their keys and columns, out of all that a repository (or a database) says of them. */
import type { Name } from '../sql/statement.ts'
import type { Change, DdlFact, Table, TableDraft } from './table.ts'

export interface Catalogue {
  /** The definition nearest to the file that asks; undefined where there is none. */
  find(name: Name | undefined, path: string): Table | undefined
  /** Whether other tables reference this one with `on delete cascade`. */
  hasChildren(table: Table): boolean
}

export interface CatalogueBuilder {
  /** From files of the repository; `''` as the path stands for a database or its dump, which counts before them. */
  add(fact: DdlFact, path: string): void
  build(): Catalogue
}

export function catalogueBuilder(): CatalogueBuilder {
  const tables: TableDraft[] = []
  const byLastPart = new Map<string, TableDraft[]>()
  const changes: { target: Name; change: Change; path: string }[] = []
  const parents: { parent: Name; path: string }[] = []

  // Every statement asks, most of them for the same few tables.
  const answers = new Map<string, TableDraft | undefined>()
  const find = (name: Name | undefined, path: string): TableDraft | undefined => {
    if (name === undefined || name.unknown) return undefined
    const question = `${name.text}\n${path}`
    if (answers.has(question)) return answers.get(question)
    const answer = search(name, path)
    answers.set(question, answer)
    return answer
  }

  const search = (name: Name, path: string): TableDraft | undefined => {
    let best: TableDraft | undefined
    let bestScore = -1
    for (const table of byLastPart.get(name.parts.at(-1) ?? '') ?? []) {
      if (!mayShareSchema(name.parts.at(-2), table.name.parts.at(-2))) continue
      const score =
        (table.path === '' ? 1000 : 0) +
        commonFolders(table.path, path) * 4 +
        (table.fromQuery ? 0 : 2) +
        (table.path === path ? 1 : 0)
      if (score > bestScore) {
        best = table
        bestScore = score
      }
    }
    if (best?.fromQuery !== true || name.parts.at(-1)?.endsWith('_local')) return best
    // The front of ClickHouse has the keys of the tables behind it.
    const behind = `${name.parts.at(-1)}_local`
    return search({ ...name, parts: [...name.parts.slice(0, -1), behind] }, path) ?? best
  }

  return {
    add(fact, path) {
      if ('change' in fact) {
        changes.push({ ...fact, path })
        return
      }
      for (const parent of fact.parents) parents.push({ parent, path })
      tables.push(fact.table)
      const last = fact.table.name.parts.at(-1) ?? ''
      byLastPart.set(last, [...(byLastPart.get(last) ?? []), fact.table])
    },
    build() {
      for (const { target, change, path } of changes) {
        const table = find(target, path)
        if (table !== undefined) change(table)
      }
      const cascading = new Set<Table | undefined>(parents.map(({ parent, path }) => find(parent, path)))
      return { find, hasChildren: (table) => cascading.has(table) }
    },
  }
}

/** Two schemas that are both written and differ are two tables; a template hole may be any. */
function mayShareSchema(left: string | undefined, right: string | undefined): boolean {
  return (
    left === undefined ||
    right === undefined ||
    left === right ||
    left.startsWith('{') ||
    right.startsWith('{')
  )
}

function commonFolders(left: string, right: string): number {
  const a = left.split('/')
  const b = right.split('/')
  let common = 0
  while (common < a.length - 1 && common < b.length - 1 && a[common] === b[common]) common += 1
  return common
}
