import { StetError } from '../../errors.ts'
import type { ColumnType } from '../../model/columns.ts'

/** DuckDB's types that Stet reads as their own kind. All others travel as DuckDB's text. */
const KIND_BY_NATIVE: Readonly<Record<string, ColumnType>> = {
  VARCHAR: { kind: 'text' },
  SMALLINT: { kind: 'smallint' },
  INTEGER: { kind: 'integer' },
  BIGINT: { kind: 'bigint' },
  FLOAT: { kind: 'real' },
  DOUBLE: { kind: 'double' },
  BOOLEAN: { kind: 'boolean' },
  DATE: { kind: 'date' },
  TIMESTAMP: { kind: 'timestamp' },
  'TIMESTAMP WITH TIME ZONE': { kind: 'timestamptz' },
  TIME: { kind: 'time' },
  UUID: { kind: 'uuid' },
  BLOB: { kind: 'bytea' },
  // A JSON column of DuckDB keeps the text it was given; Stet gives it the canonical one, as jsonb would.
  JSON: { kind: 'jsonb' },
}

/** The type of a column as the catalog prints it. */
export function typeOfNative(native: string): ColumnType {
  const decimal = /^DECIMAL\((\d+),(\d+)\)$/.exec(native)
  if (decimal !== null) return { kind: 'numeric', precision: Number(decimal[1]), scale: Number(decimal[2]) }
  return KIND_BY_NATIVE[native] ?? { kind: 'other', native }
}

const PRECISION_MAX = 38

/**
 * The DuckDB type of a column in a table that Stet creates.
 *
 * @throws {StetError} `STET_CONFIG` for a type that DuckDB would hold only with a loss.
 */
export function nativeOfType(type: ColumnType, column: string): string {
  switch (type.kind) {
    case 'text':
    case 'varchar':
    case 'char':
      // DuckDB knows no lengths; the landing has checked them.
      return 'VARCHAR'
    case 'smallint':
      return 'SMALLINT'
    case 'integer':
      return 'INTEGER'
    case 'bigint':
      return 'BIGINT'
    case 'numeric':
      return decimalType(type, column)
    case 'real':
      return 'FLOAT'
    case 'double':
      return 'DOUBLE'
    case 'boolean':
      return 'BOOLEAN'
    case 'date':
      return 'DATE'
    case 'timestamp':
      return 'TIMESTAMP'
    case 'timestamptz':
      return 'TIMESTAMP WITH TIME ZONE'
    case 'time':
      return 'TIME'
    case 'uuid':
      return 'UUID'
    case 'json':
    case 'jsonb':
      return 'JSON'
    case 'bytea':
      return 'BLOB'
    case 'other':
      return foreignType(type.native, column)
    default:
      return type satisfies never
  }
}

function decimalType(type: Extract<ColumnType, { kind: 'numeric' }>, column: string): string {
  const { precision, scale = 0 } = type
  if (precision === undefined) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot make column ${column}: DuckDB has no numeric without precision`,
      {
        hint: `Declare ${column} as numeric(p,s) with up to ${PRECISION_MAX} digits, or as text`,
      },
    )
  }
  if (precision > PRECISION_MAX || scale < 0 || scale > precision) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot make column ${column}: DuckDB has no numeric(${precision},${scale})`,
      {
        hint: `Declare ${column} as numeric(p,s) with p up to ${PRECISION_MAX} and s from 0 to p, or as text`,
      },
    )
  }
  return `DECIMAL(${precision},${scale})`
}

/** A type that only DuckDB knows (`hugeint`, `integer[]`), as the pipeline wrote it; whether it exists is DuckDB's to say. */
function foreignType(native: string, column: string): string {
  if (/^[a-z_][\w ]*(\(\s*\d+(\s*,\s*\d+)*\s*\))?(\[\d*\])*$/i.test(native)) return native
  throw new StetError(
    'STET_CONFIG',
    `Cannot make column ${column}: ${native} is not a type that Stet makes in DuckDB`,
    {
      hint: 'Create the table yourself and load into it, or declare another type',
    },
  )
}
