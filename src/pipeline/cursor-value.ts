import { Temporal } from 'temporal-polyfill'
import { StetError } from '../errors.ts'
import { quoteLiteral } from '../local/quote.ts'
import { orderSql, readSql } from '../local/typing.ts'
import { isTimeType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { microsecondsOf } from './slices.ts'

/** Default of `incremental.grace`. Late commits are common and reading again is free of writes, so it is not nothing. */
const GRACE = '1h'

/**
 * An end as a person writes it, in the form of the cursor's type: a bare date is its first moment, and a moment without an
 * offset is one of the pipeline's zone. What is neither stays as it is, and is refused where it is read.
 */
export function momentText(text: string, type: ColumnType, zone: string): string {
  const match = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?$/.exec(text.trim())
  if (match === null || (type.kind !== 'timestamptz' && type.kind !== 'timestamp')) return text
  try {
    const wall = Temporal.PlainDateTime.from(`${match[1]}T${match[2] ?? '00:00'}`)
    return textOf(wall.toZonedDateTime(zone).toInstant(), type, zone)
  } catch {
    return text
  }
}

/** A moment in the form in which a column of this type holds it. */
export function textOf(moment: Temporal.Instant, type: ColumnType, zone: string): string {
  if (type.kind === 'timestamptz') {
    return moment.toString({ smallestUnit: 'microsecond' }).replace('T', ' ').replace('Z', '+00')
  }
  const wall = moment.toZonedDateTimeISO(zone).toPlainDateTime()
  return type.kind === 'date'
    ? wall.toPlainDate().toString()
    : wall.toString({ smallestUnit: 'microsecond' }).replace('T', ' ')
}

/** The value less the grace, as text of the cursor's type; null where there is nothing before it, or it is no number or moment. */
export async function lessGrace(
  local: LocalConnection,
  column: ContractColumn,
  value: string,
  grace: string | number | undefined,
): Promise<string | null> {
  if (!isTimeType(column.type)) {
    const less = typeof grace === 'string' ? Number(grace) : (grace ?? 0)
    if (!Number.isSafeInteger(less) || less < 0) {
      throw new StetError(
        'STET_CONFIG',
        `grace is ${JSON.stringify(grace)}; for a cursor of numbers it is a whole number`,
      )
    }
    return readable(local, column, decimalLess(value, less))
  }
  if (typeof grace === 'number') {
    throw new StetError('STET_CONFIG', `grace is ${grace}; for a cursor of time it is a length such as '2h'`)
  }
  const micros = microsecondsOf(grace ?? GRACE, 'grace')
  const kind = column.type.kind
  const moment = `try_cast(${quoteLiteral(value)} as ${kind === 'date' ? 'timestamp' : kind}) - to_microseconds(${micros})`
  // A part of a day is a whole day for a date: the grace may only become longer.
  return asText(local, kind === 'date' ? `(${moment})::date` : moment)
}

/** A number less a whole number, in every digit; null for what is no number (`NaN`). */
function decimalLess(value: string, less: number): string | null {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value)
  if (match === null) return null
  const fraction = match[3] ?? ''
  const scaled = BigInt(`${match[1]}${match[2]}${fraction}`) - BigInt(less) * 10n ** BigInt(fraction.length)
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(fraction.length + 1, '0')
  const whole = digits.slice(0, digits.length - fraction.length)
  return `${scaled < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${digits.slice(-fraction.length)}`}`
}

/** The text, where the column can hold it; else null: before the first value there can be is the beginning. */
async function readable(
  local: LocalConnection,
  column: ContractColumn,
  text: string | null,
): Promise<string | null> {
  if (text === null) return null
  const [row] = await local.rows(`select (${readSql(column, quoteLiteral(text))}) is not null as readable`)
  return row?.readable === true ? text : null
}

/** The later of two cursor values; the first, where either cannot be read. */
export async function laterOf(
  local: LocalConnection,
  column: ContractColumn,
  a: string,
  b: string | null,
): Promise<string> {
  if (b === null) return a
  const order = (text: string) => orderSql(column, readSql(column, quoteLiteral(text)))
  const [row] = await local.rows(`select coalesce(${order(a)} >= ${order(b)}, true) as later`)
  return row?.later === true ? a : b
}

export async function asText(local: LocalConnection, expression: string): Promise<string | null> {
  const [row] = await local.rows(`select (${expression})::varchar as text`)
  return typeof row?.text === 'string' ? row.text : null
}
