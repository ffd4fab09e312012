import type { RunCounts } from '../model/run.ts'
import { WHOLE } from '../model/slice.ts'
import type { Reject, SourceFile } from '../model/source.ts'
import type { WriteStrategy } from '../model/write.ts'
import type { RunResult } from '../pipeline/types.ts'
import { formatColumns, quoteForShell } from './columns-option.ts'
import { type Colors, cut, escapeForTerminal, showValue } from './text.ts'
import { countOf, formatBytes, formatDuration, groupDigits } from './words.ts'

const REJECTS_SHOWN = 10

/** The account of a finished run, for people. */
export function renderRun(result: RunResult, colors: Colors): string {
  const { counts } = result
  return [
    `${describeReading(result.source, result.files, counts)}`,
    `${colors.bold(escapeForTerminal(describeName(result)))} → ${describeTable(result)}: ${describeOutcome(result, colors)}`,
    ...explainNotWritten(result).map((line) => colors.dim(line)),
    ...describeDrift(result, colors),
    ...describeWindow(result).map((line) => colors.dim(line)),
    ...renderInferredColumns(result.columns, colors),
    ...renderRejects(result.rejects, counts.rejected, colors),
    colors.dim(`took ${formatDuration(result.durationMs)}, run ${escapeForTerminal(result.runId)}`),
  ].join('\n')
}

/** `stet.duckdb "orders"`; a name of two parts, or with quotes of its own, stays as it was written. */
export function describeTable(place: { readonly target: string; readonly table: string }): string {
  const table = escapeForTerminal(place.table)
  return `${escapeForTerminal(place.target)} ${/[".]/.test(table) ? table : `"${table}"`}`
}

/** `read 1,001 rows from orders.csv (115 MB), 4 dropped by the transform`. */
export function describeReading(source: string, files: readonly SourceFile[], counts: RunCounts): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const size = files.length === 0 ? '' : ` (${formatBytes(bytes)})`
  const [file] = files
  const from =
    file === undefined
      ? escapeForTerminal(source)
      : files.length === 1
        ? escapeForTerminal(file.path === '-' ? 'standard input' : file.path)
        : countOf(files.length, 'file')
  const transformed = [
    ...(counts.outside > 0 ? [`, ${groupDigits(counts.outside)} outside the window`] : []),
    ...(counts.filtered > 0 ? [`, ${groupDigits(counts.filtered)} dropped by the transform`] : []),
    ...(counts.added > 0 ? [`, ${groupDigits(counts.added)} added by the transform`] : []),
  ]
  return `read ${countOf(counts.read, 'row')} from ${from}${size}${transformed.join('')}`
}

function describeOutcome(result: RunResult, colors: Colors): string {
  const { counts, verdict } = result
  if (verdict === 'nothing read') {
    const why =
      counts.outside === 0
        ? 'the source holds no rows'
        : `no row of the source is in the ${result.slice === WHOLE ? 'window' : 'slice'}`
    return `${colors.yellow('nothing read')}, ${why} and the ${result.slice === WHOLE ? 'table' : 'slice'} is as it was`
  }
  const words = describeCounts(counts, result.strategy)
  const kept = counts.unchanged > 0 ? colors.dim(' (unchanged rows were not touched)') : ''
  return `${verdict === 'changed' ? colors.green(words) : words}${kept}`
}

/** `orders`, `orders 2026-08-07`. */
function describeName({ pipeline, slice }: RunResult): string {
  return slice === WHOLE ? pipeline : `${pipeline} ${slice}`
}

/** What was read by the cursor, and how far the pipeline has come. */
export function describeWindow({
  window,
  watermark,
  slice,
}: Pick<RunResult, 'window' | 'watermark' | 'slice'>): string[] {
  if (window === null) return []
  if (slice !== WHOLE) {
    const stays = watermark === null ? 'is not set' : `stays ${escapeForTerminal(watermark)}`
    return [`window the slice ${escapeForTerminal(slice)}; the watermark ${stays}`]
  }
  const from = window.from === null ? 'the beginning' : escapeForTerminal(window.from)
  const to = window.to === null ? 'the end' : escapeForTerminal(window.to)
  return [
    `window ${from} to ${to}`,
    `watermark ${watermark === null ? 'not set yet' : escapeForTerminal(watermark)}`,
  ]
}

/** A frozen slice, and how far its source has gone from it. */
function describeDrift({ frozen, counts, drift, slice }: RunResult, colors: Colors): string[] {
  if (!frozen) return []
  const name = slice === WHOLE ? 'the table' : `slice ${escapeForTerminal(slice)}`
  const gone = counts.missing > 0 ? `, ${groupDigits(counts.missing)} not in the source any more` : ''
  if (counts.frozen + counts.missing === 0) return [colors.dim(`${name} is frozen and as its source is`)]
  return [
    colors.yellow(
      `${name} is frozen and its source has drifted: ${groupDigits(counts.frozen)} differ${gone}`,
    ),
    ...drift.map((sample) => `  ${escapeForTerminal(describeSample(sample))}`),
  ]
}

/** `order_ref=A-1  status open → paid`: a row of a frozen slice and what its source has now. */
export function describeSample({ key, changes }: RunResult['drift'][number]): string {
  const row = Object.entries(key).map(([name, value]) => `${name}=${showValue(value)}`)
  const differing = changes.map(({ column, from, to }) => `${column} ${showValue(from)} → ${showValue(to)}`)
  return [row.join(' '), differing.join(', ')].filter((part) => part !== '').join('  ')
}

/** The words for rows that differ from the table and were not written all the same; nobody has to know them by heart. */
function explainNotWritten({ counts, frozen }: RunResult): string[] {
  if (frozen) return []
  return [
    ...(counts.stale > 0 ? ['stale: older than the row in the table, not written'] : []),
    ...(counts.frozen > 0 ? ['frozen: different from the row in the table, which is never changed'] : []),
  ]
}

/** `1 inserted, 2 updated, 997 unchanged, 1 duplicate dropped`: what a strategy can do always, the rest when it is there. */
export function describeCounts(counts: RunCounts, strategy: WriteStrategy['strategy']): string {
  const parts = [`${groupDigits(counts.inserted)} inserted`]
  if (strategy !== 'insert-once' || counts.updated > 0) parts.push(`${groupDigits(counts.updated)} updated`)
  if (strategy === 'replace-table' || strategy === 'replace-partition' || counts.deleted > 0)
    parts.push(`${groupDigits(counts.deleted)} deleted`)
  if (counts.marked > 0) parts.push(`${groupDigits(counts.marked)} marked as gone`)
  if (counts.restored > 0) parts.push(`${groupDigits(counts.restored)} of the updated restored`)
  parts.push(`${groupDigits(counts.unchanged)} unchanged`)
  if (counts.frozen > 0) parts.push(`${groupDigits(counts.frozen)} frozen`)
  if (counts.stale > 0) parts.push(`${groupDigits(counts.stale)} stale`)
  if (counts.duplicate > 0) parts.push(`${countOf(counts.duplicate, 'duplicate')} dropped`)
  if (counts.rejected > 0) parts.push(`${groupDigits(counts.rejected)} rejected`)
  return parts.join(', ')
}

/** The types that a first load chose, and the option that pins them: all columns, as the option is what is loaded. */
export function renderInferredColumns(columns: RunResult['columns'], colors: Colors): string[] {
  if (!columns.some((column) => column.origin === 'inferred')) return []
  return [
    'types were inferred from this first load; from now on the table decides. To pin them before a load:',
    `  ${colors.cyan(`--columns ${quoteForShell(escapeForTerminal(formatColumns(columns)))}`)}`,
  ]
}

/** `file:line column value reason`, the first ten and how many more there are. */
export function renderRejects(rejects: readonly Reject[], total: number, colors: Colors): string[] {
  if (rejects.length === 0) return []
  const shown = rejects.slice(0, REJECTS_SHOWN).map((reject) => `  ${renderReject(reject, colors)}`)
  // A row may have several faults, and only the first rejects are kept: neither number bounds the other.
  const more = Math.max(total, rejects.length) - shown.length
  return [
    colors.yellow(`${countOf(total, 'row')} rejected:`),
    ...shown,
    ...(more > 0 ? [`  … and ${groupDigits(more)} more`] : []),
  ]
}

function renderReject(reject: Reject, colors: Colors): string {
  const place = [reject.file, reject.line].filter((part) => part !== null).join(':')
  const parts = [
    ...(place === '' ? [] : [escapeForTerminal(place)]),
    ...(reject.column === null
      ? []
      : [colors.bold(`${escapeForTerminal(reject.column)}=${showValue(reject.value)}`)]),
    escapeForTerminal(cut(reject.reason, 300)),
  ]
  return parts.join('  ')
}
