import type { DuckDBConnection } from '@duckdb/node-api'
import type { TableState } from '../state/fingerprint.ts'
import { ident, textOf } from '../state/hashing.ts'
import type { Ignore } from '../state/ignore.ts'
import type { LoadedColumn, LoadedTable } from './shape.ts'

/** `wh.duckdb:fact`, or the file itself where it is one table. */
export function nameOfTable(file: string, table: string): string {
  return table === '' ? file : `${file}:${table}`
}

export function countingOf(file: string, table: LoadedTable, ignore: Ignore): readonly LoadedColumn[] {
  const name = nameOfTable(file, table.name)
  return table.columns
    .filter((column) => !ignore.column(name, column.name))
    .map((column) => ({ ...column, varies: ignore.varies(name, column.name) }))
}

/** As for tables of the server: sums of hashes, in any order the same, and no row cancels out another. */
export async function stateOfTable(
  connection: DuckDBConnection,
  table: LoadedTable,
  counting: readonly LoadedColumn[],
): Promise<TableState> {
  const content = counting.filter((column) => !column.isGenerated)
  const sums = [rowSum(counting.map(textOf)), rowSum(content.map(textOf)), ...counting.map(columnSum)]
  const result = await connection.runAndReadAll(`
select count(*)::varchar, ${sums.join(', ')}
  from ${table.reference}`)
  const [rows = '', full = '', contents = '', ...columns] = (result.getRowsJson()[0] ?? []).map(String)
  return {
    rows: Number(rows),
    full,
    content: contents,
    columns: new Map(counting.map(({ name }, n) => [name, columns[n] ?? ''])),
  }
}

/** Two seeds, as one 64-bit hash of millions of rows may collide. */
function rowSum(columns: readonly string[]): string {
  if (columns.length === 0) return "''"
  const sum = (seed: number) => `sum(hash(${seed}, ${columns.join(', ')})::hugeint)`
  return `concat_ws(':', ${sum(1)}, ${sum(2)})`
}

function columnSum(column: LoadedColumn): string {
  return `concat_ws(':', count(${ident(column.name)}), sum(hash(${textOf(column)})::hugeint))`
}
