import type { Contract } from './columns.ts'

/** What has to happen to the target, as the comparison found it. */
export interface Difference {
  /**
   * Local table: `op` VARCHAR (`insert`, `update`, `delete`, `mark`), the contract's ids, `content_hash` VARCHAR (null
   * unless kept), `row_id` VARCHAR (only for deletes and marks without a key). A delete and a mark carry the row as it was
   * pulled. An update also takes the mark off a row that was gone.
   */
  readonly table: string
  /** Set where the difference was found in the target: `table` is a relation there, and nothing has to be sent. */
  readonly isInTarget?: boolean | undefined
  readonly inserts: number
  readonly updates: number
  readonly deletes: number
  readonly marks: number
}

/** What the pipeline wants of a comparison, apart from the columns. */
export interface CompareRules {
  /** What becomes of a row whose key is there and whose content differs: `frozen` leaves it alone and counts it. */
  readonly existing: 'update' | 'frozen'
  /** Whether a row of the load that is older than the target's is left out (G5). */
  readonly newestWins: boolean
  /** What becomes of the target's rows in scope that the load does not have. `count` only says how many there are. */
  readonly missing: 'keep' | 'count' | 'delete' | 'mark'
  /**
   * Without a key a slice is frozen as a whole: nothing is written, and what differs is counted.
   */
  readonly frozen: boolean
}

/** What the comparison found: the difference, and the rows that need no writing, each counted by its own query. */
export interface Comparison {
  readonly difference: Difference
  readonly unchanged: number
  readonly stale: number
  readonly frozen: number
  /** Rows in scope that the load does not have and that stay, where the rules ask for them; else 0. */
  readonly missing: number
  /** Rows in scope that a reader should count. */
  readonly live: number
}

/** One row that a plan shows: which key, and what would change. */
export interface PlanSample {
  /** `drift` is a row of a frozen slice that would change. */
  readonly op: 'insert' | 'update' | 'delete' | 'mark' | 'drift'
  readonly key: Readonly<Record<string, string | null>>
  /** The columns that change: `from` is null for an insert, `to` is null for a delete. */
  readonly changes: readonly {
    readonly column: string
    readonly from: string | null
    readonly to: string | null
  }[]
}

/** What a row that is back changes beside its values: without it a row that is as it was would change nothing. */
export function markTakenOff({ keep: { gone } }: Contract, isBack: boolean): PlanSample['changes'] {
  return isBack && gone !== null ? [{ column: gone, from: 'gone', to: null }] : []
}
