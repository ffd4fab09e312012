import { createHash } from 'node:crypto'
import { StetError } from '../errors.ts'
import { formatColumnType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import { jsonIdentity } from './canonical-json.ts'
import { callSql } from './functions.ts'
import { quoteLiteral } from './quote.ts'
import { decimalIdentity } from './typing/decimal.ts'
import { widenedReal } from './typing/float.ts'
import { isLocalDecimal, readText } from './typing/reading.ts'
import { identitySql, localTypeOf, textSql } from './typing.ts'

/**
 * The content hash of `docs/content-hash.md`, twice: a reference that shows what it is, and the DuckDB rendering that
 * computes it in bulk. Tests hold them to each other and to the published vectors.
 */

/** Goes first into every hash; a new contract gets a new one, so that old and new hashes never agree by accident. */
export const CONTRACT = 'stet1;'

/** What a value is, whatever the width of its type: widening a column does not change its hashes. */
type LogicalKind = 'n' | 's' | 'b' | 'd' | 't' | 'z' | 'c' | 'u' | 'j' | 'x'

/** One column of a row, its value in any spelling that {@link readText} takes. */
export interface HashedValue {
  readonly name: string
  readonly type: ColumnType
  readonly value: string | null
}

/**
 * The content hash of a row, as 64 hex digits. The order of the columns does not matter, and NULLs leave no trace.
 *
 * @throws {StetError} `STET_INTERNAL` when a value cannot be read in its type, or two columns have one name.
 * @example
 * contentHash([{ name: 'amount', type: { kind: 'numeric' }, value: '1.50' }]) // that of '1.5'
 */
export function contentHash(columns: readonly HashedValue[]): string {
  const names = new Set(columns.map((column) => column.name))
  if (names.size < columns.length) throw new StetError('STET_INTERNAL', 'A row to hash names a column twice')
  const hash = createHash('sha256').update(CONTRACT, 'utf8')
  for (const { name, type, value } of columns.toSorted((a, b) => compareBytes(a.name, b.name))) {
    if (value === null) continue
    const canonical = canonicalValue(type, value)
    hash.update(`${byteLength(canonical)}${headOf(type, name)}${canonical}`, 'utf8')
  }
  return hash.digest('hex')
}

/** The same as SQL over values in their local types, for DuckDB. */
export function contentHashSql(
  columns: readonly { readonly column: ContractColumn; readonly expr: string }[],
): string {
  // concat leaves NULLs out, and with them all three parts of a column.
  const parts = columns
    .toSorted((a, b) => compareBytes(a.column.name, b.column.name))
    .flatMap(({ column, expr }) => {
      const value = canonicalSql(column, expr)
      const head = `case when ${expr} is not null then ${quoteLiteral(headOf(column.type, column.name))} end`
      return [`strlen(${value})`, head, value]
    })
  return `sha256(concat(${[quoteLiteral(CONTRACT), ...parts].join(', ')}))`
}

/**
 * What stands between the length of a value and the value: its kind, and the column's name with its length. In this order
 * only one text of each column is constant, which is what the SQL has to put in place for each row.
 */
export function headOf(type: ColumnType, name: string): string {
  return `${kindOf(type)}${byteLength(name)}:${name}`
}

function byteLength(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}

export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'))
}

function kindOf(type: ColumnType): LogicalKind {
  switch (type.kind) {
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'numeric':
    case 'real':
    case 'double':
      return 'n'
    case 'text':
    case 'varchar':
    case 'char':
    case 'other':
      return 's'
    case 'boolean':
      return 'b'
    case 'date':
      return 'd'
    case 'timestamp':
      return 't'
    case 'timestamptz':
      return 'z'
    case 'time':
      return 'c'
    case 'uuid':
      return 'u'
    case 'json':
    case 'jsonb':
      return 'j'
    case 'bytea':
      return 'x'
  }
}

function canonicalValue(type: ColumnType, value: string): string {
  const reading = readText(type, value)
  if ('reason' in reading) throw unreadable(type, reading.reason)
  const { text } = reading
  const canonical = ((): string | null => {
    switch (kindOf(type)) {
      case 'n':
        return decimalIdentity(type.kind === 'real' ? widened(text) : text)
      case 'j':
        return jsonIdentity(text)
      case 's':
        return type.kind === 'char' ? text.replace(/ +$/, '') : text
      case 'z':
        return text.replace('+00', '')
      default:
        return text
    }
  })()
  if (canonical === null || !canonical.isWellFormed()) throw unreadable(type, 'has no canonical form')
  return canonical
}

function widened(text: string): string {
  const reading = widenedReal(text)
  return reading?.kind === 'value' ? reading.text : text
}

function unreadable(type: ColumnType, reason: string): StetError {
  return new StetError('STET_INTERNAL', `Cannot hash a value as ${formatColumnType(type)}: it ${reason}`)
}

function canonicalSql(column: ContractColumn, expr: string): string {
  const { type } = column
  const isText = localTypeOf(column) === 'VARCHAR'
  switch (type.kind) {
    case 'numeric':
      if (isText) return identitySql(column, expr)
      return isLocalDecimal(type) && type.scale > 0 ? decimalSql(column, expr) : `${expr}::varchar`
    case 'real':
      // As the double of the same value: DuckDB does not always print a real in the fewest digits.
      return floatSql(`try_cast(${expr} as float)::double`)
    case 'double':
      return floatSql(`try_cast(${expr} as double)`)
    case 'json':
    case 'jsonb':
      return identitySql(column, expr)
    case 'char':
      return `rtrim(${expr}, ' ')`
    case 'date':
    case 'timestamp':
      return isText ? momentSql(type, expr) : `${expr}::varchar`
    case 'timestamptz':
      // In UTC, which the kind says, so that the zone need not. Only the infinities have no count of microseconds.
      return isText
        ? `replace(${momentSql(type, expr)}, '+00', '')`
        : `coalesce(make_timestamp(epoch_us(${expr}))::varchar, ${expr}::varchar)`
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'boolean':
    case 'time':
    case 'uuid':
      return `${expr}::varchar`
    case 'text':
    case 'varchar':
    case 'bytea':
    case 'other':
      return expr
  }
}

/** Trimming costs far more than looking whether there is anything to trim. */
function decimalSql(column: ContractColumn, expr: string): string {
  const text = textSql(column, expr)
  return `case when ends_with(${text}, '0') then rtrim(rtrim(${text}, '0'), '.') else ${text} end`
}

/** A date or time that is held as text: targets spell years before 1 each in its own way. */
function momentSql(type: ColumnType, expr: string): string {
  return `coalesce(${callSql('read_wide', expr, type)}, ${expr})`
}

/** DuckDB prints the shortest text that reads back as the same float, with `.0` for whole numbers and exponents for far ones. */
function floatSql(expr: string): string {
  return `
    case when isnan(${expr}) then 'NaN'
         when ${expr} = 0 then '0'
         when regexp_full_match(${expr}::varchar, '-?[0-9]+\\.0') then regexp_extract(${expr}::varchar, '^-?[0-9]+')
         when regexp_full_match(${expr}::varchar, '-?[0-9]+\\.[0-9]+') then ${expr}::varchar
         else ${callSql('decimal', `${expr}::varchar`)} end`
}
