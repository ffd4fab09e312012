import { StetError } from '../../errors.ts'
import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import { endsFor, isBigint } from '../../local/slice.ts'
import type { Slice } from '../../model/slice.ts'
import type { CatalogColumn, CatalogTable } from './catalog.ts'

/**
 * Whether a row of the table belongs to the slice; NULL for a row that belongs to none. Literals of the column's own type,
 * so that the planner visits the slice's partitions only.
 */
export function inSliceSql(table: CatalogTable, { by, bounds }: Slice, alias: string): string {
  const column = table.columns.find(({ name }) => name === by)
  if (column === undefined) {
    throw new StetError(
      'STET_COLUMNS',
      `${table.identity.qualified} has no column "${by}", which says which slice a row belongs to`,
      { hint: 'Name a column of the table in write.by' },
    )
  }
  const name = `${alias}.${quoteIdentifier(by)}`
  if (bounds.kind === 'value') return isValueSql(column, name, quoteLiteral(bounds.value))
  const { from, to } = endsFor(column.type, bounds)
  const reachesBeyond = bounds.kind === 'range' && !(isBigint(from) && isBigint(to))
  const type = reachesBeyond ? 'numeric' : boundType(column)
  const end = (text: string) => `${quoteLiteral(text)}::${type}`
  return `${name} >= ${end(from)} and ${name} < ${end(to)}`
}

/**
 * The last range of a small type ends beyond what the type can hold. Partitions are found by a bigint just as well; by a
 * numeric, which the first and the last range of a bigint need, they are not.
 */
function boundType({ type, base }: CatalogColumn): string {
  return type.kind === 'smallint' || type.kind === 'integer' ? 'bigint' : base
}

/** Types and collations that take different texts for equal ones are told apart by text as well: `kr` is no row of `KR`. */
function isValueSql({ type, base, coarseCollation }: CatalogColumn, name: string, literal: string): string {
  const value = `${literal}::${base}`
  const sameText = `${name}::text collate "C" = ${value}::text collate "C"`
  if (type.kind === 'json') return sameText
  const isCoarse = coarseCollation !== null || type.kind === 'other'
  return isCoarse ? `${name} = ${value} and ${sameText}` : `${name} = ${value}`
}
