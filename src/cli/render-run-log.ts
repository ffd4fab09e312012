import type { RunCounts, RunLogEntry, RunVerdict } from '../model/run.ts'
import { WHOLE } from '../model/slice.ts'
import { renderRejects } from './render-run.ts'
import { type Colors, cut, escapeForTerminal, escapeLines, layOut, type TableColumn } from './text.ts'
import { countOf, formatBytes, formatDuration, formatMoment, groupDigits } from './words.ts'

const ID_LENGTH_MIN = 8
const NAME_LENGTH_MAX = 40

const COUNTS = [
  'read',
  'inserted',
  'updated',
  'unchanged',
  'deleted',
  'marked',
  'restored',
  'stale',
  'frozen',
  'duplicate',
  'rejected',
  'missing',
  'outside',
  'filtered',
  'added',
] as const satisfies readonly (keyof RunCounts)[]

/** Shown also where all runs have 0: a 0 here is what one looks for. */
const ALWAYS_SHOWN: ReadonlySet<keyof RunCounts> = new Set(['read', 'inserted', 'updated', 'unchanged'])

/** The newest runs, one a line. */
export function renderRunLog(
  entries: readonly RunLogEntry[],
  target: string,
  colors: Colors,
  pipeline?: string,
): string {
  if (entries.length === 0) {
    const whose = pipeline === undefined ? 'runs' : `runs of pipeline "${escapeForTerminal(pipeline)}"`
    return `no ${whose} recorded in ${escapeForTerminal(target)}`
  }
  const counts = COUNTS.filter(
    (name) => ALWAYS_SHOWN.has(name) || entries.some((entry) => (entry.counts?.[name] ?? 0) > 0),
  )
  const withSlices = entries.some((entry) => entry.slice !== WHOLE)
  const ids = shortIds(entries.map((entry) => entry.runId))
  const columns: TableColumn[] = [
    { title: 'run' },
    { title: 'when (UTC)' },
    { title: 'took', align: 'right' },
    { title: 'pipeline' },
    ...(withSlices ? [{ title: 'slice' }] : []),
    { title: 'status' },
    ...counts.map((title) => ({ title, align: 'right' as const })),
    { title: '' },
  ]
  const rows = entries.map((entry, index) => [
    escapeForTerminal(ids[index] ?? ''),
    formatMoment(entry.startedAt),
    entry.durationMs === null ? '' : formatDuration(entry.durationMs),
    escapeForTerminal(cut(entry.pipeline, NAME_LENGTH_MAX)),
    ...(withSlices
      ? [entry.slice === WHOLE ? '' : escapeForTerminal(cut(entry.slice, NAME_LENGTH_MAX))]
      : []),
    paintVerdict(entry.verdict, colors),
    ...counts.map((name) => (entry.counts === null ? '' : groupDigits(entry.counts[name]))),
    entry.error === null ? '' : colors.red(escapeForTerminal(entry.error.code)),
  ])
  const [head = '', ...lines] = layOut(columns, rows)
  return [colors.dim(head), ...lines].join('\n')
}

/** Everything that is known of one run: its attempts, newest first. */
export function renderRunDetails(entries: readonly RunLogEntry[], colors: Colors): string {
  return entries.map((entry) => renderAttempt(entry, colors)).join('\n\n')
}

function renderAttempt(entry: RunLogEntry, colors: Colors): string {
  const facts: [string, string][] = [
    ['run', entry.runId],
    ['attempt', entry.attemptId],
    ['pipeline', entry.pipeline],
    ['table', entry.table],
    ['source', entry.source],
    ['slice', entry.slice],
    ...(entry.window === null ? [] : given('window', describeEnds(entry.window, entry.slice))),
    ...given('logical time', entry.logicalTime),
    ...given('rerun of', entry.rerunOf),
    ...given('code', entry.code === null ? null : `sha256 ${entry.code}`),
    ['strategy', entry.strategy],
    ['truth', entry.truth],
    ['started', entry.startedAt],
    ['finished', entry.finishedAt ?? '(no end recorded)'],
    ['took', entry.durationMs === null ? '' : formatDuration(entry.durationMs)],
    ['by', entry.holder],
    ['stet', entry.stetVersion],
  ]
  const { counts, error } = entry
  return [
    `${colors.bold(escapeForTerminal(entry.pipeline))}: ${paintVerdict(entry.verdict, colors)}`,
    ...indent(facts.map(([name, fact]) => [name, escapeForTerminal(fact)])),
    ...(counts === null ? [] : ['counts', ...indent(allCounts(counts))]),
    ...(entry.files.length === 0 ? [] : ['files', ...indent(entry.files.map(describeFile))]),
    ...renderRejects(entry.rejects, counts?.rejected ?? entry.rejects.length, colors),
    ...(error === null ? [] : [colors.red(`error ${error.code}: ${escapeLines(error.message)}`)]),
  ].join('\n')
}

function given(name: string, fact: string | null): [string, string][] {
  return fact === null ? [] : [[name, fact]]
}

function describeEnds({ from, to }: NonNullable<RunLogEntry['window']>, slice: string): string {
  if (slice !== WHOLE && from === null && to === null) return `the slice ${slice}`
  return `${from ?? 'the beginning'} to ${to ?? 'the end'}`
}

function allCounts(counts: RunCounts): string[][] {
  const terms: (keyof RunCounts)[] = [
    'read',
    'outside',
    'filtered',
    'added',
    'afterTransform',
    'rejected',
    'duplicate',
    'inserted',
    'updated',
    'unchanged',
    'stale',
    'frozen',
    'deleted',
    'marked',
    'restored',
    'missing',
  ]
  return terms.map((term) => [
    term === 'afterTransform' ? 'after transform' : term,
    groupDigits(counts[term]),
  ])
}

function describeFile(file: RunLogEntry['files'][number]): string[] {
  const path = file.path === '-' ? 'standard input' : file.path
  return [
    escapeForTerminal(path),
    `${formatBytes(file.bytes)} (${countOf(file.bytes, 'byte')})`,
    `sha256 ${file.sha256}`,
  ]
}

function indent(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(0, ...rows.map((row) => row.length))
  const [, ...lines] = layOut(
    Array.from({ length: width }, () => ({ title: '' })),
    rows,
  )
  return lines.map((line) => `  ${line}`)
}

function paintVerdict(verdict: RunVerdict, colors: Colors): string {
  switch (verdict) {
    case 'changed':
      return colors.green(verdict)
    case 'unchanged':
      return verdict
    case 'nothing read':
    case 'running':
      return colors.yellow(verdict)
    case 'failed':
    case 'interrupted':
      return colors.red(verdict)
    default:
      return verdict satisfies never
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Made-up ids cut to the shortest beginning that no other listed run has, which `stet runs show` takes; ids that
 * somebody gave stay whole.
 */
export function shortIds(ids: readonly string[]): string[] {
  const made = [...new Set(ids.filter((id) => UUID.test(id)))]
  let length = ID_LENGTH_MIN
  while (new Set(made.map((id) => id.slice(0, length))).size < made.length) length++
  return ids.map((id) => (UUID.test(id) ? id.slice(0, length) : id))
}
