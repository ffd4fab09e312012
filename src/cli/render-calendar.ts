import type { SliceCalendar, SliceState, SliceStatus } from '../pipeline/calendar.ts'
import { type Colors, escapeForTerminal, layOut } from './text.ts'
import { formatMoment, groupDigits } from './words.ts'

/** A letter for each state, so that it can be read without colours and by those who cannot tell them apart. */
const SIGNS = {
  loaded: 'L',
  empty: 'e',
  failed: 'F',
  running: 'R',
  frozen: 'Z',
  missing: '.',
} as const satisfies Record<SliceState, string>

const MEANINGS = {
  loaded: 'loaded',
  empty: 'empty (finished, nothing read)',
  failed: 'failed',
  running: 'running',
  frozen: 'frozen',
  missing: 'missing',
} as const satisfies Record<SliceState, string>

/** Where every slice stands: days as months, hours as days, months as years, others as a list. */
export function renderCalendar(pipeline: string, calendar: SliceCalendar, colors: Colors): string {
  const { slices } = calendar
  if (slices.length === 0) return `no slice of pipeline "${escapeForTerminal(pipeline)}" is on record`
  return [
    colors.bold(escapeForTerminal(pipeline)),
    ...gridOf(calendar, colors),
    '',
    renderLegend(slices, colors),
    ...renderFailed(slices, colors),
  ].join('\n')
}

function gridOf({ slicing: { size }, slices }: SliceCalendar, colors: Colors): string[] {
  if (size === 'day') return months(slices, colors)
  if (size === 'hour') return days(slices, colors)
  if (size === 'month') return years(slices, colors)
  return list(slices, colors)
}

function signOf({ state }: SliceStatus, colors: Colors): string {
  return painterOf(state, colors)(SIGNS[state])
}

function painterOf(state: SliceState, colors: Colors): (text: string) => string {
  switch (state) {
    case 'loaded':
      return colors.green
    case 'empty':
    case 'running':
      return colors.yellow
    case 'failed':
      return colors.red
    case 'frozen':
      return colors.cyan
    case 'missing':
      return colors.dim
    default:
      return state satisfies never
  }
}

const WEEKDAYS = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su']

/** A block for each month, a row for each week from Monday on: the day and the letter of its state. */
function months(slices: readonly SliceStatus[], colors: Colors): string[] {
  return [...groupBy(slices, ({ slice }) => slice.slice(0, 7))].flatMap(([month, ofMonth]) => {
    const weeks: string[][] = []
    for (const status of ofMonth) {
      const weekday = (new Date(`${status.slice}T00:00:00Z`).getUTCDay() + 6) % 7
      let week = weeks.at(-1)
      if (week === undefined || weekday === 0) {
        week = Array.from({ length: weekday }, () => '   ')
        weeks.push(week)
      }
      week.push(`${String(Number(status.slice.slice(8)))}`.padStart(2) + signOf(status, colors))
    }
    const head = WEEKDAYS.map((name) => name.padStart(2).padEnd(3)).join('  ')
    return [
      '',
      colors.bold(month),
      colors.dim(`  ${head}`.trimEnd()),
      ...weeks.map((week) => `  ${week.join('  ')}`),
    ]
  })
}

/** A row for each day, a letter for each hour; an hour that comes twice stands at the end. */
function days(slices: readonly SliceStatus[], colors: Colors): string[] {
  const rows = [...groupBy(slices, ({ slice }) => slice.slice(0, 10))].map(([day, ofDay]) => {
    const hours = Array.from({ length: 24 }, () => ' ')
    const again: string[] = []
    for (const status of ofDay) {
      if (status.slice.length === 13) hours[Number(status.slice.slice(11, 13))] = signOf(status, colors)
      else again.push(`${status.slice.slice(10)} ${signOf(status, colors)}`)
    }
    return [`  ${day}  ${hours.join('')}`.trimEnd(), ...again].join('  ')
  })
  return ['', colors.dim(`  ${' '.repeat(10)}  ${'0     6     12    18'}`), ...rows]
}

/** A row for each year, a letter for each month. */
function years(slices: readonly SliceStatus[], colors: Colors): string[] {
  const rows = [...groupBy(slices, ({ slice }) => slice.slice(0, 4))].map(([year, ofYear]) => {
    const signs = Array.from({ length: 12 }, () => ' ')
    for (const status of ofYear) signs[Number(status.slice.slice(5)) - 1] = signOf(status, colors)
    return `  ${year}  ${signs.map((sign) => ` ${sign}`).join('  ')}`.trimEnd()
  })
  const head = Array.from({ length: 12 }, (_, month) => String(month + 1).padStart(2, '0')).join('  ')
  return ['', colors.dim(`  ${' '.repeat(4)}  ${head}`), ...rows]
}

function list(slices: readonly SliceStatus[], colors: Colors): string[] {
  const rows = slices.map((status) => [
    `  ${signOf(status, colors)}`,
    escapeForTerminal(status.slice),
    status.rows === null ? '' : groupDigits(status.rows),
    status.loadedAt === null ? '' : formatMoment(status.loadedAt),
  ])
  const [head = '', ...lines] = layOut(
    [{ title: '' }, { title: 'slice' }, { title: 'rows', align: 'right' }, { title: 'loaded (UTC)' }],
    rows,
  )
  return ['', colors.dim(head), ...lines]
}

function renderLegend(slices: readonly SliceStatus[], colors: Colors): string {
  const states = Object.keys(SIGNS) as SliceState[]
  return states
    .map((state) => [state, slices.filter((status) => status.state === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(
      ([state, count]) =>
        `${painterOf(state, colors)(SIGNS[state])} ${groupDigits(count)} ${MEANINGS[state]}`,
    )
    .join('   ')
}

const FAILED_SHOWN = 20

function renderFailed(slices: readonly SliceStatus[], colors: Colors): string[] {
  const failed = slices.filter(({ state }) => state === 'failed')
  const more = failed.length - FAILED_SHOWN
  return [
    ...failed
      .slice(0, FAILED_SHOWN)
      .map(({ slice, error }) => colors.red(`failed: ${escapeForTerminal(slice)} ${error ?? 'interrupted'}`)),
    ...(more > 0 ? [`… and ${groupDigits(more)} more`] : []),
  ]
}

function groupBy<T>(values: readonly T[], keyOf: (value: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return groups
}
