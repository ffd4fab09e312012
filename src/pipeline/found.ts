import type { Comparison } from '../local/compare.ts'
import type { Contract } from '../model/columns.ts'
import type { RunRecord } from '../model/run.ts'
import type { History, RowsInScope, Scope, TargetTable } from '../model/target.ts'
import type { ReadyRows } from './rows.ts'
import type { CursorPlan } from './window.ts'

/** Everything up to the point of writing; what `run` applies and `plan` shows. */
export interface Found {
  readonly table: TargetTable | null
  readonly contract: Contract
  readonly rows: ReadyRows
  readonly scope: RowsInScope | null
  readonly scopeKind: Scope['kind']
  readonly comparison: Comparison
  readonly files: RunRecord['files']
  readonly history: History
  readonly cursor: CursorPlan | null
}
