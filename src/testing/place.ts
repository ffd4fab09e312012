import type { Source } from '../model/source.ts'
import type { Target } from '../model/target.ts'
import type { WriteStrategy } from '../model/write.ts'
import type { Pipeline, RunOptions } from '../pipeline/types.ts'

/** A target, and where the rows of an attempt come from. */
export interface TargetUnderContract extends Target {
  /** A source that the target itself gives for the attempt's rows. Default: literal rows, landed in the local engine. */
  readonly sourceOf?: ((attempt: Attempt) => Source) | undefined
}

/**
 * An empty place of the target under contract, made anew for each check: a database, a file. Everything a contract needs to
 * look behind the target's back goes through it, so that the target never judges itself.
 */
export interface Place extends AsyncDisposable {
  /** The target, reaching this place directly. */
  readonly target: TargetUnderContract
  /** Runs a statement of the target's own SQL as another writer would. */
  execute(sql: string): Promise<void>
  /** All rows of a table as texts in one fixed form, sorted, without `updated_at` and `content_hash`. Throws when there is no such table. */
  rows(table: string): Promise<readonly string[]>
  /** One text for each row that changes whenever the row is written, even with equal values (`xmin`, `ctid`); null where there is no such thing. */
  versions(table: string): Promise<readonly string[] | null>
  /** How many rows the named table has, 0 when it does not exist. */
  count(table: string): Promise<number>
  /** Tables and files that Stet has left beside the target's table and its record. */
  leftovers(): Promise<readonly string[]>
}

/** Where an attempt is ended by force. */
export interface FaultPoint {
  /** 1-based, among the messages or statements that one attempt sends. */
  readonly at: number
  /** `before` the target acts on it, or `after` it has acted and nobody hears of it. */
  readonly side: 'before' | 'after'
}

/** How an attempt at this kind of target can be ended by force at a known point. */
export interface Faults {
  /** What is done: `the connection is cut`, `the process is killed`. */
  readonly what: string
  /** Whether the attempt lives on and can find out what became of its commit; false where the process is gone. */
  readonly attemptSurvives: boolean
  /** Messages or statements that an attempt sends, counted in a run that nobody disturbs. */
  countOf(place: Place, attempt: Attempt): Promise<number>
  /** One attempt with a fault at the point. Resolves when it has ended, however it ended; says whether it claimed success. */
  attemptWithFault(
    place: Place,
    attempt: Attempt,
    point: FaultPoint,
  ): Promise<{ readonly claimedSuccess: boolean }>
}

/** One attempt, as data, so that another process can make it. */
export interface Attempt {
  readonly table: string
  readonly columns: Readonly<Record<string, string>>
  readonly rows: readonly (readonly (string | null)[])[]
  readonly write: WriteStrategy
  /** What else the pipeline says. */
  readonly pipeline?: Pick<Pipeline, 'incremental' | 'truth' | 'keep' | 'maxRejects' | 'onReject'> | undefined
  /** What the run is given; `now` as ISO 8601. */
  readonly options?:
    | (Pick<RunOptions, 'slice' | 'at' | 'window' | 'full' | 'allow'> & { readonly now?: string | undefined })
    | undefined
}

/** An attempt to be disturbed, and what was loaded before it. */
export interface Scenario {
  readonly name: string
  /** A statement of the target's own SQL that makes the table, where Stet would make another one. */
  readonly setup?: string | undefined
  readonly before: readonly Attempt[]
  readonly attempt: Attempt
}
