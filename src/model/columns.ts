/**
 * A column's type as the pipeline or the target names it, in PostgreSQL's words. `other` is a type of the
 * target that Stet does not interpret: its values travel and compare as the target's own text.
 */
export type ColumnType =
  | { readonly kind: 'text' }
  | { readonly kind: 'varchar'; readonly length?: number }
  | { readonly kind: 'char'; readonly length: number }
  | { readonly kind: 'smallint' }
  | { readonly kind: 'integer' }
  | { readonly kind: 'bigint' }
  | { readonly kind: 'numeric'; readonly precision?: number; readonly scale?: number }
  | { readonly kind: 'real' }
  | { readonly kind: 'double' }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'date' }
  | { readonly kind: 'timestamp'; readonly precision?: number }
  | { readonly kind: 'timestamptz'; readonly precision?: number }
  | { readonly kind: 'time'; readonly precision?: number }
  | { readonly kind: 'uuid' }
  | { readonly kind: 'json' }
  | { readonly kind: 'jsonb' }
  | { readonly kind: 'bytea' }
  | { readonly kind: 'other'; readonly native: string }

/** Column names and types as a user writes them: `{ order_ref: 'text', amount: 'numeric(12,2)' }`. */
export type Columns = Readonly<Record<string, string>>

/** The names of declared columns; any name where none are declared. */
export type ColumnOf<C extends Columns> = string extends keyof C ? string : keyof C & string

/** Where a column's type comes from: the target's table, the pipeline, or the first load's data. */
export type TypeOrigin = 'target' | 'declared' | 'inferred'

/** One column that a run reads, compares and writes. Local tables call it by `id`, never by the user's name. */
export interface ContractColumn {
  /** `c0`, `c1`, …: the name in the local engine. Users' names differ only in case, or are reserved words. */
  readonly id: string
  /** The name in the source and in the target. */
  readonly name: string
  readonly type: ColumnType
  readonly origin: TypeOrigin
  readonly key: boolean
  /** Whether it is the column that says which of two rows is newer. */
  readonly newest: boolean
  /** Written with a row that changes, but no reason to change it. */
  readonly ignored: boolean
  /** Whether a NULL is a reject: the target's column refuses it, or the run reads by this column (`cursor`). */
  readonly required?: boolean | 'cursor' | undefined
  /**
   * Compared, and held locally, as the target's own text: types outside the proved list, and columns that hold
   * a value which the local engine cannot represent (a date before year 1, a numeric NaN).
   */
  readonly asText: boolean
}

/** Names of the target's columns that Stet itself keeps in this run; null where it keeps none. */
export interface KeptColumns {
  /** When Stet last really changed the row, by the server's clock. */
  readonly updatedAt: string | null
  /** `docs/content-hash.md`, for consumers. */
  readonly contentHash: string | null
  /** When the row was found to be gone at the source; NULL in live rows. */
  readonly gone: string | null
}

/** The columns of a run, in order, agreed on before anything is landed. */
export interface Contract {
  readonly columns: readonly ContractColumn[]
  /**
   * What to keep, resolved: on a table that a run creates, the pipeline's names or the defaults; on an existing one the
   * columns that the pipeline names or that {@link TargetColumn.kept} marks. The only thing a target goes by.
   */
  readonly keep: KeptColumns
}
