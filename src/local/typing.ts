import type { ColumnType, ContractColumn } from '../model/columns.ts'
import { callSql } from './functions.ts'
import { quoteLiteral } from './quote.ts'
import { FALSE_WORDS, isLocalDecimal, TRUE_WORDS } from './typing/reading.ts'

/**
 * How a column's text becomes a value in the local engine, and how values compare there: builders of DuckDB SQL. What a
 * text means is defined in `typing/reading.ts`; the SQL here decides the usual spellings by itself, because that is
 * faster by far, and hands the rest over through the functions of `functions.ts`.
 */

/**
 * The local engine's type of a column type on the proved list, whose values it holds, compares and gives out exactly as
 * PostgreSQL does; VARCHAR, the target's own text, for all others.
 */
export function localType(type: ColumnType): string {
  switch (type.kind) {
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'double':
    case 'boolean':
    case 'date':
    case 'timestamp':
    case 'timestamptz':
    case 'time':
    case 'uuid':
      return type.kind.toUpperCase()
    case 'real':
      return 'FLOAT'
    case 'numeric':
      return isLocalDecimal(type) ? `DECIMAL(${type.precision},${type.scale})` : 'VARCHAR'
    case 'text':
    case 'varchar':
    case 'char':
    case 'json':
    case 'jsonb':
    case 'bytea':
    case 'other':
      return 'VARCHAR'
  }
}

/** The local engine's type of a contract's column. */
export function localTypeOf(column: ContractColumn): string {
  return column.asText ? 'VARCHAR' : localType(column.type)
}

/**
 * The value that the text `raw` has in the column, of type {@link localTypeOf}; NULL when `raw` is NULL or cannot be read
 * without loss (G9).
 */
export function readSql(column: ContractColumn, raw: string): string {
  const { type } = column
  if (localType(type) === 'VARCHAR') return readAsVarchar(type, raw)
  if (!column.asText) return readTyped(type, raw)
  if (isFloat(type)) return callSql('read_wide', raw, type)
  const typed = `(${readTyped(type, raw)})`
  return `coalesce(${textOfLocal(type, typed)}, ${callSql('read_wide', raw, type)})`
}

/** Why `raw` cannot be read in the column, in words that follow the value; NULL where {@link readSql} gives one. */
export function reasonSql(column: ContractColumn, raw: string): string {
  const reason = callSql('reason', raw, column.type)
  return column.asText
    ? `case when ${callSql('read_wide', raw, column.type)} is null then ${reason} end`
    : reason
}

/**
 * Whether `raw` is a value of the column's type that the local type cannot hold: a date before year 1 or after 9999, NaN
 * in a numeric(p,s). The column then has to be compared as text. Never NULL.
 */
export function wideSql(column: ContractColumn, raw: string): string {
  if (column.asText || localType(column.type) === 'VARCHAR') return 'false'
  return `coalesce(${callSql('is_wide', raw, column.type)}, false)`
}

/** A column's value, of type {@link localTypeOf}, as the text in which PostgreSQL prints it; floats in DuckDB's own. */
export function textSql(column: ContractColumn, expr: string): string {
  return localTypeOf(column) === 'VARCHAR' ? expr : textOfLocal(column.type, expr)
}

/** What stands for a column's value in `group by`, `distinct` and joins: equal for equal values, and only for these. */
export function identitySql(column: ContractColumn, expr: string): string {
  if (localTypeOf(column) !== 'VARCHAR') return expr
  switch (column.type.kind) {
    case 'numeric':
      return decimalIdentity(expr)
    case 'json':
    case 'jsonb':
      // PostgreSQL's json may hold what no jsonb can (\u0000): such a text stands for itself.
      return `coalesce(${callSql('json_identity', expr)}, ${expr})`
    default:
      return expr
  }
}

/** Whether two values of a column are equal. NULL equals NULL, NaN equals NaN, -0 equals 0. Never NULL. */
export function sameSql(column: ContractColumn, a: string, b: string): string {
  const same = `${a} is not distinct from ${b}`
  const [left, right] = [identitySql(column, a), identitySql(column, b)]
  if (left === a) return `(${same})`
  return `case when ${same} then true when ${a} is null or ${b} is null then false else ${left} = ${right} end`
}

/** Whether a type's values have an order that is the same everywhere: numbers, and points in time. */
export function isOrderable(type: ColumnType): boolean {
  // Not text, whose order is the collation's, and not a time of day, which begins anew every midnight.
  return [
    'smallint',
    'integer',
    'bigint',
    'numeric',
    'real',
    'double',
    'date',
    'timestamp',
    'timestamptz',
  ].includes(type.kind)
}

/** An expression that is ordered as the values of the column are; NULL stays NULL. For {@link isOrderable} types. */
export function orderSql(column: ContractColumn, expr: string): string {
  if (localTypeOf(column) !== 'VARCHAR') return expr
  return column.type.kind === 'numeric' ? callSql('decimal_order', expr) : callSql('moment_order', expr)
}

function isFloat(type: ColumnType): boolean {
  return type.kind === 'real' || type.kind === 'double'
}

/** What is not decided before this is asked of the definition. */
function otherwise(type: ColumnType, raw: string): string {
  return `else try_cast(${callSql('read', raw, type)} as ${localType(type)})`
}

function readTyped(type: ColumnType, raw: string): string {
  const local = localType(type)
  const cast = `try_cast(${raw} as ${local})`
  const isCanonical = `${cast}::varchar = ${raw}`
  switch (type.kind) {
    case 'boolean':
      return `
        case when lower(${raw}) in (${TRUE_WORDS.map(quoteLiteral).join(', ')}) then true
             when lower(${raw}) in (${FALSE_WORDS.map(quoteLiteral).join(', ')}) then false end`
    case 'smallint':
    case 'integer':
    case 'bigint':
      // The cast alone also takes blanks, 0x10, 1_000, 1e3 and rounds 1.5.
      return `
        case when ${isCanonical} then ${cast}
             when regexp_full_match(${raw}, '[+-]?[0-9]+(\\.0+)?') then ${cast} end`
    case 'numeric':
      // The cast alone rounds. A scale equal to the precision prints no 0 before the point, hence the pattern for all.
      return `
        case when ${isCanonical} then ${cast}
             when regexp_full_match(${raw}, ${quoteLiteral(exactDecimal(type.scale ?? 0))}) then ${cast}
             ${otherwise(type, raw)} end`
    case 'real':
    case 'double':
      // The cast alone makes 1e400 infinite and 1e-400 zero; a zero that was written as one has no other digit.
      return `
        case when ${cast}::varchar = ${raw} and isfinite(${cast}) then ${cast}
             when isfinite(${cast}) and ${cast} <> 0
              and regexp_full_match(${raw}, '[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?') then ${cast}
             when regexp_full_match(${raw}, '[+-]?(0+(\\.0*)?|\\.0+)([eE][+-]?0*[0-9]{1,7})?') then ${cast}
             ${otherwise(type, raw)} end`
    case 'date':
      // Years 1 to 9999 have ten characters; more are years beyond, or DuckDB's own spelling of years before.
      return `case when ${isCanonical} and strlen(${raw}) <= 10 then ${cast} ${otherwise(type, raw)} end`
    case 'timestamp':
    case 'timestamptz':
      // Only texts with an offset may reach the cast to timestamptz: a zone's name in one row changes how it reads the
      // next naive one. Years near the edges are left to the definition, since an offset can lead out of them.
      return `
        case ${asPrinted(type, raw)}
             when regexp_full_match(${raw}, '${momentPattern(type)}') then ${cast}
             ${otherwise(type, raw)} end`
    case 'time':
      return type.precision === undefined || type.precision === 6
        ? `case when ${isCanonical} then ${cast} ${otherwise(type, raw)} end`
        : `case when regexp_full_match(${raw}, '${TIME}${fraction(type.precision)}') then ${cast} ${otherwise(type, raw)} end`
    case 'uuid':
      return `
        case when ${cast}::varchar = ${raw} then ${cast}
             when ${cast}::varchar = lower(${raw}) then ${cast}
             ${otherwise(type, raw)} end`
    default:
      return raw
  }
}

const TIME = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]'
const OFFSET = '(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)'

function momentPattern(type: Extract<ColumnType, { kind: 'timestamp' | 'timestamptz' }>): string {
  const offset = type.kind === 'timestamptz' ? OFFSET : ''
  return `[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}[ T]${TIME}${fraction(type.precision)}${offset}`
}

/** A text as the engine prints it in UTC, which most exports do, is found by printing it: in two thirds of the time. */
function asPrinted(type: Extract<ColumnType, { kind: 'timestamp' | 'timestamptz' }>, raw: string): string {
  if ((type.precision ?? 6) < 6) return ''
  const naive = `try_cast(${raw} as timestamp)`
  const isInside = `${naive} between timestamp '1000-01-01 00:00:00' and timestamp '8999-12-31 23:59:59.999999'`
  return type.kind === 'timestamp'
    ? `when ${naive}::varchar = ${raw} and ${isInside} then ${naive}`
    : `when ${naive}::varchar || '+00' = ${raw} and ${isInside} then make_timestamptz(epoch_us(${naive}))`
}

/** Fraction digits beyond the precision must be zeros. */
function fraction(precision = 6): string {
  return precision === 0 ? '(\\.0+)?' : `(\\.[0-9]{1,${precision}}0*)?`
}

function exactDecimal(scale: number): string {
  return scale === 0 ? '[+-]?[0-9]+(\\.0*)?' : `[+-]?([0-9]+(\\.[0-9]{0,${scale}}0*)?|\\.[0-9]{1,${scale}}0*)`
}

/** Types that are text in the local engine, in the form in which PostgreSQL prints them. */
function readAsVarchar(type: ColumnType, raw: string): string {
  const hasNoNul = `not contains(${raw}, chr(0))`
  switch (type.kind) {
    case 'json':
    case 'jsonb':
      return callSql('json', raw)
    case 'bytea':
      return `case when regexp_full_match(${raw}, '\\\\x([0-9a-fA-F]{2})*') then lower(${raw}) end`
    case 'numeric':
      return type.precision === undefined
        ? `case when ${isPlainNumeric(raw)} then ${raw} else ${callSql('read', raw, type)} end`
        : callSql('read', raw, type)
    case 'varchar':
      if (type.length === undefined) return `case when ${hasNoNul} then ${raw} end`
      // Bytes first: they are known without looking at the text.
      return `
        case when (strlen(${raw}) <= ${type.length} or length(${raw}) <= ${type.length}) and ${hasNoNul} then ${raw} end`
    case 'char':
      return `case when length(rtrim(${raw}, ' ')) <= ${type.length} and ${hasNoNul} then ${raw} end`
    default:
      return `case when ${hasNoNul} then ${raw} end`
  }
}

/** Whether a text is what numeric prints: no sign but that of a negative number, no leading zero, no exponent. */
function isPlainNumeric(raw: string): string {
  return `(strlen(${raw}) < 16000 and regexp_full_match(${raw}, '-?[1-9][0-9]*(\\.[0-9]+)?|0(\\.[0-9]+)?|-0\\.[0-9]*[1-9][0-9]*'))`
}

function decimalIdentity(expr: string): string {
  return `
    case when not contains(${expr}, '.') and ${isPlainNumeric(expr)} then ${expr}
         when ${isPlainNumeric(expr)} then rtrim(rtrim(${expr}, '0'), '.')
         else coalesce(${callSql('decimal', expr)}, ${expr}) end`
}

function textOfLocal(type: ColumnType, value: string): string {
  if (type.kind === 'timestamptz') {
    // The cast to text looks every value up in the time zone's history, which for UTC there is none of.
    return `case when isfinite(${value}) then make_timestamp(epoch_us(${value}))::varchar || '+00' else ${value}::varchar end`
  }
  if (isLocalDecimal(type) && type.scale === type.precision) {
    return `regexp_replace(${value}::varchar, '^(-?)\\.', '\\10.')`
  }
  return `${value}::varchar`
}
