import type { ColumnType } from '../../model/columns.ts'

/** What Stet makes of a column of a Parquet file. */
export interface ParquetType {
  /** The type for a table that does not exist yet; absent where PostgreSQL has none like it. */
  readonly type?: ColumnType | undefined
  /** The exact value as text, in PostgreSQL's spelling, in the local engine. */
  readonly text: (column: string) => string
}

const asItIs = (column: string) => `${column}::varchar`
/** As PostgreSQL prints an era: `0044-03-15 BC`, not `0044-03-15 (BC)`. */
const withEra = (column: string) =>
  `case when contains(${column}::varchar, ' (BC)')
        then replace(${column}::varchar, ' (BC)', '') || ' BC'
        else ${column}::varchar
    end`
/** The shortest text that is the same double: `1`, not `1.0`; `NaN`, not `nan`. */
const double = (column: string) =>
  `case when isnan(${column}) then 'NaN'
        when isinf(${column}) then if(${column} > 0, 'Infinity', '-Infinity')
        when ends_with(${column}::varchar, '.0') then left(${column}::varchar, -2)
        else ${column}::varchar
    end`

const BY_NAME: Readonly<Record<string, ParquetType>> = {
  BOOLEAN: { type: { kind: 'boolean' }, text: asItIs },
  TINYINT: { type: { kind: 'smallint' }, text: asItIs },
  UTINYINT: { type: { kind: 'smallint' }, text: asItIs },
  SMALLINT: { type: { kind: 'smallint' }, text: asItIs },
  USMALLINT: { type: { kind: 'integer' }, text: asItIs },
  INTEGER: { type: { kind: 'integer' }, text: asItIs },
  UINTEGER: { type: { kind: 'bigint' }, text: asItIs },
  BIGINT: { type: { kind: 'bigint' }, text: asItIs },
  UBIGINT: { type: { kind: 'numeric', precision: 20, scale: 0 }, text: asItIs },
  HUGEINT: { type: { kind: 'numeric' }, text: asItIs },
  UHUGEINT: { type: { kind: 'numeric' }, text: asItIs },
  DOUBLE: { type: { kind: 'double' }, text: double },
  // Written out as the double that it equals: 0.1 of a real is 0.10000000149011612, and that text gives the same real
  // back as well as the same double. `0.1` would be another value in a double column.
  FLOAT: { type: { kind: 'real' }, text: (column) => double(`${column}::double`) },
  VARCHAR: { type: { kind: 'text' }, text: asItIs },
  DATE: { type: { kind: 'date' }, text: withEra },
  TIME: { type: { kind: 'time' }, text: asItIs },
  TIME_NS: { type: { kind: 'time' }, text: asItIs },
  'TIME WITH TIME ZONE': { type: { kind: 'other', native: 'timetz' }, text: asItIs },
  TIMESTAMP: { type: { kind: 'timestamp' }, text: withEra },
  // All nine digits, where the last three are not zero: landing refuses such a value rather than cut it.
  TIMESTAMP_NS: { type: { kind: 'timestamp' }, text: withEra },
  'TIMESTAMP WITH TIME ZONE': { type: { kind: 'timestamptz' }, text: withEra },
  INTERVAL: {
    type: { kind: 'other', native: 'interval' },
    text: (column) => `replace(${column}::varchar, 'month', 'mon')`,
  },
  UUID: { type: { kind: 'uuid' }, text: asItIs },
  BLOB: { type: { kind: 'bytea' }, text: (column) => `'\\x' || lower(hex(${column}))` },
  JSON: { type: { kind: 'jsonb' }, text: asItIs },
}

/** By the name that DuckDB has for a column's type. */
export function parquetTypeOf(duckdbType: string): ParquetType {
  const known = BY_NAME[duckdbType]
  if (known !== undefined) return known
  const decimal = /^DECIMAL\((\d+),(\d+)\)$/.exec(duckdbType)
  if (decimal !== null) {
    const [precision, scale] = decimal.slice(1).map(Number)
    return { type: { kind: 'numeric', precision: precision ?? 0, scale: scale ?? 0 }, text: asItIs }
  }
  if (/\[\d*\]$|^(STRUCT|MAP|UNION)\(/.test(duckdbType)) {
    return { type: { kind: 'jsonb' }, text: (column) => `to_json(${column})::varchar` }
  }
  return { text: asItIs }
}
