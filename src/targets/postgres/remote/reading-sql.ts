import { quoteLiteral } from '../../../local/quote.ts'
import { FALSE_WORDS, TRUE_WORDS } from '../../../local/typing/reading.ts'
import type { ColumnType, ContractColumn } from '../../../model/columns.ts'
import { clockSql, cutSql, looseSql } from '../canonical.ts'
import type { CatalogColumn } from '../catalog.ts'

/** How a column of the query's answer becomes a value of the table's column. */
export interface Reading {
  /** The value in the type below the table's own, without a modifier that would round or cut; NULL where there is none. */
  readonly value: string
  /** Whether `v`, the value before it gets the modifier, would lose something by it; null where nothing can be lost. */
  readonly loses: ((v: string) => string) | null
  /** Whether the value may be missing although the query gave one. */
  readonly mayFail: boolean
}

/** A function of this transaction that gives NULL where a cast would fail; before version 16 there is no other way to ask. */
export interface TryFunction {
  readonly name: string
  readonly create: string
  readonly drop: string
}

/**
 * Reads the values of one column. A value of the same type is taken as it is; any other goes by its text, and of the text
 * the spellings are taken that the landing of files takes as well.
 *
 * @param x The value, as an expression over the query's answer.
 * @param from The column of the answer.
 * @param to The column of the table.
 * @param tryRead The function that casts to `to.base`, called by its name.
 */
export function readingOf(
  column: ContractColumn,
  x: string,
  from: CatalogColumn,
  to: CatalogColumn,
  { normalize, tryRead }: { readonly normalize: boolean; readonly tryRead: (base: string) => string },
): Reading {
  const loses = to.storage === to.base ? null : lossOf(column.type, to)
  if (normalize) return { value: `normalize(${x}::text, nfc)`, loses, mayFail: false }
  if (from.base === to.base && column.type.kind !== 'json') {
    return { value: x, loses: from.storage === to.storage ? null : loses, mayFail: false }
  }
  const range = INTEGERS.indexOf(to.base) - INTEGERS.indexOf(from.base)
  if (INTEGERS.includes(from.base)) {
    if (to.base === 'numeric') return { value: `${x}::numeric`, loses, mayFail: false }
    if (INTEGERS.includes(to.base)) {
      return range > 0
        ? { value: x, loses: null, mayFail: false }
        : { value: `case when ${x} ${within(to.base)} then ${x} end`, loses: null, mayFail: true }
    }
  }
  const text = `${x}::text`
  switch (column.type.kind) {
    case 'text':
    case 'varchar':
    case 'char':
      return { value: text, loses, mayFail: false }
    default:
      return { value: fromText(column.type, text, to, tryRead), loses, mayFail: true }
  }
}

const INTEGERS = ['smallint', 'integer', 'bigint']

function within(base: string): string {
  const limits: Readonly<Record<string, string>> = {
    smallint: 'between -32768 and 32767',
    integer: 'between -2147483648 and 2147483647',
    bigint: 'between -9223372036854775808 and 9223372036854775807',
  }
  return limits[base] ?? ''
}

/** Whether the modifier of the column's type rounds or cuts a value, or has no room for it. */
function lossOf(type: ColumnType, to: CatalogColumn): (v: string) => string {
  switch (type.kind) {
    case 'numeric': {
      const { precision = 1000, scale = 0 } = type
      // An infinite value has no room either; NaN has.
      return (v) =>
        `(${v} <> 'NaN' and (abs(${v}) >= 1e${precision - scale} or round(${v}, ${scale}) <> ${v}))`
    }
    case 'varchar':
      return (v) => `char_length(${v}) > ${type.length}`
    case 'char':
      // Blanks at the end of a char(n) are filling, so that none of the value is lost with them.
      return (v) => `char_length(rtrim(${v}::text, ' ')) > ${type.length}`
    default:
      return (v) => `${v}::${to.storage}::${to.base} is distinct from ${v}`
  }
}

const DECIMAL = '[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,7})?'
const NUMBER_WORDS = "lower(x) in ('nan', 'inf', '+inf', '-inf', 'infinity', '+infinity', '-infinity')"
const DATE = '[0-9]{4,7}-[0-9]{2}-[0-9]{2}( \\(BC\\))?'
const TIME = '([01][0-9]|2[0-4]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,6}0*)?)?'
const MIDNIGHT = '00:00(:00(\\.0+)?)?'
const OFFSET = '([Zz]| ?[+-][0-9]{2}(:[0-9]{2}(:[0-9]{2})?|[0-9]{2})?)'
const ENDS = "lower(x) in ('infinity', '-infinity')"

/** Which texts are tried at all. No word for the clock, no date of two readings and no lost digit is among them (G9). */
function syntaxOf(type: ColumnType, base: string): string {
  const is = (pattern: string) => `x ~ '^${pattern}$'`
  switch (type.kind) {
    case 'numeric':
      // More decimals than numeric has are cut by the cast.
      return `(${is(DECIMAL)} and length(split_part(x, '.', 2)) <= 16383 or ${NUMBER_WORDS})`
    case 'real':
    case 'double':
      return `(${is(DECIMAL)} or ${NUMBER_WORDS})`
    case 'date':
      return `(${is(`${DATE}([T ]${MIDNIGHT})?( BC)?`)} or ${ENDS})`
    case 'timestamp':
      return `(${is(`${DATE}([T ]${TIME})?( BC)?`)} or ${ENDS})`
    case 'timestamptz':
      return `(${is(`${DATE}[T ]${TIME}${OFFSET}( BC)?`)} or ${ENDS})`
    case 'time':
      return is(TIME)
    case 'uuid':
      return `x ~* '^\\{?([0-9a-f]{4}-?){7}[0-9a-f]{4}\\}?$'`
    case 'bytea':
      return is('\\\\x([0-9a-fA-F]{2})*')
    default:
      return `not (${clockSql(base)} or ${cutSql(base)} or ${looseSql(base)})`
  }
}

function fromText(
  type: ColumnType,
  text: string,
  to: CatalogColumn,
  tryRead: (base: string) => string,
): string {
  const words = (list: readonly string[]) => list.map(quoteLiteral).join(', ')
  const over = (expression: string) => `(select ${expression} from (select ${text} offset 0) as o (x))`
  switch (type.kind) {
    case 'boolean':
      return over(
        `case when lower(x) in (${words(TRUE_WORDS)}) then true when lower(x) in (${words(FALSE_WORDS)}) then false end`,
      )
    case 'smallint':
    case 'integer':
    case 'bigint':
      return over(
        `case when x ~ '^[+-]?0*[0-9]{1,19}(\\.0{1,100})?$' and x::numeric ${within(to.base)} then x::numeric::${to.base} end`,
      )
    case 'json':
      // In jsonb's form, as the landing of files brings it.
      return over(`${tryRead('jsonb')}(x)::text::json`)
    case 'jsonb':
      return over(`${tryRead('jsonb')}(x)`)
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      // DuckDB prints years before 1 in its own way.
      return over(
        `case when ${syntaxOf(type, to.base)} then ${tryRead(to.base)}(replace(x, '(BC)', 'BC')) end`,
      )
    default:
      return over(`case when ${syntaxOf(type, to.base)} then ${tryRead(to.base)}(x) end`)
  }
}

/** The function that tries a cast to `base`; `n` tells it from those of other types. */
export function tryFunction(base: string, n: number): TryFunction {
  const name = `pg_temp.stet_try_${n}`
  return {
    name,
    create: `create function ${name}(x text) returns ${base} language plpgsql stable strict as $stet$
begin
  return x::${base};
exception when others then
  return null;
end $stet$`,
    drop: `drop function ${name}(text)`,
  }
}
