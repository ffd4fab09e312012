/**
 * What a client sends for one answer: a simple query, or an extended batch up to its Sync, or a COPY with its data.
 * The server ends each with ReadyForQuery, so a unit is the smallest thing whose outcome a client learns at once.
 */
export interface Unit {
  /** 1 for the first unit of the proxy. */
  readonly n: number
  readonly connection: number
  /** The statements as sent, joined by `; `. */
  readonly sql: string
  /** The shape of the statements, see `labelOf`. */
  readonly label: string
  /**
   * Names the unit by its label and those before it in its transaction: the same line of a program in the same place
   * has the same signature in every run.
   */
  readonly signature: string
  /** The number of the first unit of its transaction. */
  readonly transaction: number
  /** Which occurrence of its signature this is, from 1. */
  readonly occurrence: number
  /** What the server said; null until it did. */
  readonly answer: Answer | null
}

export interface Answer {
  /** ReadyForQuery's status: idle (so whatever was done is durable), in a transaction, in a failed one. */
  readonly status: 'I' | 'T' | 'E'
  /** SQLSTATE of the last error. */
  readonly error: string | null
  /** Command tags, such as `INSERT 0 30`. */
  readonly tags: readonly string[]
}

export type MutableUnit = { -readonly [Key in keyof Unit]: Unit[Key] }

/** Which unit a fault waits for: the n-th from now on (1 = the next), or the first that fits. */
export type At = number | ((unit: Unit) => boolean)

/** A fault of the connection, as seen from the client. */
export type Fault = { readonly at: At } & (
  | {
      /**
       * `before`: nothing of the unit reaches the server, which rolls back what was open. `after`: the server has done
       * it, the client never hears (the ambiguous commit). Either way the client sees a reset, not an orderly end.
       */
      readonly cut: 'before' | 'after'
    }
  /** The unit, or the answer to it, waits until `release()`. */
  | { readonly hold: 'before' | 'after' }
  /** The server is in the state it would be in had it raised this SQLSTATE itself. */
  | { readonly error: string }
)

export interface ArmedFault {
  /** Settles when the fault happens; for `after`, when the server has acted. Never settles if that never comes. */
  readonly fired: Promise<Unit>
  readonly hasFired: boolean
  /** Lets a held unit go on. */
  release(): void
  /** Takes the fault back, unless it has fired. */
  disarm(): void
}
