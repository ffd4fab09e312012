/** A table with its columns and keys, as far as they are written down somewhere. */
import type { Name } from '../sql/statement.ts'

export interface Column {
  readonly name: string
  readonly notNull: boolean
  /** Filled by the database with a value of its own: serial, identity, auto increment, a random id. */
  readonly generated: boolean
  readonly defaulted: boolean
}

interface Key {
  readonly columns: readonly string[]
  readonly primary: boolean
  readonly nullsNotDistinct: boolean
  /** Every column of it is generated, so no load ever meets it again. */
  readonly generated: boolean
  readonly partial: boolean
}

export interface Table {
  readonly name: Name
  readonly path: string
  readonly start: number
  readonly columns: readonly Column[]
  readonly keys: readonly Key[]
  readonly temporary: boolean
  /** `create table ... as select`, `like`, `partition of`: columns and keys are not written down. */
  readonly fromQuery: boolean
  /** Merges rows of one key by itself (ReplacingMergeTree) or upserts on insert (Cassandra). */
  readonly upsertStore: boolean
  readonly touchTrigger: boolean
}

/** A table while it is gathered. */
export interface TableDraft {
  name: Name
  path: string
  start: number
  columns: Column[]
  keys: Key[]
  temporary: boolean
  fromQuery: boolean
  upsertStore: boolean
  touchTrigger: boolean
}

/** What a later statement does to a table. */
export type Change = (table: TableDraft) => void

/** What one statement says: a table of its own, with the tables that cascade into it, or a change of one. */
export type DdlFact =
  | { readonly table: TableDraft; readonly parents: readonly Name[] }
  | { readonly target: Name; readonly change: Change }

export function emptyTable(name: Name, path: string, start: number): TableDraft {
  return {
    name,
    path,
    start,
    columns: [],
    keys: [],
    temporary: false,
    fromQuery: false,
    upsertStore: false,
    touchTrigger: false,
  }
}

export function addColumn(table: TableDraft, column: Column): void {
  table.columns = [...table.columns.filter((one) => one.name !== column.name), column]
}

/** Adds a key; it is generated when all its columns are, and the columns of a primary key are never NULL. */
export function addKey(
  table: TableDraft,
  columns: readonly string[],
  options: {
    readonly primary?: boolean
    readonly nullsNotDistinct?: boolean
    readonly partial?: boolean
  } = {},
): void {
  const { primary = false, nullsNotDistinct = false, partial = false } = options
  const generated =
    columns.length > 0 &&
    columns.every((name) => table.columns.some((column) => column.name === name && column.generated))
  table.keys.push({ columns, primary, nullsNotDistinct, generated, partial })
  if (primary) for (const name of columns) setNotNull(table, name, true)
}

export function setNotNull(table: TableDraft, name: string, notNull: boolean): void {
  table.columns = table.columns.map((column) => (column.name === name ? { ...column, notNull } : column))
}

/** A trigger on update whose name or function says that it stamps the row. */
export function looksLikeTouch(text: string): boolean {
  return /updated?_?at|timestamp|touch|modif|moddatetime/i.test(text)
}
