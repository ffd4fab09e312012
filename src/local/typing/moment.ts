import { civilFromDays, daysFromCivil, daysInMonth } from './calendar.ts'

/**
 * Dates and times as text, in PostgreSQL's range and spelling. JavaScript's Date, which knows neither microseconds nor
 * the years beyond 275760, is never used; the parts of a date are small whole numbers.
 */

export type MomentKind = 'date' | 'timestamp' | 'timestamptz'

/** A point of the proleptic Gregorian calendar; in UTC for a timestamptz. */
interface Moment {
  /** Days since 1970-01-01. */
  readonly day: number
  /** Microseconds since midnight. */
  readonly micros: number
}

/** What a text says, or what is wrong with it, in words that follow the value. */
export type MomentReading =
  | {
      readonly text: string
      /** Beyond the years 1 to 9999, which is all that every engine holds and prints alike. */
      readonly wide: boolean
    }
  | { readonly reason: string }

const MICROS_PER_SECOND = 1_000_000
const SECONDS_PER_DAY = 86_400
const FRACTION_DIGITS_MAX = 6

const DATE = String.raw`(?<year>\d{4,7})-(?<month>\d{2})-(?<day>\d{2})(?<bc1> \(BC\))?`
const TIME = String.raw`(?<hour>\d{2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:\.(?<fraction>\d+))?)?`
const OFFSET = String.raw`(?<offset>[Zz]| ?[+-]\d{2}(?::\d{2}(?::\d{2})?|\d{2})?)?`
const MOMENT = new RegExp(`^${DATE}(?:[T ]${TIME}${OFFSET})?(?<bc2> BC)?$`)
const TIME_OF_DAY = new RegExp(`^${TIME}${OFFSET}$`)

const CLOCK_WORDS =
  /^(now|today|tomorrow|yesterday|epoch|allballs|current_(date|time|timestamp)|localtime(stamp)?|(now|current_date)\(\))$/i
const DAY_AND_MONTH = /^(\d{1,2})[/.-](\d{1,2})[/.-]\d{2,4}(\D.*)?$/s
const NAMED_ZONE = /\d{2}:\d{2}(:\d{2}(\.\d+)?)? ?([A-Za-z]{2,}[A-Za-z0-9_/+-]*)$/

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]

/** PostgreSQL's least date and timestamp: Julian day 0, 24 November 4714 BC. */
const DAY_MIN = daysFromCivil(-4713, 11, 24)
const DAY_MAX = {
  date: daysFromCivil(5_874_897, 12, 31),
  timestamp: daysFromCivil(294_276, 12, 31),
  timestamptz: daysFromCivil(294_276, 12, 31),
}
const HELD_MIN = daysFromCivil(1, 1, 1)
const HELD_MAX = daysFromCivil(9999, 12, 31)

/** Reads a date or timestamp and gives it as PostgreSQL prints it with DateStyle ISO and TimeZone UTC. */
export function readMoment(text: string, kind: MomentKind, precision: number | undefined): MomentReading {
  const infinity = /^-?infinity$/i.exec(text)
  if (infinity !== null) return { text: text.toLowerCase(), wide: false }
  const moment = momentOf(text, kind, precision)
  if ('reason' in moment) return moment
  if (moment.day < DAY_MIN || moment.day > DAY_MAX[kind]) return { reason: `is out of range of ${kind}` }
  return { text: print(moment, kind), wide: moment.day < HELD_MIN || moment.day > HELD_MAX }
}

/** Reads a time of day. `24:00:00`, the end of a day, is a value of its own in every engine. */
export function readTime(text: string, precision: number | undefined): MomentReading {
  const groups = TIME_OF_DAY.exec(text)?.groups
  if (groups === undefined) {
    return {
      reason: CLOCK_WORDS.test(text) ? clockWord('HH:MM:SS') : 'is not a time of day such as 13:45:00',
    }
  }
  if (groups.offset !== undefined) return { reason: 'has a time zone offset, which time would drop' }
  const micros = microsOf(groups, 'time', precision)
  return typeof micros === 'string' ? { reason: micros } : { text: printTime(micros), wide: false }
}

/**
 * A text whose byte order is the order in time, from a date or timestamp that the target printed; null when it is none.
 * Years before 1 count down while their months count up, so the year is complemented and the rest is not.
 */
export function momentOrder(text: string): string | null {
  if (text === 'infinity') return '4'
  if (text === '-infinity') return '0'
  const groups = MOMENT.exec(text)?.groups
  if (groups === undefined) return null
  const year = Number(groups.year)
  const before = groups.bc1 !== undefined || groups.bc2 !== undefined
  const micros = microsOf(groups, 'timestamp', undefined)
  if (typeof micros === 'string') return null
  const era = before ? '2' : '3'
  const counted = String(before ? 9_999_999 - year : year).padStart(7, '0')
  return `${era}${counted}${groups.month}${groups.day}${String(micros).padStart(11, '0')}`
}

function momentOf(
  text: string,
  kind: MomentKind,
  precision: number | undefined,
): Moment | { readonly reason: string } {
  const groups = MOMENT.exec(text)?.groups
  if (groups === undefined) return { reason: whyNoMoment(text, kind) }
  const { year: yearText, month: monthText, day: dayText, offset } = groups
  const month = Number(monthText)
  const dayOfMonth = Number(dayText)
  const yearOfEra = Number(yearText)
  const year = groups.bc1 !== undefined || groups.bc2 !== undefined ? 1 - yearOfEra : yearOfEra
  if (yearOfEra === 0) return { reason: 'has the year 0; the year before 0001 is 0001 BC' }
  if (month < 1 || month > 12 || dayOfMonth < 1 || dayOfMonth > daysInMonth(year, month)) {
    return { reason: 'is no day of the calendar' }
  }
  const hasTime = groups.hour !== undefined
  const zero = offset === undefined ? 0 : secondsOf(offset)
  if (zero === null) return { reason: 'has a time zone offset that does not exist (at most 15:59 is known)' }
  if (kind === 'timestamptz' && offset === undefined) {
    return { reason: 'has no time zone offset; timestamptz needs one such as Z or +02:00' }
  }
  if (kind !== 'timestamptz' && offset !== undefined) {
    return { reason: `has a time zone offset, which ${kind} would drop` }
  }
  const micros = hasTime ? microsOf(groups, kind, precision) : 0
  if (typeof micros === 'string') return { reason: micros }
  if (kind === 'date' && micros !== 0) return { reason: 'has a time of day, which date would drop' }
  const local = micros - zero * MICROS_PER_SECOND
  const perDay = SECONDS_PER_DAY * MICROS_PER_SECOND
  const carried = Math.floor(local / perDay)
  return { day: daysFromCivil(year, month, dayOfMonth) + carried, micros: local - carried * perDay }
}

/** Microseconds since midnight, or what is wrong with the time. */
function microsOf(
  { hour, minute, second = '00', fraction = '' }: Record<string, string | undefined>,
  kind: MomentKind | 'time',
  precision: number | undefined,
): number | string {
  const seconds = Number(second)
  if (seconds === 60) return 'has a second 60, a leap second that databases move into the next minute'
  if (Number(hour ?? '0') > 24 || Number(minute ?? '0') > 59 || seconds > 59) return 'is no time of a day'
  const kept = fraction.replace(/0+$/, '')
  if (kept.length > FRACTION_DIGITS_MAX) return 'has more than 6 fraction digits'
  if (precision !== undefined && kept.length > precision) {
    return `has ${kept.length} fraction ${kept.length === 1 ? 'digit' : 'digits'}, ${kind}(${precision}) keeps ${precision}`
  }
  const whole = (Number(hour ?? '0') * 60 + Number(minute ?? '0')) * 60 + seconds
  const micros = whole * MICROS_PER_SECOND + Number(kept.padEnd(FRACTION_DIGITS_MAX, '0'))
  return micros > SECONDS_PER_DAY * MICROS_PER_SECOND ? 'is no time of a day' : micros
}

/** Seconds east of UTC; null beyond what PostgreSQL takes. */
function secondsOf(offset: string): number | null {
  const digits = offset.replace(/[^\d]/g, '')
  const [hours, minutes, seconds] = [0, 2, 4].map((start) => Number(digits.slice(start, start + 2) || '0'))
  if (hours === undefined || minutes === undefined || seconds === undefined) return null
  if (hours > 15 || minutes > 59 || seconds > 59) return null
  const size = (hours * 60 + minutes) * 60 + seconds
  return offset.includes('-') ? -size : size
}

function whyNoMoment(text: string, kind: MomentKind): string {
  const wanted = {
    date: 'YYYY-MM-DD',
    timestamp: 'YYYY-MM-DD HH:MM:SS',
    timestamptz: 'YYYY-MM-DD HH:MM:SS+02:00',
  }[kind]
  if (CLOCK_WORDS.test(text)) return clockWord(wanted)
  const parts = DAY_AND_MONTH.exec(text)
  const [a, b] = [Number(parts?.[1]), Number(parts?.[2])]
  const isEither = a >= 1 && b >= 1 && a <= 12 && b <= 12 && a !== b
  if (isEither) return `could be ${a} ${MONTHS[b - 1]} or ${b} ${MONTHS[a - 1]}; write it as ${wanted}`
  if (NAMED_ZONE.test(text)) return 'names a time zone; write its offset, such as Z or +02:00'
  return `is not a ${kind}; write it as ${wanted}`
}

function clockWord(wanted: string): string {
  return `is a word that a database turns into the clock or a fixed time; write ${wanted}`
}

function print({ day, micros }: Moment, kind: MomentKind): string {
  const { year, month, day: dayOfMonth } = civilFromDays(day)
  const shown = String(year > 0 ? year : 1 - year).padStart(4, '0')
  const date = `${shown}-${twoDigits(month)}-${twoDigits(dayOfMonth)}`
  const time = kind === 'date' ? '' : ` ${printTime(micros)}${kind === 'timestamptz' ? '+00' : ''}`
  return `${date}${time}${year > 0 ? '' : ' BC'}`
}

function printTime(micros: number): string {
  const seconds = Math.floor(micros / MICROS_PER_SECOND)
  const fraction = String(micros % MICROS_PER_SECOND)
    .padStart(FRACTION_DIGITS_MAX, '0')
    .replace(/0+$/, '')
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(twoDigits)
  return `${clock.join(':')}${fraction === '' ? '' : `.${fraction}`}`
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}
