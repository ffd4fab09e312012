/** A table of a file, ready to be queried. */
export interface LoadedTable {
  /** As in the file; empty for a file that is one table. */
  readonly name: string
  /** For SQL. */
  readonly reference: string
  readonly columns: readonly LoadedColumn[]
}

export interface LoadedColumn {
  readonly name: string
  readonly isKey: boolean
  /** The database makes up its values. */
  readonly isGenerated: boolean
  /** Every run fills it differently, so that only null counts. */
  readonly varies?: boolean
}

export interface LoadedFile {
  readonly tables: readonly LoadedTable[]
  /** Indexes, views and the like, a line each. */
  readonly definitions: readonly string[]
}
