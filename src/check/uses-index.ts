/** The statements of a file by where they run and which table they are about: a big file asks for them very often. */
import type { FileFacts, SqlUse } from './facts.ts'
import type { HostFunction } from './languages/host.ts'
import type { Name } from './sql/statement.ts'

interface Group {
  /** Statements of one function and one origin, in the order they run. */
  readonly uses: readonly SqlUse[]
  /** By the last part of each table they are about. */
  readonly byTable: ReadonlyMap<string, readonly SqlUse[]>
}

interface Index {
  readonly byFunction: ReadonlyMap<HostFunction | undefined, ReadonlyMap<SqlUse['origin'], Group>>
  readonly byTable: ReadonlyMap<string, readonly SqlUse[]>
  readonly byTransaction: ReadonlyMap<string, readonly SqlUse[]>
}

const cache = new WeakMap<FileFacts, Index>()
const NONE: Group = { uses: [], byTable: new Map() }

function indexOf(file: FileFacts): Index {
  const known = cache.get(file)
  if (known !== undefined) return known
  const byFunction = new Map<HostFunction | undefined, Map<SqlUse['origin'], SqlUse[]>>()
  const byTransaction = new Map<string, SqlUse[]>()
  for (const use of file.sql) {
    const origins = byFunction.get(use.fn) ?? new Map<SqlUse['origin'], SqlUse[]>()
    byFunction.set(use.fn, origins)
    append(origins, use.origin, use)
    if (use.transaction !== undefined) append(byTransaction, use.transaction, use)
  }
  const index: Index = {
    byFunction: new Map(
      [...byFunction].map(([fn, origins]) => [
        fn,
        new Map([...origins].map(([origin, uses]) => [origin, { uses, byTable: tablesOf(uses) }])),
      ]),
    ),
    byTable: tablesOf(file.sql),
    byTransaction,
  }
  cache.set(file, index)
  return index
}

function tablesOf(uses: readonly SqlUse[]): Map<string, SqlUse[]> {
  const found = new Map<string, SqlUse[]>()
  for (const use of uses) {
    const { target, moreTargets } = use.statement
    for (const last of new Set([target, ...moreTargets].map((name) => name?.parts.at(-1))))
      if (last !== undefined) append(found, last, use)
  }
  return found
}

function append<K>(map: Map<K, SqlUse[]>, key: K, use: SqlUse): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [use])
  else list.push(use)
}

/** Statements of one function (or of a whole file, outside of any) and one origin. */
export function usesBeside(
  file: FileFacts,
  fn: HostFunction | undefined,
  origin: SqlUse['origin'],
): readonly SqlUse[] {
  return (indexOf(file).byFunction.get(fn)?.get(origin) ?? NONE).uses
}

/** The same, only those about tables of that last name. */
export function usesOfTableBeside(
  file: FileFacts,
  fn: HostFunction | undefined,
  origin: SqlUse['origin'],
  table: Name | undefined,
): readonly SqlUse[] {
  const group = indexOf(file).byFunction.get(fn)?.get(origin) ?? NONE
  return group.byTable.get(table?.parts.at(-1) ?? '') ?? []
}

/** All statements of the file about tables of that last name. */
export function usesOfTable(file: FileFacts, table: Name | undefined): readonly SqlUse[] {
  return indexOf(file).byTable.get(table?.parts.at(-1) ?? '') ?? []
}

export function usesOfTransaction(file: FileFacts, transaction: string): readonly SqlUse[] {
  return indexOf(file).byTransaction.get(transaction) ?? []
}
