import type { PlanSample } from '../model/comparison.ts'
import type { RunCounts, Truth } from '../model/run.ts'
import { WHOLE } from '../model/slice.ts'
import type { Missing, WriteStrategy } from '../model/write.ts'
import { hasChanges } from '../pipeline/changes.ts'
import type { Plan } from '../pipeline/types.ts'
import {
  describeReading,
  describeTable,
  describeWindow,
  renderInferredColumns,
  renderRejects,
} from './render-run.ts'
import {
  type Colors,
  displayWidth,
  escapeForTerminal,
  escapeLines,
  layOut,
  padEnd,
  showValue,
} from './text.ts'
import { countOf, groupDigits } from './words.ts'

const SAMPLES_SHOWN = 10

/** In words, for people who have to decide whether the plan may run. */
const STRATEGIES = {
  upsert: 'new keys are inserted, changed rows are updated, equal rows are left alone',
  'insert-once': 'new keys are inserted, rows that are there never change, no row is deleted',
  'replace-table': 'the table will hold the rows of this load and no others',
  'replace-partition': 'the slice will hold the rows of this load',
} as const satisfies Record<WriteStrategy['strategy'], string>

const MISSING = {
  keep: 'no row is deleted',
  delete: 'rows that the load does not have are deleted',
  mark: 'rows that the load does not have are marked as gone',
} as const satisfies Record<Missing, string>

const TRUTHS = {
  source: 'the target follows the source',
  snapshot: 'what the first finished run wrote stays as it is; new keys are inserted',
} as const satisfies Record<Truth, string>

/** What a run would do: counts of every term, a sample of the changes, and with `sql` the statements. */
export function renderPlan(plan: Plan, colors: Colors, options: { readonly sql: boolean }): string {
  return [
    `${colors.bold('plan')} ${colors.bold(escapeForTerminal(plan.pipeline))} → ${describeTable(plan)}${plan.creates ? colors.green(' (the table will be created)') : ''}`,
    `${describeReading(plan.source, plan.files, plan.counts)}`,
    `strategy ${plan.strategy}: ${describeStrategy(plan)}`,
    `truth ${plan.truth}: ${TRUTHS[plan.truth]}`,
    ...describeWhereabouts(plan).map((line) => (plan.frozen ? colors.yellow(line) : line)),
    '',
    ...renderCounts(plan.counts).map((line) => `  ${line}`),
    '',
    ...renderSamples(plan, colors),
    ...renderRejects(plan.rejects, plan.counts.rejected, colors),
    ...renderInferredColumns(plan.columns, colors),
    ...(options.sql ? renderStatements(plan.statements, colors) : []),
    colors.dim(
      hasChanges(plan)
        ? `nothing was changed; a run would ${plan.obstacle === null ? 'do the above' : 'be refused as the table is now'}`
        : 'nothing was changed, and a run would change nothing',
    ),
  ].join('\n')
}

function describeStrategy({ strategy, missing, frozen }: Plan): string {
  const words = STRATEGIES[strategy]
  if (strategy === 'upsert') return `${words}, ${MISSING[missing]}`
  if (strategy !== 'replace-partition') return words
  // What is deleted is what the slice will not hold any more.
  const others = missing === 'delete' || frozen ? '' : ` and those that it has, ${MISSING[missing]}`
  return `${words}${others}; the rest of the table is not looked at`
}

/** `2026-05-02: 2 rows → 0 rows`, the window of the cursor and the watermark. */
function describeWhereabouts(plan: Plan): string[] {
  const { rows, slice } = plan
  const name = slice === WHOLE ? 'table' : `slice ${escapeForTerminal(slice)}`
  return [
    ...(rows !== null
      ? [`${name}: ${countOf(rows.before, 'row')} → ${countOf(rows.after, 'row')}`]
      : slice === WHOLE
        ? []
        : [name]),
    ...(plan.frozen ? [`${name} is frozen: rows that are there stay as they are (G12)`] : []),
    ...describeWindow(plan),
  ]
}

/** Every term of G6, and what is counted apart from it. */
function renderCounts(counts: RunCounts): string[] {
  const rows: [string, number, string][] = [
    ['read', counts.read, ''],
    ...ifAny('outside', counts.outside, 'not in the window that is read'),
    ['filtered', counts.filtered, 'dropped by the transform'],
    ['added', counts.added, 'made by the transform'],
    ['after transform', counts.afterTransform, '= the sum of the next seven'],
    ['rejected', counts.rejected, 'cannot be loaded as they are'],
    ['duplicate', counts.duplicate, 'another row of this load has their key'],
    ['inserted', counts.inserted, 'new keys'],
    ['updated', counts.updated, 'the row there differs'],
    ['unchanged', counts.unchanged, 'the row there is equal; it is not touched'],
    ['stale', counts.stale, 'the row there is newer'],
    ['frozen', counts.frozen, 'the row there differs and stays'],
    ['deleted', counts.deleted, 'there, but not in this load'],
    ...ifAny('marked', counts.marked, 'there, but not in this load: marked as gone'),
    ...ifAny('restored', counts.restored, 'of the updated: were marked as gone'),
    ...ifAny('missing', counts.missing, 'in the frozen slice, but not in this load; they stay'),
  ]
  const [, ...lines] = layOut(
    [{ title: '' }, { title: '', align: 'right' }, { title: '' }],
    rows.map(([term, count, meaning]) => [term, groupDigits(count), count > 0 ? meaning : '']),
  )
  return lines
}

function ifAny(term: string, count: number, meaning: string): [string, number, string][] {
  return count === 0 ? [] : [[term, count, meaning]]
}

const SIGNS = { insert: '+', update: '~', delete: '-', mark: '-', drift: '!' } as const satisfies Record<
  PlanSample['op'],
  string
>

function renderSamples(plan: Plan, colors: Colors): string[] {
  const samples = plan.samples.slice(0, SAMPLES_SHOWN)
  if (samples.length === 0) return []
  const { inserted, updated, deleted, marked } = plan.counts
  const drift = plan.frozen ? plan.counts.frozen : 0
  const changes = inserted + updated + deleted + marked + drift
  const title =
    samples.length < changes
      ? `${samples.length} of ${countOf(changes, 'change')}:`
      : `${countOf(changes, 'change')}:`
  return [title, ...samples.flatMap((sample) => renderSample(sample, colors)), '']
}

/** A row: its key, then each changed column with old and new values under one another. */
function renderSample(sample: PlanSample, colors: Colors): string[] {
  const paint = {
    insert: colors.green,
    update: colors.yellow,
    delete: colors.red,
    mark: colors.red,
    drift: colors.magenta,
  }[sample.op]
  const key = Object.entries(sample.key)
    .map(([name, value]) => `${escapeForTerminal(name)}=${showValue(value)}`)
    .join(' ')
  const names = sample.changes.map((change) => escapeForTerminal(change.column))
  const nameWidth = Math.max(0, ...names.map(displayWidth))
  const froms = sample.changes.map((change) => showValue(change.from))
  const fromWidth = Math.max(0, ...froms.map(displayWidth))
  const lines = sample.changes.map((change, index) => {
    const name = padEnd(names[index] ?? '', nameWidth)
    const from = froms[index] ?? ''
    switch (sample.op) {
      case 'insert':
        return `      ${name}  ${showValue(change.to)}`
      case 'delete':
      case 'mark':
        return `      ${name}  ${from}`
      case 'update':
      case 'drift':
        return `      ${name}  ${padEnd(from, fromWidth)} → ${showValue(change.to)}`
      default:
        return sample.op satisfies never
    }
  })
  return [paint(`  ${SIGNS[sample.op]} ${sample.op} ${key}`.trimEnd()), ...lines]
}

function renderStatements(statements: readonly string[], colors: Colors): string[] {
  if (statements.length === 0) return ['statements: none', '']
  return [
    'statements:',
    ...statements.flatMap((statement) => [
      ...escapeLines(statement)
        .split('\n')
        .map((line) => colors.cyan(`  ${line}`)),
      '',
    ]),
  ]
}
