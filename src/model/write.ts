import type { SliceSize } from './slice.ts'

/** How a key is read. */
export interface KeyReading {
  /** What a NULL in the key means: `reject` (default) refuses the row, `match` takes NULL as a value like any other. */
  readonly nullKeys?: 'reject' | 'match' | undefined
  /** Brings text keys into one Unicode normal form before they are compared and written. Default: as they come. */
  readonly normalizeKey?: 'nfc' | undefined
}

/** What a run may take away (G10). Each is a name for something that is refused unless it is said. */
export interface Removals {
  /** Lets an empty source empty the table or the slice. Default false. */
  readonly allowEmpty?: boolean | undefined
  /** Lets a load remove more than a tenth of the live rows in scope, where that is more than 100. Default false. */
  readonly allowDeletes?: boolean | undefined
}

/**
 * What becomes of rows that a full extract (or a slice of one) no longer has: they stay, are deleted, or are marked as gone
 * in the column `keep.gone`. A marked row that comes back is an update.
 */
export type Missing = 'keep' | 'delete' | 'mark'

/** Insert new keys, update changed rows, leave equal ones alone. */
export interface Upsert<Column extends string = string> extends KeyReading, Removals {
  readonly strategy: 'upsert'
  readonly key: readonly Column[]
  /** Numeric or temporal column that says which of two rows with one key is newer (G5). */
  readonly newest?: Column | undefined
  /** Columns that are no reason to update a row, such as the time of an export. */
  readonly ignore?: readonly Column[] | undefined
  /** Default `keep`. The others are for sources that give everything at every run. */
  readonly missing?: Missing | undefined
}

/** Insert new keys; existing rows never change. */
export interface InsertOnce<Column extends string = string> extends KeyReading {
  readonly strategy: 'insert-once'
  readonly key: readonly Column[]
  readonly newest?: Column | undefined
  readonly ignore?: readonly Column[] | undefined
}

/** The table holds what the load holds, nothing else: differences are applied in one transaction. */
export interface ReplaceTable<Column extends string = string> extends KeyReading, Removals {
  readonly strategy: 'replace-table'
  /** Without a key rows compare as a multiset. */
  readonly key?: readonly Column[] | undefined
  readonly newest?: Column | undefined
  readonly ignore?: readonly Column[] | undefined
}

/**
 * The slice that the run names holds what the load holds, nothing else; the rest of the table is not looked at. A row of
 * the load that belongs to another slice refuses the run.
 */
export interface ReplacePartition<Column extends string = string> extends KeyReading, Removals {
  readonly strategy: 'replace-partition'
  /** The column that says which slice a row belongs to. */
  readonly by: Column
  readonly size: SliceSize
  /** IANA zone in which hours, days and months begin. Default `UTC`. */
  readonly zone?: string | undefined
  /** Without a key rows compare as a multiset. */
  readonly key?: readonly Column[] | undefined
  readonly newest?: Column | undefined
  readonly ignore?: readonly Column[] | undefined
  /** Default `delete`. */
  readonly missing?: Missing | undefined
  /**
   * `diff` (default) writes the rows that differ. `swap` builds the partition beside and exchanges it, on natively
   * partitioned PostgreSQL tables. `auto` swaps where a third or more of the slice has changed.
   */
  readonly apply?: 'diff' | 'swap' | 'auto' | undefined
}

/** How a difference is written. Data, not functions: it can be printed, compared, and checked against the columns. */
export type WriteStrategy<Column extends string = string> =
  | Upsert<Column>
  | InsertOnce<Column>
  | ReplaceTable<Column>
  | ReplacePartition<Column>

/**
 * Columns of the target that Stet itself keeps. On a table that Stet creates both are made unless set to `false`;
 * on an existing table only those named here are kept.
 */
export interface KeepColumns {
  /** When Stet last really changed the row, by the server's clock. */
  readonly updatedAt?: string | false | undefined
  /** The published hash of the row's content, for consumers (`docs/content-hash.md`). */
  readonly contentHash?: string | false | undefined
  /** When the row was found to be gone at the source; NULL for live rows. Needed by, and made for, `missing: 'mark'`. */
  readonly gone?: string | undefined
}
