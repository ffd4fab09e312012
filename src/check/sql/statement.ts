import type { Token } from './lexer.ts'

export type StatementKind =
  | 'insert'
  | 'merge'
  | 'update'
  | 'delete'
  | 'truncate'
  | 'select'
  | 'create-table'
  | 'create-view'
  | 'create-index'
  | 'create-trigger'
  | 'create-routine'
  | 'create-other'
  | 'alter-table'
  | 'drop'
  | 'copy'
  | 'load'
  | 'export'
  | 'begin'
  | 'commit'
  | 'rollback'
  | 'call'
  | 'set'
  | 'grant'
  | 'meta'
  | 'other'

/** A table as it is written, and in the form in which two names are compared. */
export interface Name {
  readonly text: string
  /** Lower case, without quotes; a hole stands as `{expression}`. */
  readonly parts: readonly string[]
  readonly start: number
  readonly end: number
  /** The last part is nothing but a template hole: which table it is, is unknown. */
  readonly unknown: boolean
}

export interface Assignment {
  readonly column: string
  readonly value: readonly Token[]
  readonly start: number
}

export interface Conflict {
  readonly action: 'nothing' | 'update' | 'replace'
  readonly how: 'on-conflict' | 'duplicate-key' | 'ignore' | 'replace'
  /** Columns of the conflict target; undefined where none are named. */
  readonly columns: readonly string[] | undefined
  readonly constraint: boolean
  readonly set: readonly Assignment[]
  /** The `where` behind `do update set`. */
  readonly where: readonly Token[] | undefined
  readonly start: number
  readonly end: number
}

export interface MergeBranch {
  readonly matched: boolean
  readonly bySource: boolean
  readonly condition: readonly Token[]
  readonly action: 'update' | 'insert' | 'delete' | 'nothing'
  readonly set: readonly Assignment[]
}

export interface Merge {
  readonly source: readonly Token[]
  readonly sourceName: Name | undefined
  readonly on: readonly Token[]
  readonly branches: readonly MergeBranch[]
  readonly targetAlias: string | undefined
  readonly sourceAlias: string | undefined
}

/** One statement: what it does, to which table, and where its parts are. Positions are those of the lexed text. */
export interface Statement {
  readonly kind: StatementKind
  readonly tokens: readonly Token[]
  readonly start: number
  readonly end: number
  readonly target: Name | undefined
  /** `truncate a, b` and `drop table a, b`: the tables behind the first. */
  readonly moreTargets: readonly Name[]
  readonly columns: readonly string[] | undefined
  /** Where the rows come from. */
  readonly rows: 'values' | 'select' | 'unknown' | undefined
  /** The `select` behind insert and create table as, the whole of a query; common table expressions included. */
  readonly query: readonly Token[]
  readonly conflict: Conflict | undefined
  readonly overwrite: boolean
  readonly partition: boolean
  readonly temporary: boolean
  readonly guarded: boolean
  readonly orReplace: boolean
  readonly set: readonly Assignment[]
  readonly where: readonly Token[] | undefined
  readonly merge: Merge | undefined
}
