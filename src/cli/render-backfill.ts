import type { RunVerdict } from '../model/run.ts'
import type {
  BackfillPlan,
  BackfillProgress,
  BackfillResult,
  SliceOutcome,
  SlicePlan,
} from '../pipeline/backfill.ts'
import { hasChanges } from '../pipeline/changes.ts'
import { quoteForShell } from './columns-option.ts'
import { failureOf } from './failure.ts'
import { describeCounts, describeTable } from './render-run.ts'
import { type Colors, escapeForTerminal, layOut, padEnd } from './text.ts'
import { countOf, formatDuration, groupDigits } from './words.ts'

/** A command line as a person can paste it. */
export function commandFor(command: string, file: string, options: readonly string[]): string {
  return ['stet', command, file, ...options].map(quoteForShell).join(' ')
}

/** One line as a slice ends: `[ 3/31] 2026-08-09  changed  12 inserted, 0 updated, …`. */
export function renderOutcome(
  outcome: SliceOutcome,
  { ended, total }: BackfillProgress,
  colors: Colors,
): string {
  const place = `[${String(ended).padStart(String(total).length)}/${total}]`
  const words = [`${colors.dim(place)} ${escapeForTerminal(outcome.slice)}`, describeOutcome(outcome, colors)]
  return words.join('  ')
}

function describeOutcome({ status, reason, result, error }: SliceOutcome, colors: Colors): string {
  if (result !== null) {
    const { verdict, counts, strategy, durationMs } = result
    const drift = result.frozen ? `, frozen: ${groupDigits(counts.frozen + counts.missing)} drifted` : ''
    return `${padEnd(paint(verdict, colors), 'nothing read'.length)}  ${describeCounts(counts, strategy)}${drift}  ${colors.dim(formatDuration(durationMs))}`
  }
  if (status === 'skipped') return colors.dim(`left out, ${reason ?? ''}`)
  if (status === 'failed') return `${colors.red('failed')}  ${failureOf(error).code}`
  return colors.red(status)
}

function paint(verdict: RunVerdict, colors: Colors): string {
  if (verdict === 'changed') return colors.green(verdict)
  return verdict === 'nothing read' ? colors.yellow(verdict) : verdict
}

/** What a backfill has come to, the slices that failed, and what to do about them. */
export function renderBackfill(
  done: BackfillResult,
  colors: Colors,
  commands: { readonly again: string | null; readonly goOn: string | null },
): string {
  const { slices } = done
  const verdicts = ['changed', 'unchanged', 'nothing read'] as const
  const counted = [
    ...verdicts.map(
      (word) => [slices.filter(({ result }) => result?.verdict === word).length, word] as const,
    ),
    ...(['skipped', 'failed', 'interrupted', 'not started'] as const).map(
      (word) =>
        [
          slices.filter(({ status }) => status === word).length,
          word === 'skipped' ? 'left out' : word,
        ] as const,
    ),
  ]
  const words = counted.filter(([count]) => count > 0).map(([count, word]) => `${groupDigits(count)} ${word}`)
  const failed = slices.filter(({ status }) => status === 'failed')
  return [
    `${colors.bold(escapeForTerminal(done.pipeline))} → ${describeTable(done)}: ${countOf(slices.length, 'slice')}: ${words.join(', ') || 'none'}`,
    ...(failed.length === 0 ? [] : [colors.red('failed:'), ...renderFailed(failed)]),
    ...(commands.again === null
      ? []
      : [`to run just these again:\n  ${colors.cyan(escapeForTerminal(commands.again))}`]),
    ...(commands.goOn === null
      ? []
      : [
          `to go on (a slice that is done is compared and not written):\n  ${colors.cyan(escapeForTerminal(commands.goOn))}`,
          'with --only missing it passes over every slice that has ever been loaded, which is cheaper on a first fill',
        ]),
  ].join('\n')
}

function renderFailed(failed: readonly SliceOutcome[]): string[] {
  const [, ...lines] = layOut(
    [{ title: '' }, { title: '' }],
    failed.map(({ slice, error }) => [escapeForTerminal(slice), failureOf(error).code]),
  )
  return lines.map((line) => `  ${line}`)
}

/** The slices of a backfill with the verdict that each would have. */
export function renderSlicePlans(planned: BackfillPlan, colors: Colors): string {
  const rows = planned.slices.map((slice) => [
    escapeForTerminal(slice.slice),
    slice.state,
    verdictToBe(slice, colors),
    slice.plan === null || slice.plan.rows === null
      ? ''
      : `${countOf(slice.plan.rows.before, 'row')} → ${countOf(slice.plan.rows.after, 'row')}`,
    slice.plan === null ? (slice.reason ?? '') : describeCounts(slice.plan.counts, slice.plan.strategy),
  ])
  const columns = ['slice', 'now', 'would be', 'rows', ''].map((title) => ({ title }))
  const [head = '', ...lines] = layOut(columns, rows)
  const chosen = planned.slices.filter(({ status }) => status !== 'skipped').length
  return [
    `${colors.bold('plan')} backfill ${colors.bold(escapeForTerminal(planned.pipeline))} → ${describeTable(planned)}: ${countOf(chosen, 'slice')} of ${groupDigits(planned.slices.length)}`,
    colors.dim(head),
    ...lines,
    colors.dim('nothing was changed; a backfill would do the above'),
  ].join('\n')
}

function verdictToBe({ status, plan }: SlicePlan, colors: Colors): string {
  if (status === 'failed') return colors.red('failed')
  if (plan === null) return colors.dim(status === 'skipped' ? 'left out' : status)
  // As the table is now: an earlier slice of the backfill may take the obstacle out of the way.
  if (plan.obstacle !== null) return colors.yellow('refused now')
  if (hasChanges(plan)) return colors.green('changed')
  return plan.counts.read - plan.counts.outside === 0 ? colors.yellow('nothing read') : 'unchanged'
}
