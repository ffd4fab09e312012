import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import type { TableIdentity } from './catalog.ts'

/** Where the record is kept. */
const RECORD_SCHEMA = 'stet'

/**
 * Refuses a place that nobody loads into, before anything is recorded of it: Stet's own schema, those of PostgreSQL (of a
 * temporary table, too, which would be gone with the connection), and none at all.
 *
 * @throws {StetError} `STET_CONFIG`.
 */
export function requirePlace({ schema, table, qualified, searchPath }: TableIdentity): void {
  const inPublic = `--table public.${quoteIdentifier(table)} (table in a pipeline)`
  if (schema === '') {
    throw new StetError(
      'STET_CONFIG',
      `Cannot tell in which schema ${qualified} is: the search path (${searchPath}) names none that is there and may be used`,
      { hint: `Name the schema: ${inPublic}` },
    )
  }
  if (schema !== RECORD_SCHEMA && !schema.startsWith('pg_') && schema !== 'information_schema') return
  const whose =
    schema === RECORD_SCHEMA
      ? `the schema ${schema} holds Stet's own record`
      : `the schema ${schema} is PostgreSQL's own`
  throw new StetError('STET_CONFIG', `Cannot load into ${qualified}: ${whose}`, {
    hint: `Name a table in another schema, such as ${inPublic}`,
  })
}
