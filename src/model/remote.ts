import type { Contract, ContractColumn } from './columns.ts'
import type { CompareRules, Comparison, PlanSample } from './comparison.ts'
import type { CursorWindow, Narrowing, Slice } from './slice.ts'
import type { Reject, SourceField } from './source.ts'

/** What decides how the answer of a query becomes rows. */
export interface RemoteRules {
  readonly nullKeys: 'reject' | 'match'
  readonly normalizeKey: 'nfc' | undefined
  /** How many rejects to bring whole, for a quarantine. Default: the first hundred, cut, for people. */
  readonly keepRejects: number | undefined
  readonly narrowing: Narrowing
}

/** What a query gave: only rows without fault stay in the stage. */
export interface RemoteLanded {
  readonly read: number
  readonly rejected: number
  /** The first of the rejected rows; `rejected` is the count. */
  readonly rejects: readonly Reject[]
}

/** What became of the rows by the cursor. */
export interface Seen {
  /** Rows that were left out because they are outside the window or the slice. */
  readonly outside: number
  /** Of these, the ones that are later than the upper bound. */
  readonly later: number
  /** Rows without a cursor value that were taken in (`nulls: 'include'`). */
  readonly withoutCursor: number
  /** The greatest cursor value among the rows that stay, as exact text; null when there is none. */
  readonly greatest: string | null
}

/** What of the table a comparison looks at. */
export interface RemoteScope {
  /** Null where it is all of the table. */
  readonly slice: Slice | null
  /** Whether the live rows in scope are to be counted; {@link Comparison.live} is else 0. */
  readonly countsLive: boolean
}

/** Some rows of a load, by the columns' names. */
export type ShownRow = Readonly<Record<string, string | null>>

/**
 * The steps of a run as SQL in the target, for a source that is a query there. The same steps as those of the local engine,
 * in the same order and counted the same way: `fields`, then, after `prepare`, `land`, `keepWindow`, `rowsOutside`,
 * `keepNewest`; then `begin` of the session, `compare`, and its `apply`.
 *
 * From `land` on everything is in the one transaction that `commit` ends, so that an attempt which dies leaves nothing.
 */
export interface RemoteCompare {
  /** What the query gives, without running it. */
  fields(query: string): Promise<readonly SourceField[]>
  /**
   * Opens the transaction, runs the query once, as a reader only, and keeps the rows of which every value is exactly one of
   * the contract's types (G9).
   */
  land(query: string, contract: Contract, rules: RemoteRules): Promise<RemoteLanded>
  /** Takes out what is outside the window or the backfill's slice, and says what is left. */
  keepWindow(column: ContractColumn, window: CursorWindow, slice: Slice | null): Promise<Seen>
  /** Rows that do not belong to the slice: how many, and some of them. */
  rowsOutside(
    slice: Slice,
    shown: number,
  ): Promise<{ readonly count: number; readonly rows: readonly ShownRow[] }>
  /** Keeps the newest row of each key; how many rows went (G5). Throws `STET_TIE`. */
  keepNewest(): Promise<number>
  /** Compares with the table as it is now, under its lock. */
  compare(rules: CompareRules, scope: RemoteScope): Promise<Comparison>
  /** Some rows of the difference of each kind, with what would change. */
  samples(): Promise<readonly PlanSample[]>
  /** Some rows of the load that a frozen slice holds otherwise. */
  drift(): Promise<readonly PlanSample[]>
  /** Of the whole difference, independent of row order. */
  digest(): Promise<string>
}
