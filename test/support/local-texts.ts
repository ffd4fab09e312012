import { VARCHAR } from '@duckdb/node-api'
import type { ColumnType, ContractColumn } from '../../src/model/columns.ts'
import type { LocalConnection } from '../../src/model/local.ts'

/** A column of a contract of which only the type matters. */
export function columnOf(type: ColumnType, more: Partial<ContractColumn> = {}): ContractColumn {
  return {
    id: 'c0',
    name: 'v',
    type,
    origin: 'declared',
    key: false,
    newest: false,
    ignored: false,
    asText: false,
    ...more,
  }
}

/** A local table with the column `t` VARCHAR, its rows in order (`n`). Texts go in as bytes: SQL cannot spell a NUL. */
export async function textTable(local: LocalConnection, texts: readonly (string | null)[]): Promise<string> {
  const table = local.newName('texts')
  await local.run(`create table ${table} (n integer, t varchar)`)
  const appender = await local.duckdb.createAppender(table)
  for (const [n, text] of texts.entries()) {
    appender.appendInteger(n)
    appender.appendValue(text, VARCHAR)
    appender.endRow()
  }
  appender.closeSync()
  return table
}

/** What an SQL expression over `t` gives for each text, as DuckDB prints it. */
export async function evaluate(
  local: LocalConnection,
  texts: readonly (string | null)[],
  expression: string,
): Promise<(string | null)[]> {
  const table = await textTable(local, texts)
  // With a byte before it: the driver takes a byte order mark off the beginning of a text.
  const rows = await local.rows(`select '.' || (${expression})::varchar as v from ${table} order by n`)
  await local.run(`drop table ${table}`)
  return rows.map((row) => (row.v === null || row.v === undefined ? null : String(row.v).slice(1)))
}
