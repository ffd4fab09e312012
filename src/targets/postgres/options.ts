import type { Columns } from '../../model/columns.ts'

// Apart from what uses them, so that the published types of a target do not ask for those of the driver.

export interface PostgresOptions {
  /** `postgres://user@host:5432/database`. Without it the PG* environment variables and `.pgpass` say where. */
  readonly url?: string | undefined
}

export interface QueryOptions<C extends Columns = Columns> {
  /** Default: the table's columns, and the query's own types for a table that does not exist yet. */
  readonly columns?: C | undefined
}
