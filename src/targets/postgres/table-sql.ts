import { quoteIdentifier } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract } from '../../model/columns.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { KEPT_COMMENTS, type TableIdentity } from './catalog.ts'
import { keyOf } from './sql.ts'

/** Makes the table, with the columns that Stet keeps marked as its own. */
export function createTableSql(identity: TableIdentity, contract: Contract): string {
  const { updatedAt, contentHash, gone } = contract.keep
  const columns = contract.columns.map(
    (column) => `${quoteIdentifier(column.name)} ${formatColumnType(column.type)}`,
  )
  if (contentHash !== null) columns.push(`${quoteIdentifier(contentHash)} text`)
  if (updatedAt !== null) columns.push(`${quoteIdentifier(updatedAt)} timestamptz not null default now()`)
  if (gone !== null) columns.push(`${quoteIdentifier(gone)} timestamptz`)
  const comment = (name: string | null, text: string) =>
    name === null ? [] : [`comment on column ${identity.qualified}.${quoteIdentifier(name)} is '${text}';`]
  return [
    `create table ${identity.qualified} (\n  ${columns.join(',\n  ')}\n);`,
    ...comment(contentHash, KEPT_COMMENTS.contentHash),
    ...comment(updatedAt, KEPT_COMMENTS.updatedAt),
    ...comment(gone, KEPT_COMMENTS.gone),
  ].join('\n')
}

/** Adds the key to a table that was just filled; an index built at once costs a third of one kept up row by row. */
export function addKeySql(identity: TableIdentity, contract: Contract, write: WriteStrategy): string | null {
  const list = keyOf(contract)
    .map((column) => quoteIdentifier(column.name))
    .join(', ')
  if (list === '') return null
  const constraint = write.nullKeys === 'match' ? 'unique nulls not distinct' : 'primary key'
  return `alter table ${identity.qualified} add ${constraint} (${list})`
}

/** `table (columns)` of a new table, in the order of the difference. */
export function newTableTarget(identity: TableIdentity, contract: Contract): string {
  const names = contract.columns.map((column) => quoteIdentifier(column.name))
  if (contract.keep.contentHash !== null) names.push(quoteIdentifier(contract.keep.contentHash))
  return `${identity.qualified} (${names.join(', ')})`
}

/** Fills a new table with rows that are in the server already. */
export function fillTableSql(identity: TableIdentity, contract: Contract, difference: string): string {
  const ids = contract.columns.map(({ id }) => `d.${id}`)
  if (contract.keep.contentHash !== null) ids.push('d.content_hash')
  return `with written as (
  insert into ${newTableTarget(identity, contract)}
  select ${ids.join(', ')}
    from ${difference} as d
  returning 1)
select count(*) as rows from written`
}
