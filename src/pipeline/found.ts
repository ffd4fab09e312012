import type { Contract } from '../model/columns.ts'
import type { Comparison, PlanSample } from '../model/comparison.ts'
import type { RunRecord } from '../model/run.ts'
import type { History, Scope, TargetTable } from '../model/target.ts'
import type { ReadyRows } from './rows.ts'
import type { CursorPlan } from './window.ts'

/** What a comparison has found, and how to look at it. */
export interface Compared {
  readonly contract: Contract
  readonly comparison: Comparison
  readonly scopeKind: Scope['kind']
  /** Some rows of the difference of each kind, with what would change. */
  samples(): Promise<readonly PlanSample[]>
  /** Some rows of a frozen slice whose source has changed; they stay as they are (G12). */
  drift(): Promise<readonly PlanSample[]>
  /** Of the whole difference, independent of row order. */
  digest(): Promise<string>
}

/** Everything up to the point of writing; what `run` applies and `plan` shows. */
export interface Found extends Compared {
  readonly table: TargetTable | null
  readonly rows: ReadyRows
  readonly files: RunRecord['files']
  readonly history: History
  readonly cursor: CursorPlan | null
}
