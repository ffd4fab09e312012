import type { Columns, ColumnType } from './columns.ts'
import type { LocalConnection } from './local.ts'
import type { ProgressListener } from './progress.ts'
import type { CursorWindow, Slice } from './slice.ts'

/**
 * Where rows come from. A source gives out text: every value as its exact characters, which the landing turns
 * into the contract's types and checks (G9). It never converts by itself.
 */
export interface Source<C extends Columns = Columns> {
  readonly kind: string
  /** Declared columns; otherwise the target's table decides, and only a first load infers. */
  readonly columns?: C | undefined
  /** One line for people and the run log; never holds a secret. */
  readonly description: string
  /** All that decides which rows come, such as a query's text, where {@link description} does not say it; never a secret. */
  readonly identity?: string | undefined
  /** Set where the source is a query on the target's own connection: it is then never opened, and no row leaves the target. */
  readonly own?: OwnQuery | undefined
  open(context: SourceContext): Promise<OpenSource>
  /**
   * What time it is at the source, as ISO 8601 in UTC with microseconds; asked before a run reads by a cursor, so that
   * nothing later than this moves the watermark (G4). A source without a clock goes by the caller's.
   */
  clock?(context: { readonly signal: AbortSignal }): Promise<string>
}

/** A query on a target's own connection, as a source: its rows never leave the target. */
export interface OwnQuery {
  /** `place` of the target that made it. */
  readonly place: string
  /** One statement that gives rows. */
  readonly query: string
}

export interface SourceContext {
  readonly local: LocalConnection
  /** Folder against which relative paths are read. */
  readonly cwd: string
  readonly signal: AbortSignal
  readonly progress: ProgressListener
  /**
   * Whether the source may give its parts out before it has looked at all that is in them, see {@link OpenSource.looked}.
   * Default: everything is known once it is open.
   */
  readonly mayLookLater?: boolean | undefined
  /** The slice that the run names: `{slice}` in a file's name, bounds in a query. */
  readonly slice?: Slice | undefined
  /**
   * Whether a source may leave out what is outside the slice, by a column of this type: not where a transform makes the
   * column, or where the table holds it in another type. Default: never.
   */
  readonly mayNarrow?: ((type: ColumnType) => boolean) | undefined
  /**
   * Whether a column holds JSON. A source that can tell a string from a document then gives the string's JSON text, in its
   * quotes: without them "1" would be the number. Default: no column does.
   */
  readonly holdsJson?: ((column: string) => boolean) | undefined
  /** What the run reads by its cursor. A source may leave out what is outside; the pipeline looks again. */
  readonly cursor?: CursorRequest | undefined
  /** Whether rejected records are wanted whole, for a quarantine. Default false: cut, and only the first of them. */
  readonly keepRejects?: boolean | undefined
}

/** The part of a source that a run reads, for sources that can leave the rest where it is. */
export interface CursorRequest {
  readonly column: string
  /**
   * The window, with ends in the form of the column's type at the source; null when the table holds the column in another
   * type, whose texts would mean something else: then everything is to be read.
   */
  window(type: ColumnType): Promise<CursorWindow | null>
}

/** A field that a source offers. */
export interface SourceField {
  readonly name: string
  /** The type the source itself knows (Parquet, a query); absent for text formats. Used only by a first load. */
  readonly type?: ColumnType | undefined
}

/** A file that a source reads, as the run log keeps it. */
export interface SourceFile {
  /** As the user would write it; `-` for standard input. */
  readonly path: string
  /** Size in bytes, before decompression. */
  readonly bytes: number
  /** Of the bytes on disk, in hex. */
  readonly sha256: string
}

export interface OpenSource extends AsyncDisposable {
  readonly fields: readonly SourceField[]
  /**
   * Set where a source that knows its fields from its records holds none of them: {@link fields} then says nothing, and every
   * field may be selected. Default false.
   */
  readonly fieldsUnknown?: boolean | undefined
  readonly files: readonly SourceFile[]
  readonly parts: readonly SourcePart[]
  /**
   * Present where the source is still looking at its files, beside whatever is done with it. Until it resolves `files` and
   * what the parts know is not there yet, and of their selects only `early` may be used. Throws what the source refuses.
   */
  readonly looked?: (() => Promise<void>) | undefined
  /** Sentences for people: a delimiter that was chosen, columns that were found. */
  readonly notices?: readonly string[] | undefined
  /** Called when every part has been landed. Throws `STET_SOURCE_CHANGED` when a file is not what it was. */
  verify(): Promise<void>
}

/** One relation of a source: usually a file. May be selected from more than once, with the same rows in the same order. */
export interface SourcePart {
  readonly file: Pick<SourceFile, 'path'> | null
  /**
   * How many records the part holds by the source's own count, rejects included, where it counts apart from DuckDB.
   * Rows and rejects must come to as many (G9): a reader that stops early does not always say so.
   */
  readonly records?: number | undefined
  /**
   * A DuckDB `select` that gives each of the wanted fields as VARCHAR, named `c0`, `c1`, … in the order wanted.
   * A null (not an empty string) is SQL NULL. Every field of the part is checked, also the ones not wanted.
   */
  select(wanted: readonly string[]): string
  /**
   * The same, slower and sure, where {@link select} lets the engine's threads find the records for themselves; taken when
   * rows and {@link records} do not agree.
   */
  readonly selectByOneThread?: ((wanted: readonly string[]) => string) | undefined
  /** A select that can be run before the source has looked at the part; what it gives is worth nothing unless `holds`. */
  readonly early?: EarlySelect | undefined
  /** The records that the reader itself refused (ragged, not in the file's encoding), after one `select` has run to its end. */
  rejects(): Promise<readonly Reject[]>
  /** Where rows of `select` stand: 1-based row numbers in its order, ascending. */
  locate(rows: readonly number[]): Promise<readonly RowLocation[]>
}

export interface EarlySelect {
  /** As {@link SourcePart.select}. */
  select(wanted: readonly string[]): string
  /**
   * Waits for the look at the part; whether `select` would read it so. The rows have to agree with `records` besides. Throws
   * what the source refuses.
   */
  holds(): Promise<boolean>
}

export interface RowLocation {
  /** Physical line in the file, 1-based, or the row's number where there are no lines; null where a number means nothing. */
  readonly line: number | null
  /** The record as it stands in the file. */
  readonly raw: string
}

/** A row that was not loaded, and why (G9). */
export interface Reject {
  readonly file: string | null
  readonly line: number | null
  readonly column: string | null
  readonly value: string | null
  readonly reason: string
  readonly raw?: string | undefined
}
