/**
 * What went wrong, as a word that programs can rely on. Every code has one exit status; both are part of
 * the public interface and listed in `docs/exit-codes.md`.
 */
export const EXIT_STATUS_BY_CODE = {
  /** Wrong command line. */
  STET_USAGE: 2,
  /** A pipeline or its configuration contradicts itself or the target. */
  STET_CONFIG: 2,
  /** A driver package is not installed. */
  STET_DRIVER_MISSING: 2,
  /** The user of the target may not do what a run needs. */
  STET_PRIVILEGE: 2,
  /** A source cannot be read: missing, corrupt, cut off, or not in the format it claims. */
  STET_SOURCE: 1,
  /** A file changed while it was read (G9). */
  STET_SOURCE_CHANGED: 1,
  /** A source's columns are not those the target or the pipeline needs. */
  STET_COLUMNS: 3,
  /** No unique constraint of the target enforces the pipeline's key (G1). */
  STET_KEY_CONSTRAINT: 3,
  /** Two rows of one load claim to be the newest of one key, or differ without an order column (G5). */
  STET_TIE: 3,
  /** A source that is empty, has rejects, or lacks more than a tenth of the rows would take rows of the target away (G10). */
  STET_DELETE_GUARD: 3,
  /** Another attempt holds the lease of this table and slice (G7). */
  STET_LOCKED: 3,
  /** This attempt lost its lease to another and may not write any more (G7). */
  STET_LEASE_LOST: 3,
  /** Rows of the load do not belong to the slice that the run replaces (G3). */
  STET_OUTSIDE_SLICE: 3,
  /** A pipeline has another cursor, key, source or zone than when its watermark was set (G4). */
  STET_DEFINITION_CHANGED: 3,
  /** A pipeline with `protect` was asked to load its whole table anew. */
  STET_PROTECTED: 3,
  /** A slice that is frozen differs from its source (G12), and the caller asked to fail then. */
  STET_DRIFT: 5,
  /** A constraint of the target refuses a row of the load. */
  STET_CONSTRAINT: 3,
  /** A trigger of the target suppresses or rewrites what was written (G2). */
  STET_TRIGGER: 3,
  /** The outcome would not be the one of the saved plan. */
  STET_PLAN_DIFFERS: 3,
  /** The counts do not add up (G6): a defect of Stet, nothing was committed. */
  STET_COUNTS: 1,
  /** The target was written by a newer Stet. */
  STET_VERSION: 2,
  /** Rows were rejected, more than the pipeline allows (G9). */
  STET_REJECTED: 4,
  /** The connection was lost before the commit was sent; the table is as it was. */
  STET_CONNECTION: 75,
  /** A lock was not to be had in time; the table is as it was. */
  STET_LOCK_TIMEOUT: 75,
  /** The database undid the transaction in favour of another one; the table is as it was. */
  STET_SERIALIZATION: 75,
  /** The answer to the commit was lost and nobody can be asked whether it arrived. */
  STET_OUTCOME_UNKNOWN: 76,
  /** Stopped by a signal or by the caller; the table is as it was. */
  STET_INTERRUPTED: 130,
  /** A defect of Stet. */
  STET_INTERNAL: 1,
} as const

/** One of the documented error codes. */
export type StetErrorCode = keyof typeof EXIT_STATUS_BY_CODE

/** Also for errors of another copy of Stet, which a pipeline file may bring: `instanceof` would not know them. */
export function isStetError(error: unknown): error is StetError {
  if (error instanceof StetError) return true
  return (
    error instanceof Error &&
    error.name === 'StetError' &&
    'code' in error &&
    Object.hasOwn(EXIT_STATUS_BY_CODE, String(error.code))
  )
}

/** What a {@link StetError} carries beside its code and message. */
export interface StetErrorOptions {
  /** The next step for the reader: a command, a statement, a setting. */
  readonly hint?: string
  /** Facts for programs, JSON-safe; never a secret. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/**
 * An error that says what failed, with which value, what was wanted, and the next step.
 *
 * @example
 * throw new StetError('STET_CONFIG', 'Cannot upsert into "sales.orders": the pipeline names no key', {
 *   hint: "Add key: ['order_ref'] to write",
 * })
 */
export class StetError extends Error {
  override readonly name = 'StetError'
  readonly code: StetErrorCode
  readonly hint: string | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(code: StetErrorCode, message: string, options: StetErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
    this.details = options.details
  }

  /** The status with which the command line ends on this error. */
  get exitStatus(): number {
    return EXIT_STATUS_BY_CODE[this.code]
  }

  /** Whether the same command may simply be run again: nothing was changed and the cause may be gone. */
  get retryable(): boolean {
    return this.exitStatus === 75
  }
}
