/** An embedded DuckDB in memory, and the few questions that a witness asks of it. */
import { StetError } from '../../errors.ts'

export interface WitnessDatabase {
  run(sql: string): Promise<void>
  /** Rows as text, in the order of all columns, so that two states can be compared. */
  rows(table: string, columns: readonly string[]): Promise<string[]>
  close(): void
}

export async function openDatabase(): Promise<WitnessDatabase> {
  let duckdb: typeof import('@duckdb/node-api')
  try {
    duckdb = await import('@duckdb/node-api')
  } catch (cause) {
    throw new StetError('STET_DRIVER_MISSING', 'Cannot run witnesses: @duckdb/node-api is not installed', {
      hint: 'Run: npm install @duckdb/node-api',
      cause,
    })
  }
  const instance = await duckdb.DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  return {
    async run(sql) {
      await connection.run(sql)
    },
    async rows(table, columns) {
      const list = columns.map((column) => `coalesce(${column}::varchar, 'NULL')`).join(`, `)
      const reader = await connection.runAndReadAll(
        `select concat_ws(', ', ${list}) from ${table} order by 1`,
      )
      return reader.getRows().map((row) => String(row[0]))
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
