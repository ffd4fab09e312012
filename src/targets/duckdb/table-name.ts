import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import { parseTableName } from '../shared/table-name.ts'

/** A table of a DuckDB file. */
export interface DuckDBTableName {
  readonly schema: string
  readonly name: string
  /** With its schema, each part quoted: for statements. */
  readonly quoted: string
  /** For people: quoted only where it must be, and without the schema `main`. */
  readonly shown: string
  /** How the record calls it. In lower case: DuckDB takes `"Orders"` and `orders` for one table, and so must its record. */
  readonly recorded: string
}

const DEFAULT_SCHEMA = 'main'
/** Where the record is kept. */
const RECORD_SCHEMA = 'stet'

/** @throws {StetError} `STET_CONFIG` when the text is no name of a table, or one in Stet's own schema. */
export function duckdbTableName(text: string): DuckDBTableName {
  const { schema, table } = parseTableName(text)
  const shown = (read: (part: string) => string) =>
    schema === null || read(schema) === DEFAULT_SCHEMA
      ? showIdentifier(read(table))
      : `${showIdentifier(read(schema))}.${showIdentifier(read(table))}`
  const name: DuckDBTableName = {
    schema: schema ?? DEFAULT_SCHEMA,
    name: table,
    quoted: `${quoteIdentifier(schema ?? DEFAULT_SCHEMA)}.${quoteIdentifier(table)}`,
    shown: shown((part) => part),
    recorded: shown((part) => part.toLowerCase()),
  }
  if (name.schema.toLowerCase() === RECORD_SCHEMA) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot load into ${name.shown}: the schema ${RECORD_SCHEMA} holds Stet's own record`,
      {
        hint: 'Name a table in another schema',
      },
    )
  }
  return name
}

/** An identifier for people, in quotes only where SQL would read it otherwise. */
export function showIdentifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteIdentifier(name)
}
