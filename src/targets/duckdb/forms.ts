import { quoteIdentifier } from '../../local/quote.ts'
import { localTypeOf, textSql } from '../../local/typing.ts'
import type { ContractColumn } from '../../model/columns.ts'

/**
 * The two forms of a value: as DuckDB stores it, and as it is compared. They are the same for typed columns. Text forms
 * are PostgreSQL's, in which everything is landed.
 */

/** A column of the target's row `stet_t`, in the form in which it is compared. */
export function readColumnSql(column: ContractColumn): string {
  return comparedForm(column, `stet_t.${quoteIdentifier(column.name)}`)
}

/** A stored value in the form in which it is compared, of the column's local type. */
export function comparedForm(column: ContractColumn, stored: string): string {
  if (localTypeOf(column) !== 'VARCHAR') return stored
  switch (column.type.kind) {
    case 'text':
    case 'varchar':
    case 'char':
      // By its bytes, whatever collation the table gives the column: under NOCASE a correction from `a` to `A` were none.
      return `${stored} collate posix`
    case 'bytea':
      // A cast would give DuckDB's own escapes, which differ from value to value.
      return `'\\x' || lower(hex(${stored}))`
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      return `regexp_replace(${stored}::varchar, '^([^ ]+) \\(BC\\)(.*)$', '\\1\\2 BC')`
    case 'json':
    case 'jsonb':
    case 'other':
      return `${stored}::varchar`
    default:
      return textSql({ ...column, asText: false }, stored)
  }
}

/** A compared value in the form in which DuckDB's cast to the column's type reads it. */
export function storedForm(column: ContractColumn, compared: string): string {
  if (localTypeOf(column) !== 'VARCHAR') return compared
  switch (column.type.kind) {
    case 'bytea':
      return `unhex(substr(${compared}, 3))`
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      // DuckDB reads `0044-03-15 BC` as the year 44 after, and says nothing.
      return `regexp_replace(${compared}, '^([^ ]+)(.*) BC$', '\\1 (BC)\\2')`
    default:
      return compared
  }
}

/** Whether DuckDB finds two stored values of a column equal just where the comparison does, in a table that Stet made. */
export function isStoredAsCompared(column: ContractColumn): boolean {
  return localTypeOf(column) !== 'VARCHAR' || ['text', 'varchar'].includes(column.type.kind)
}
