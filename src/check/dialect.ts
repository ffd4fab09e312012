/** Which dialect a file is written in, by what only that dialect says. */
import type { SqlDialect } from './facts.ts'

const DIALECT_SIGNS: readonly (readonly [SqlDialect, RegExp])[] = [
  ['cassandra', /\bcassandra\b|\bcql\b|create\s+keyspace|\bUSING\s+TTL\b/i],
  ['clickhouse', /MergeTree\b|clickhouse/i],
  [
    'spark',
    /\.hql$|\busing\s+(?:delta|iceberg|parquet)\b|insert\s+overwrite\s+table|tblproperties|stored\s+as\s+(?:parquet|orc)|\bpyspark\b/i,
  ],
  [
    'bigquery',
    /bigquery|\bbq\s+(?:query|load)\b|`[\w${}-]+\.[\w${}]+\.[\w${}]+`|\bsafe_cast\b|_table_suffix/i,
  ],
  ['snowflake', /snowflake|\bcopy\s+into\b|\bvariant\b|\bflatten\s*\(|file_format\s*=/i],
  ['redshift', /redshift|\bdistkey\b|\bsortkey\b|\bdiststyle\b/i],
  ['mysql', /\bon\s+duplicate\s+key\b|engine\s*=\s*innodb|\bauto_increment\b|mysql|insert\s+ignore\b/i],
  ['sqlite', /sqlite|insert\s+or\s+(?:replace|ignore)|\bautoincrement\b|\bpragma\b/i],
  [
    'postgres',
    /\bon\s+conflict\b|psycopg|postgres|\bbigserial\b|\bserial\b|\bjsonb\b|\$\$|from ['"]pg['"]|require\(['"]pg['"]\)/i,
  ],
  ['tsql', /\bgetdate\(\)|\bnvarchar\b|^go\s*$|\[dbo\]|pyodbc|mssql/im],
  ['duckdb', /duckdb/i],
  ['trino', /trino|presto/i],
]

export function guessDialect(path: string, text: string): SqlDialect {
  const sample = text.length > 30_000 ? text.slice(0, 30_000) : text
  for (const [dialect, sign] of DIALECT_SIGNS) if (sign.test(path) || sign.test(sample)) return dialect
  return 'unknown'
}
