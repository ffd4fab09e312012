import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'

/** A connection to the local engine: an in-memory DuckDB of this run alone, spilling into `directory`. */
export interface LocalConnection {
  /** The driver's own connection, for appenders and streams. */
  readonly duckdb: DuckDBConnection
  /** A folder of this run, removed with the engine. */
  readonly directory: string
  run(sql: string): Promise<void>
  rows(sql: string): Promise<Record<string, DuckDBValue>[]>
  /** The single number that a query gives, as a JavaScript number. */
  count(sql: string): Promise<number>
  /** A table name that nobody else of this engine has. */
  newName(prefix: string): string
  /** A second connection to the same engine, for work beside a running statement. Ends with the engine. */
  connect(): Promise<LocalConnection>
}
