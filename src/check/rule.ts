import type { FileFacts, ProjectFacts } from './facts.ts'
import type { Anomaly, Report } from './finding.ts'

/** A small file, and the lines on which the rule has to speak. Shown on the rule's page and run by its test. */
export interface Example {
  /** What it shows, as the reason why it is or is not a fault. */
  readonly why: string
  readonly path: string
  readonly code: string
  /** Lines of the findings; none for code that only looks like the fault. */
  readonly lines: readonly number[]
  /** Other files of the repository that the answer depends on. */
  readonly beside?: Readonly<Record<string, string>>
}

interface SafeForm {
  /** Dialect or framework. */
  readonly for: string
  readonly code: string
}

export interface Rule {
  readonly id: string
  /** What to do, as one imperative line. */
  readonly title: string
  /** What a rerun does to the data; `stet prove` shows the same word. */
  readonly anomaly: Anomaly
  readonly tier: 1 | 2 | 3
  /** `auto`: `--fix` may apply it; `suggestion`: printed as a patch; `advice`: only told. */
  readonly fix: 'auto' | 'suggestion' | 'advice'
  /** Why a rerun breaks it. */
  readonly problem: string
  /** The safe form in one line, printed with each finding. */
  readonly advice: string
  readonly safeForms: readonly SafeForm[]
  /** How `stet prove` can show it. */
  readonly prove: string
  readonly bad: readonly Example[]
  /** Code that looks like the fault and is not: the traps of the rule. */
  readonly fine: readonly Example[]
  /** When the rule cannot know. */
  readonly limits: string
  check(file: FileFacts, project: ProjectFacts): Iterable<Report>
}
