/** What a recogniser of one kind of statement found; the rest is empty. */
import type { Assignment, Conflict, Merge, Name, Statement, StatementKind } from './statement.ts'
import type { Tokens } from './tokens.ts'

export interface Draft {
  kind: StatementKind
  target?: Name | undefined
  moreTargets?: readonly Name[]
  columns?: readonly string[] | undefined
  rows?: Statement['rows']
  query?: Tokens
  conflict?: Conflict | undefined
  overwrite?: boolean
  partition?: boolean
  temporary?: boolean
  guarded?: boolean
  orReplace?: boolean
  set?: readonly Assignment[]
  where?: Tokens | undefined
  merge?: Merge | undefined
}
