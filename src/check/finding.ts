/** What a rerun does to the data. */
export type Anomaly = 'doubled' | 'lost' | 'touched' | 'moved' | 'gap' | 'different'

/**
 * `unsafe`: a second run changes the result. `window`: the end state heals, but a crash or a reader in between sees a
 * gap. `info`: a hint. Kept apart, because a window called unsafe is what makes people switch a linter off.
 */
type FindingClass = 'unsafe' | 'window' | 'info'

/** How bad it is, if it is so. */
export type Severity = 'error' | 'warning' | 'info'

/** How sure it is. Low where the key of a table or the caller is unknown. */
export type Confidence = 'high' | 'medium' | 'low'

export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

export interface Fix {
  readonly title: string
  readonly edits: readonly Edit[]
  /** The edit changes no result of a first run and may be applied by `--fix`; otherwise it is printed as a patch. */
  readonly safe: boolean
}

/** What a rule says about one place of a file. */
export interface Report {
  readonly start: number
  readonly end: number
  /** One sentence: what happens on the second run, and why. */
  readonly message: string
  readonly class: FindingClass
  readonly severity: Severity
  readonly confidence: Confidence
  readonly advice?: string
  readonly fix?: Fix
}

export interface Position {
  readonly line: number
  readonly column: number
}

export interface Finding extends Report {
  readonly rule: string
  readonly anomaly: Anomaly
  readonly path: string
  readonly from: Position
  readonly to: Position
  readonly advice: string
  /** Stays the same when lines move: rule, path, the statement without spaces, ordinal. */
  readonly fingerprint: string
  readonly suppressed?: { readonly reason: string; readonly by: 'comment' | 'baseline' }
  readonly witness?: WitnessResult
}

/** Rows and runs in an embedded database that show the fault, or fail to. */
export interface WitnessResult {
  readonly shown: boolean
  readonly lines: readonly string[]
}
