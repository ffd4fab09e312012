import type { ColumnType, Contract, ContractColumn, KeptColumns } from './columns.ts'
import type { Difference } from './comparison.ts'
import type { LocalConnection } from './local.ts'
import type { RemoteCompare } from './remote.ts'
import type { RunLog, RunRecord, RunStart } from './run.ts'
import type { Slice, Watermark } from './slice.ts'
import type { Reject } from './source.ts'
import type { WriteStrategy } from './write.ts'

/** What a target can do, as plain data. */
export interface TargetCapabilities {
  readonly strategies: readonly WriteStrategy['strategy'][]
  /** Whether rows and record are one commit. */
  readonly transactional: boolean
  /** Longest identifier in bytes; longer ones are refused, never cut. */
  readonly identifierBytesMax: number
  /** Whether one run at a time has the target; further ones would only wait for it. Default false. */
  readonly oneRunAtATime?: boolean | undefined
}

/** A place where tables live. */
export interface Target {
  readonly kind: string
  /** One line for people and the run log; never holds a secret. */
  readonly description: string
  readonly capabilities: TargetCapabilities
  /**
   * Tells one place from another, for sources that are queries there (`own` of a source); never shown and no secret. Absent
   * where the target takes none.
   */
  readonly place?: string | undefined
  /** Connects. Writes nothing. */
  open(options: OpenTargetOptions): Promise<TargetSession>
  /** The record of runs, for reading only. */
  openRunLog(options: { readonly signal: AbortSignal }): Promise<RunLog>
  /** The record, to be changed by a person's hand. */
  openRecord(options: { readonly signal: AbortSignal }): Promise<RecordEditor>
}

export interface OpenTargetOptions {
  /** As the user wrote it: `orders`, `sales.orders`, `"Sales"."Orders"`. */
  readonly table: string
  readonly write: WriteStrategy
  readonly local: LocalConnection
  /** `plan` reads only: no lease, no record, no migration. */
  readonly mode: 'run' | 'plan'
  /** How long to wait for another attempt or another writer before giving up, in milliseconds. */
  readonly lockTimeoutMs: number
  /** Age in milliseconds at which a lease without a heartbeat is taken over. */
  readonly leaseTimeoutMs: number
  readonly signal: AbortSignal
  /** Told to people: waiting for a lock, taking over a lease. */
  readonly notice: (message: string) => void
  /** Told when a run waits for its turn to write the table. Default: `notice`. */
  readonly noticeTurn?: ((message: string) => void) | undefined
}

/** One column of a target's table. */
export interface TargetColumn {
  readonly name: string
  readonly type: ColumnType
  /** The type as the target prints it, for DDL and messages. */
  readonly native: string
  readonly nullable: boolean
  /** Computed by the target: compared with nothing and never written. */
  readonly generated: boolean
  /** Whether a row may leave it out: it has a default, is an identity or is nullable. */
  readonly optional: boolean
  /**
   * Set on a column that Stet made for itself when it created the table. The target marks it by a comment on the
   * column (`stet:updated_at`, `stet:content_hash`), which lives and dies with the column and can be read by people.
   */
  readonly kept?: keyof KeptColumns | undefined
}

/** A rule of a table by which a value, or several values together, may be there once. */
export interface UniqueRule {
  /** For people: `unique index "item_barcode_key"`. */
  readonly name: string
  /** Null where it is over an expression, or holds for some of the rows only. */
  readonly columns: readonly string[] | null
  /** Whether NULL is a value like any other there. */
  readonly nullsNotDistinct: boolean
  /** Whether it is held to while a statement changes one row after the other, and not at the end. */
  readonly rowByRow: boolean
}

/** A constraint that a plan does not work out: whether it takes the rows, only a run finds out. */
export interface Judge {
  /** For people: `check constraint amount_positive`. */
  readonly name: string
  /** Whether it judges rows that are written, or rows that are taken away, such as a foreign key of another table. */
  readonly of: 'written' | 'removed'
}

/** A target's table as it is. */
export interface TargetTable {
  /** Qualified and quoted as the target prints it. */
  readonly name: string
  readonly columns: readonly TargetColumn[]
  /** Rows as the target estimates them; exact where that is cheap. */
  readonly rowsEstimate: number
  /** Whether names of columns that differ in upper and lower case only are one name there. Default false. */
  readonly namesInAnyCase?: boolean | undefined
  /** All that a plan is to look at, the one over the key among them. Default: none is known. */
  readonly uniques?: readonly UniqueRule[] | undefined
  /** For a plan. Default: none is known. */
  readonly judges?: readonly Judge[] | undefined
}

/** What of the target a run has to look at. */
export type Scope =
  | { readonly kind: 'table' }
  /** Rows whose key is in this local table, whose columns have the contract's ids. */
  | {
      readonly kind: 'keys'
      readonly keys: string
      readonly count: number
      /** Whether no key of it holds NULL, so that rows with one in the target need not be looked at. Default false. */
      readonly withoutNulls?: boolean | undefined
    }
  /** Rows that belong to the slice. */
  | { readonly kind: 'slice'; readonly slice: Slice }

/** The target's rows in scope, in the local engine. */
export interface RowsInScope {
  /**
   * Local table with the contract's ids as columns, each in its local type, and `row_id` VARCHAR (the target's
   * own name of a row within this transaction) where the strategy has no key. Where the contract keeps `gone`, also
   * `is_gone` BOOLEAN.
   */
  readonly table: string
  readonly rows: number
  /**
   * Ids of columns in which the target holds a value that the local type cannot (a date before year 1, a numeric
   * NaN). When not empty, `table` must not be used: set `asText` for these and ask again.
   */
  readonly unheld: readonly string[]
}

/** What a run knows of what it loads, beside the difference. */
export interface SliceLoad {
  /** Null where the run owns the whole table. */
  readonly slice: Slice | null
  /** Whether existing keys may not change (G12): the difference then holds inserts only. */
  readonly frozen: boolean
  /** Local table with the contract's ids: all rows of the load. A relation of the target where the source is a query there. */
  readonly rows: string
  /** Live rows in scope in the target before. */
  readonly live: number
}

/** What became of the difference, counted by the target itself, each by its own query (G6). */
export interface Applied {
  readonly inserted: number
  readonly updated: number
  /** Equal in the target's own eyes, or made equal by another writer meanwhile: not written. */
  readonly unchanged: number
  /** Another writer has put a newer row meanwhile: not written. */
  readonly stale: number
  /** The key has appeared meanwhile and the strategy never changes an existing row. */
  readonly frozen: number
  readonly deleted: number
  readonly marked: number
  /** Of the updated rows, those that had been marked as gone. */
  readonly restored: number
}

/** What earlier runs have left on the record for this one. */
export interface History {
  readonly watermark: Watermark | null
  /** Whether a run with `truth: 'snapshot'` has finished this slice, and nobody has thawed it since (G12). */
  readonly frozen: boolean
}

/** What goes into the record in the commit of the rows, beside the run itself. */
export interface CommitExtras {
  /**
   * The watermark to move to, or null to leave it. `readAt` is {@link Watermark.setAt} of the one that the run has read:
   * when another has been set meanwhile, the commit is refused with `STET_SERIALIZATION`.
   */
  readonly watermark: (Omit<Watermark, 'setAt' | 'table'> & { readonly readAt: string | null }) | null
  /** Rejected rows to keep whole (`onReject: 'quarantine'`). */
  readonly quarantine: readonly Reject[]
}

/** Changes the record by hand. Each change leaves a {@link RecordEvent}. */
export interface RecordEditor extends AsyncDisposable {
  watermark(pipeline: string, table: string): Promise<Watermark | null>
  /** Sets, or with a null value forgets. */
  setWatermark(
    watermark: Pick<Watermark, 'pipeline' | 'table' | 'cursor' | 'definition'> & {
      readonly value: string | null
    },
    by: string,
  ): Promise<void>
  /** @returns false when the slice was not frozen. */
  thaw(table: string, slice: string, by: string): Promise<boolean>
  /** Notes that attempts at a slice up to now, none of which has loaded it, are no reason to show it any more. */
  forgetSlice(pipeline: string, table: string, slice: string, by: string): Promise<void>
}

/**
 * One attempt's dealings with a target, in this order:
 * `acquire` → `history` → `describe` → `prepare` → (landing) → `begin` → `rowsInScope` → `apply` → `commit`;
 * `fail` at any point after `acquire` and before `commit`. In `plan` mode `acquire`, `apply`, `commit` and `fail` are never called.
 * The lease comes first, so that what is described cannot be changed by another run of Stet, and every failure is logged.
 */
export interface TargetSession extends AsyncDisposable {
  /**
   * Brings the record's schema up to date, takes the lease of table and slice (waiting for a live one, taking over a
   * stale one, whose attempt is then marked as interrupted) and writes the run's first line, in commits of its own.
   */
  acquire(start: RunStart): Promise<void>
  /** What is on the record for the pipeline and the slice. Empty where there is no record yet. */
  history(pipeline: string, slice: string): Promise<History>
  /** The table, or null when there is none yet. */
  describe(): Promise<TargetTable | null>
  /**
   * Before anything is landed: checks that the table can hold the contract and enforces its key, or throws
   * `STET_KEY_CONSTRAINT`, `STET_COLUMNS` with the exact DDL. Writes nothing.
   */
  prepare(contract: Contract): Promise<void>
  /**
   * The target's own form of texts of one column whose `asText` is set: `from` is a local table with a VARCHAR
   * column `text` of distinct texts; the answer is a local table `text`, `canonical` (null when refused), `reason`.
   */
  canonical(column: ContractColumn, from: string): Promise<string>
  /**
   * Opens the transaction, takes the table's lock, and checks that the lease is still ours and the table as it was
   * described. Whether an attempt whose answer was lost has committed is for {@link commit} to find out.
   */
  begin(): Promise<void>
  /** The comparison inside the target, for a source that is a query there. Absent where the target has none. */
  readonly remote?: RemoteCompare | undefined
  /** In the snapshot that `apply` builds on. */
  rowsInScope(contract: Contract, scope: Scope): Promise<RowsInScope>
  /** Writes the difference, guarded against other writers, and classifies what it did not write. */
  apply(contract: Contract, difference: Difference, load?: SliceLoad): Promise<Applied>
  /** The statements that `apply` would send, for people (`plan --sql`). */
  statements(): readonly string[]
  /**
   * Of a plan, after `statements`: why the target would refuse a run that writes the difference, as far as the rights of its
   * user tell; null where they do. Absent where the target knows of no rights.
   */
  lackingRights?(difference: Difference): Promise<string | null>
  /**
   * Commits rows and record in one. When the answer is lost it finds out; throws `STET_OUTCOME_UNKNOWN` only when
   * nobody can be asked. Gives the lease back.
   */
  commit(record: RunRecord, extras?: CommitExtras): Promise<void>
  /** Undoes the transaction, writes the failed run's line by a commit of its own, gives the lease back. */
  fail(record: RunRecord): Promise<void>
}
