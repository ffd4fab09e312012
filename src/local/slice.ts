import { StetError } from '../errors.ts'
import { formatColumnType, isNumberType, isTimeType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import type { SliceBounds, TimeBound } from '../model/slice.ts'
import { quoteLiteral } from './quote.ts'
import { identitySql, localTypeOf, orderSql, readSql } from './typing.ts'

/** The two ends of a range as texts that a column of this type reads: wall time for timestamps, an instant for timestamptz. */
export function endsFor(
  type: ColumnType,
  bounds: Exclude<SliceBounds, { kind: 'value' }>,
): { readonly from: string; readonly to: string } {
  if (bounds.kind === 'range') return bounds
  const text = (bound: TimeBound) =>
    type.kind === 'timestamptz' ? bound.instant : type.kind === 'date' ? bound.wall.slice(0, 10) : bound.wall
  return { from: text(bounds.from), to: text(bounds.to) }
}

/** Whether a whole number in digits is one of 64 bits. */
export function isBigint(digits: string): boolean {
  return BigInt.asIntN(64, BigInt(digits)) === BigInt(digits)
}

/**
 * Whether a value of the local engine belongs to the slice. Never NULL: a NULL belongs to none.
 *
 * @param expr Of type `localTypeOf(column)`.
 */
export function inSliceSql(column: ContractColumn, expr: string, bounds: SliceBounds): string {
  if (bounds.kind === 'value') {
    const value = readSql(column, quoteLiteral(bounds.value))
    return `coalesce(${identitySql(column, expr)} = ${identitySql(column, value)}, false)`
  }
  const { from, to } = endsFor(column.type, bounds)
  const order = orderSql(column, expr)
  if (bounds.kind === 'range') {
    // Not as values of the column's type: the end of the last range is greater than a smallint or a numeric(4,0) can be,
    // and a numeric(38,30) no number of its digits.
    const whole = localTypeOf(column) === 'VARCHAR' ? null : `floor(${expr})::hugeint`
    const end = (digits: string) =>
      whole === null ? orderSql(column, quoteLiteral(digits)) : `${digits}::hugeint`
    return `coalesce(${whole ?? order} >= ${end(from)} and ${whole ?? order} < ${end(to)}, false)`
  }
  const end = (text: string) => orderSql(column, readSql(column, quoteLiteral(text)))
  return `coalesce(${order} >= ${end(from)} and ${order} < ${end(to)}, false)`
}

/**
 * The one name of a value slice: the value as its column prints it. Two names of one slice (`1` and `01`) would have two
 * leases, and what one of them froze the other would change.
 *
 * @returns null when the name is no value of the column.
 */
export function valueNameSql(column: ContractColumn, name: string): string {
  const value = readSql(column, quoteLiteral(name))
  return `(${localTypeOf(column) === 'VARCHAR' ? identitySql(column, value) : value})::varchar`
}

/** Types of which one value has several names: each of them would have a lease and a frozen state of its own. */
const NO_VALUE_NAMES: Readonly<Partial<Record<ColumnType['kind'], string>>> = {
  json: 'one value of it can be spelled in many ways',
  jsonb: 'one value of it can be spelled in many ways',
  real: 'it holds -0 and 0, which are equal and two texts, and rounds what is written',
  double: 'it holds -0 and 0, which are equal and two texts, and rounds what is written',
}

/** @throws {StetError} `STET_CONFIG` when values of this type cannot be told apart by slices of this kind. */
export function requireSliceable(column: ContractColumn, bounds: SliceBounds, isHour: boolean): void {
  const isSliceable = {
    time: isTimeType(column.type),
    range: isNumberType(column.type),
    value: !(column.type.kind in NO_VALUE_NAMES),
  }[bounds.kind]
  const refuse = (why: string, hint: string) => {
    throw new StetError(
      'STET_CONFIG',
      `Column "${column.name}" is ${formatColumnType(column.type)}: ${why}`,
      { hint },
    )
  }
  if (isSliceable) {
    if (isHour && column.type.kind === 'date') refuse('it has no hours', "Use size: 'day'")
    return
  }
  if (bounds.kind === 'time') {
    refuse(
      'it cannot be cut by time',
      `Use a date, timestamp or timestamptz column, or declare its type: columns: { ${column.name}: 'date' }`,
    )
  }
  if (bounds.kind === 'value') {
    refuse(
      NO_VALUE_NAMES[column.type.kind] ?? '',
      'Cut by a column of type text, a number without rounding, or an enum',
    )
  }
  refuse('it cannot be cut into ranges of numbers', 'Use a column of whole numbers')
}
