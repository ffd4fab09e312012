import { Temporal } from 'temporal-polyfill'
import { StetError } from '../errors.ts'
import type { Slice, SliceSize, Slicing } from '../model/slice.ts'
import { groupDigits } from '../model/words.ts'

/** The most slices that one command enumerates: fifty years of days. */
const SLICES_MAX = 20_000
const VALUE_BYTES_MAX = 200
/** Later years are written in ways that databases do not read alike. */
const YEAR_MAX = 9999
/** The end of the last slice of the last year. */
const INFINITY = 'infinity'
const HOURS_OF_SIZE = { hour: 1, day: 24, month: 24 * 28 } as const

const NAME_OF_SIZE = {
  hour: /^\d{4}-\d{2}-\d{2}T\d{2}([+-]\d{2}:\d{2}|Z)?$/,
  day: /^\d{4}-\d{2}-\d{2}$/,
  month: /^\d{4}-\d{2}$/,
} as const

const EXAMPLE_OF_SIZE = { hour: '2026-08-07T13', day: '2026-08-07', month: '2026-08' } as const

/**
 * The slice of a name: `2026-08-07T13` (an hour, by the wall clock of the zone; the second of two equal ones as
 * `2026-11-01T01-05:00`), `2026-08-07`, `2026-08`, any text for size `value`, the first number of a range.
 *
 * @throws {StetError} `STET_USAGE` when the name is none of a slice of this size, or names an hour that the zone skips.
 * @example
 * sliceOf({ by: 'event_date', size: 'day', zone: 'Asia/Seoul' }, '2026-08-07').bounds
 */
export function sliceOf(slicing: Slicing, name: string): Slice {
  const { by, size } = slicing
  if (size === 'value') {
    requireNameable(by, name)
    return { name, by, bounds: { kind: 'value', value: name } }
  }
  if (typeof size === 'object') return rangeOf(by, size.range, name)
  const from = startOf(slicing, size, name)
  return timeSlice(slicing, size, from)
}

/**
 * The slice that a moment falls into, by the zone's wall clock.
 *
 * @param at ISO 8601 with an offset; an orchestrator's logical date.
 * @throws {StetError} `STET_USAGE` when `at` is no instant, or slices are not of time.
 */
export function sliceAt(slicing: Slicing, at: string): Slice {
  const { size } = slicing
  if (size === 'value' || typeof size === 'object') {
    throw new StetError(
      'STET_USAGE',
      `Slices of ${slicing.by} are not of time, so ${at} names none of them`,
      {
        hint: `Name the slice itself: --slice ${size === 'value' ? 'VALUE' : '1000'}`,
      },
    )
  }
  const moment = instantOf(at).toZonedDateTimeISO(slicing.zone)
  return timeSlice(slicing, size, floor(moment, size))
}

/**
 * Every slice from the one that `from` names or falls into to the one of `to`, both included, oldest first.
 *
 * @throws {StetError} `STET_USAGE` when `to` is before `from`, when there would be more than 20,000, or for size `value`.
 */
export function slicesBetween(slicing: Slicing, from: string, to: string): Slice[] {
  const { by, size } = slicing
  if (size === 'value') {
    throw new StetError(
      'STET_USAGE',
      `Slices of ${by} are single values: there is nothing between "${from}" and "${to}"`,
      {
        hint: 'Name them: --slice KR --slice JP',
      },
    )
  }
  if (typeof size === 'object') return rangesBetween(by, size.range, from, to)
  const first = startOf(slicing, size, from)
  const last = startOf(slicing, size, to)
  if (Temporal.ZonedDateTime.compare(first, last) > 0) throw backwards(from, to)
  const hoursBetween = (last.epochMilliseconds - first.epochMilliseconds) / 3_600_000
  if (hoursBetween / HOURS_OF_SIZE[size] > SLICES_MAX) throw tooMany(from, to)
  const slices: Slice[] = []
  for (let start = first; Temporal.ZonedDateTime.compare(start, last) <= 0; start = next(start, size)) {
    slices.push(timeSlice(slicing, size, start))
  }
  return slices
}

/** Whether a slice has ended at a moment; one of values or numbers never waits for a clock. */
export function hasEnded(slice: Slice, now: Date): boolean {
  if (slice.bounds.kind !== 'time') return true
  const { instant } = slice.bounds.to
  return (
    instant !== INFINITY && Temporal.Instant.compare(instantOf(instant), instantOf(now.toISOString())) <= 0
  )
}

/** The one size and zone by which a pipeline's table is cut, checked. */
export function checkSlicing(slicing: Slicing): void {
  try {
    Temporal.Now.zonedDateTimeISO(slicing.zone)
  } catch {
    throw new StetError('STET_CONFIG', `There is no time zone ${JSON.stringify(slicing.zone)}`, {
      hint: 'Write it as the IANA database does: Asia/Seoul, Europe/Berlin, UTC',
    })
  }
  const { size } = slicing
  if (size === 'hour' || size === 'day' || size === 'month' || size === 'value') return
  if (typeof size === 'object' && Number.isSafeInteger(size.range) && size.range > 0) return
  throw new StetError('STET_CONFIG', `${JSON.stringify(size)} is no size of a slice`, {
    hint: "Sizes are 'hour', 'day', 'month', 'value' and { range: 1000 }",
  })
}

/** A length of time such as `2h`, `90 minutes`, `1d`, or ISO 8601 (`PT2H`), in whole microseconds. */
export function microsecondsOf(duration: string, what: string): bigint {
  const match = /^\s*(\d+)\s*(us|ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)\s*$/i.exec(
    duration,
  )
  if (match !== null) return BigInt(match[1] ?? '0') * microsecondsOfUnit(match[2] ?? '')
  try {
    const parsed = Temporal.Duration.from(duration.trim())
    if (parsed.sign >= 0 && parsed.years === 0 && parsed.months === 0) {
      const seconds = parsed.total({ unit: 'seconds', relativeTo: '2000-01-01T00:00[UTC]' })
      return BigInt(Math.round(seconds * 1e6))
    }
  } catch {
    // falls through to the error below, which says more than the parser's
  }
  throw new StetError('STET_CONFIG', `Cannot read ${what} ${JSON.stringify(duration)} as a length of time`, {
    hint: 'Write 30s, 15m, 2h, 3d or ISO 8601 (PT2H); months and years have no fixed length',
  })
}

function microsecondsOfUnit(unit: string): bigint {
  const name = unit.toLowerCase()
  if (name === 'us') return 1n
  if (name === 'ms') return 1_000n
  if (name.startsWith('s')) return 1_000_000n
  if (name.startsWith('m')) return 60_000_000n
  if (name.startsWith('h')) return 3_600_000_000n
  return name.startsWith('d') ? 86_400_000_000n : 604_800_000_000n
}

/** @throws {StetError} `STET_USAGE` when the text is no instant: without an offset it would mean another one in every zone. */
export function instantOf(text: string): Temporal.Instant {
  try {
    return Temporal.Instant.from(text.trim().replace(' ', 'T'))
  } catch {
    throw new StetError('STET_USAGE', `Cannot read ${JSON.stringify(text)} as a moment`, {
      hint: 'Write it with an offset: 2026-08-07T02:00:00Z, 2026-08-07T11:00:00+09:00',
    })
  }
}

type TimeSize = 'hour' | 'day' | 'month'

function startOf(slicing: Slicing, size: TimeSize, name: string): Temporal.ZonedDateTime {
  if (/[T ]\d{2}:\d{2}/.test(name)) return floor(instantOf(name).toZonedDateTimeISO(slicing.zone), size)
  if (!NAME_OF_SIZE[size].test(name)) throw noSlice(size, name)
  try {
    if (size === 'month') return Temporal.PlainDate.from(`${name}-01`).toZonedDateTime(slicing.zone)
    if (size === 'day') return dayOf(slicing.zone, name)
    return hourOf(slicing.zone, name)
  } catch (error) {
    if (error instanceof StetError) throw error
    throw noSlice(size, name)
  }
}

/** The name of a value is kept in leases and logs. */
function requireNameable(by: string, name: string): void {
  if (!name.includes('\0') && Buffer.byteLength(name) <= VALUE_BYTES_MAX) return
  throw new StetError('STET_USAGE', `${JSON.stringify(name.slice(0, 50))} cannot name a slice of ${by}`, {
    hint: `Up to ${VALUE_BYTES_MAX} bytes, and none of them zero`,
  })
}

function dayOf(zone: string, name: string): Temporal.ZonedDateTime {
  const day = Temporal.PlainDate.from(name)
  const start = day.toZonedDateTime(zone)
  if (start.toPlainDate().equals(day)) return start
  throw new StetError('STET_USAGE', `There is no day ${name} in ${zone}: its calendar skipped it`, {
    hint: 'Name the day before or after it',
  })
}

function hourOf(zone: string, name: string): Temporal.ZonedDateTime {
  const offset = /([+-]\d{2}:\d{2}|Z)$/.exec(name)?.[0]
  const wall = Temporal.PlainDateTime.from(`${name.slice(0, 13)}:00`)
  if (offset !== undefined) {
    const named = Temporal.Instant.from(`${name.slice(0, 13)}:00${offset}`).toZonedDateTimeISO(zone)
    if (named.minute === 0 || named.offset === offset) return named
    throw new StetError('STET_USAGE', `${name} is no hour of ${zone}: it begins there in the middle of one`, {
      hint: 'Leave the offset out: an hour is named by the clock of the zone. The second of two equal ones has the offset of the zone',
    })
  }
  const start = wall.toZonedDateTime(zone, { disambiguation: 'earlier' })
  if (!start.toPlainDateTime().equals(wall)) {
    throw new StetError(
      'STET_USAGE',
      `There is no hour ${name} in ${zone}: the clock was put forward over it`,
      {
        hint: 'Name the hour before or after it',
      },
    )
  }
  return start
}

function floor(moment: Temporal.ZonedDateTime, size: TimeSize): Temporal.ZonedDateTime {
  if (size === 'hour') {
    const start = moment.round({ smallestUnit: 'hour', roundingMode: 'floor' })
    // Where the clock was put forward in the middle of an hour, its full hour came after the moment, or never.
    if (Temporal.ZonedDateTime.compare(start, moment) > 0) throw movesWithinHour(start)
    return start
  }
  const start = size === 'month' ? moment.with({ day: 1 }).startOfDay() : moment.startOfDay()
  const following = next(start, size)
  // A clock that goes back over midnight shows the day before once more, whose slice has ended by then.
  return Temporal.ZonedDateTime.compare(moment, following) < 0 ? start : following
}

function next(start: Temporal.ZonedDateTime, size: TimeSize): Temporal.ZonedDateTime {
  if (size === 'hour') return start.add({ hours: 1 })
  // By dates and not by hours: a day has 23 or 25 of them when clocks change, and does not always begin at midnight.
  const date = start.toPlainDate().add(size === 'day' ? { days: 1 } : { months: 1 })
  return date.toZonedDateTime(start.timeZoneId)
}

function timeSlice({ by }: Slicing, size: TimeSize, from: Temporal.ZonedDateTime): Slice {
  const name = {
    hour: () => `${from.toPlainDateTime().toString().slice(0, 13)}${isSecondOfTwo(from) ? from.offset : ''}`,
    day: () => from.toPlainDate().toString(),
    month: () => from.toPlainDate().toString().slice(0, 7),
  }[size]()
  const to = next(from, size)
  const isWhole =
    from.minute === 0 && to.minute === 0 && to.subtract({ nanoseconds: 1 }).offset === from.offset
  if (size === 'hour' && !isWhole) throw movesWithinHour(from)
  const [first, last] = wallsOf(from, size)
  const bounds = {
    kind: 'time',
    from: { wall: first, instant: instantText(from) },
    to: { wall: last, instant: instantText(to) },
  } as const
  return { name, by, bounds }
}

function movesWithinHour({ timeZoneId }: Temporal.ZonedDateTime): StetError {
  return new StetError(
    'STET_USAGE',
    `The clock of ${timeZoneId} moves in the middle of an hour there, so hours cannot be slices`,
    {
      hint: "Use size: 'day'",
    },
  )
}

/**
 * The ends of a slice as wall time, for columns without a zone: by the calendar alone, because such a column knows of no
 * midnight that was skipped. Of two equal hours the first owns all rows, since they cannot be told apart.
 */
function wallsOf(from: Temporal.ZonedDateTime, size: TimeSize): readonly [string, string] {
  const wall = (moment: Temporal.PlainDateTime) =>
    moment.year > YEAR_MAX ? INFINITY : moment.toString({ smallestUnit: 'second' }).replace('T', ' ')
  if (size === 'hour') {
    const end = from.toPlainDateTime().add({ hours: 1 })
    return [wall(isSecondOfTwo(from) ? end : from.toPlainDateTime()), wall(end)]
  }
  const date = from.toPlainDate()
  const end = date.add(size === 'day' ? { days: 1 } : { months: 1 })
  return [wall(date.toPlainDateTime()), wall(end.toPlainDateTime())]
}

/** Whether this hour has come before, by the wall clock, because the clock was put back. */
function isSecondOfTwo(start: Temporal.ZonedDateTime): boolean {
  const earlier = start.toPlainDateTime().toZonedDateTime(start.timeZoneId, { disambiguation: 'earlier' })
  return !earlier.equals(start)
}

function instantText(moment: Temporal.ZonedDateTime): string {
  const utc = moment.withTimeZone('UTC')
  if (utc.year > YEAR_MAX) return INFINITY
  return `${utc.toPlainDateTime().toString({ smallestUnit: 'second' }).replace('T', ' ')}+00`
}

/** What the widest whole number of the local engine surely holds. */
const DIGITS_MAX = 38

function rangeOf(by: string, width: number, name: string): Slice {
  if (!/^-?\d+$/.test(name) || name.length > DIGITS_MAX) {
    throw new StetError('STET_USAGE', `${JSON.stringify(name)} is no first number of a slice of ${by}`, {
      hint: `Slices are ranges of ${width}: --slice ${width} is ${width} to ${2 * width - 1}`,
    })
  }
  // Not as a JavaScript number, which holds whole numbers up to 2^53 only.
  const start = BigInt(name)
  const size = BigInt(width)
  const beyond = ((start % size) + size) % size
  if (beyond !== 0n) {
    throw new StetError('STET_USAGE', `No slice of ${by} begins at ${name}: they are ranges of ${width}`, {
      hint: `${name} is in the slice ${start - beyond}: --slice ${start - beyond}`,
    })
  }
  return {
    name: String(start),
    by,
    bounds: { kind: 'range', from: String(start), to: String(start + size) },
  }
}

function rangesBetween(by: string, width: number, from: string, to: string): Slice[] {
  const first = BigInt(rangeOf(by, width, from).name)
  const last = BigInt(rangeOf(by, width, to).name)
  if (first > last) throw backwards(from, to)
  const count = (last - first) / BigInt(width) + 1n
  if (count > SLICES_MAX) throw tooMany(from, to)
  return Array.from({ length: Number(count) }, (_, index) =>
    rangeOf(by, width, String(first + BigInt(index) * BigInt(width))),
  )
}

function noSlice(size: keyof typeof NAME_OF_SIZE, name: string): StetError {
  return new StetError('STET_USAGE', `${JSON.stringify(name)} names no ${size}`, {
    hint: `Write it like ${EXAMPLE_OF_SIZE[size]}`,
  })
}

function backwards(from: string, to: string): StetError {
  return new StetError('STET_USAGE', `The last slice, ${to}, is before the first, ${from}`, {
    hint: 'Both ends are included: --from 2026-08-07 --to 2026-08-09 are three days',
  })
}

function tooMany(from: string, to: string): StetError {
  return new StetError(
    'STET_USAGE',
    `There are more than ${groupDigits(SLICES_MAX)} slices from ${from} to ${to}`,
    {
      hint: 'Go in parts, or use a larger size',
    },
  )
}

/** The first number or the size, for messages: `day`, `range of 1000`. */
export function sizeInWords(size: SliceSize): string {
  return typeof size === 'object' ? `range of ${size.range}` : size
}
