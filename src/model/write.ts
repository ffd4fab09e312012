/** How a key is read. */
export interface KeyReading {
  /** What a NULL in the key means: `reject` (default) refuses the row, `match` takes NULL as a value like any other. */
  readonly nullKeys?: 'reject' | 'match' | undefined
  /** Brings text keys into one Unicode normal form before they are compared and written. Default: as they come. */
  readonly normalizeKey?: 'nfc' | undefined
}

/** Insert new keys, update changed rows, leave equal ones alone. */
export interface Upsert<Column extends string = string> extends KeyReading {
  readonly strategy: 'upsert'
  readonly key: readonly Column[]
  /** Numeric or temporal column that says which of two rows with one key is newer (G5). */
  readonly newest?: Column | undefined
  /** Columns that are no reason to update a row, such as the time of an export. */
  readonly ignore?: readonly Column[] | undefined
}

/** Insert new keys; existing rows never change. */
export interface InsertOnce<Column extends string = string> extends KeyReading {
  readonly strategy: 'insert-once'
  readonly key: readonly Column[]
  readonly newest?: Column | undefined
  readonly ignore?: readonly Column[] | undefined
}

/** The table holds what the load holds, nothing else: differences are applied in one transaction. */
export interface ReplaceTable<Column extends string = string> extends KeyReading {
  readonly strategy: 'replace-table'
  /** Without a key rows compare as a multiset. */
  readonly key?: readonly Column[] | undefined
  readonly newest?: Column | undefined
  readonly ignore?: readonly Column[] | undefined
  /** Lets an empty source empty the table (G10). Default false. */
  readonly allowEmpty?: boolean | undefined
}

/** How a difference is written. Data, not functions: it can be printed, compared, and checked against the columns. */
export type WriteStrategy<Column extends string = string> =
  | Upsert<Column>
  | InsertOnce<Column>
  | ReplaceTable<Column>

/**
 * Columns of the target that Stet itself keeps. On a table that Stet creates both are made unless set to `false`;
 * on an existing table only those named here are kept.
 */
export interface KeepColumns {
  /** When Stet last really changed the row, by the server's clock. */
  readonly updatedAt?: string | false | undefined
  /**
   * The published hash of the row's content, for consumers (`docs/content-hash.md`). On a table that a run creates it is
   * made by default in PostgreSQL, and not in DuckDB.
   */
  readonly contentHash?: string | false | undefined
}
