import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import { KEPT_COMMENT } from './catalog.ts'
import { readColumnSql, storedForm } from './forms.ts'
import { keyMatchSql } from './scope.ts'
import { nativeOfType } from './types.ts'

/** The local table with the difference, by its alias in every statement. */
const DIFFERENCE = 'stet_d'

/** Makes the table of a first load. It gets no index: one over the key costs 2.4 times the load and memory that cannot spill. */
export function createStatements(qualified: string, contract: Contract): string[] {
  const { updatedAt, contentHash } = contract.keep
  const columns = contract.columns.map(
    (column) => `${quoteIdentifier(column.name)} ${nativeOfType(column.type, column.name)}`,
  )
  if (updatedAt !== null) columns.push(`${quoteIdentifier(updatedAt)} TIMESTAMP WITH TIME ZONE`)
  if (contentHash !== null) columns.push(`${quoteIdentifier(contentHash)} VARCHAR`)
  const statements = [`create table ${qualified} (\n  ${columns.join(',\n  ')})`]
  const comment = (name: string, text: string) =>
    statements.push(`comment on column ${qualified}.${quoteIdentifier(name)} is ${quoteLiteral(text)}`)
  if (updatedAt !== null) comment(updatedAt, KEPT_COMMENT.updatedAt)
  if (contentHash !== null) comment(contentHash, KEPT_COMMENT.contentHash)
  return statements
}

/**
 * Deletes by key, or by the engine's own name of the row. The row is deleted only as it was compared; nobody can have
 * changed it meanwhile, so a row that is not met is a defect, which the counts show.
 */
export function deleteStatement(qualified: string, contract: Contract, difference: string): string {
  const key = contract.columns.filter((column) => column.key)
  const which = key.length > 0 ? keyMatchSql(key, DIFFERENCE) : `stet_t.rowid = ${DIFFERENCE}.row_id::bigint`
  const asCompared = contract.columns
    .filter((column) => !column.key)
    .map((column) => `\n   and ${readColumnSql(column)} is not distinct from ${DIFFERENCE}.${column.id}`)
  return `delete from ${qualified} as stet_t
 using ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'delete'
   and ${which}${asCompared.join('')}`
}

/** Sets the contract's columns only: what the source does not have is left alone. */
export function updateStatement(qualified: string, contract: Contract, difference: string): string {
  const key = contract.columns.filter((column) => column.key)
  const set = [
    ...contract.columns
      .filter((column) => !column.key)
      .map(
        (column) => `${quoteIdentifier(column.name)} = ${storedForm(column, `${DIFFERENCE}.${column.id}`)}`,
      ),
    ...keptAssignments(contract).map(([name, value]) => `${quoteIdentifier(name)} = ${value}`),
  ]
  return `update ${qualified} as stet_t
   set ${set.join(',\n       ')}
  from ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'update'
   and ${keyMatchSql(key, DIFFERENCE)}`
}

/**
 * DuckDB takes `1 day` and `24:00:00` for equal and drops an update from one to the other, which it counts all the same. So
 * such columns are first set to a value that equals neither. Null where no column needs it.
 */
export function unequalStatement(qualified: string, contract: Contract, difference: string): string | null {
  const coarse = contract.columns.filter(
    (column) => !column.key && column.type.kind === 'other' && /^interval$/i.test(column.type.native),
  )
  if (coarse.length === 0) return null
  const key = contract.columns.filter((column) => column.key)
  return `update ${qualified} as stet_t
   set ${coarse.map((column) => `${quoteIdentifier(column.name)} = interval '98765 years'`).join(',\n       ')}
  from ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'update'
   and ${keyMatchSql(key, DIFFERENCE)}`
}

/**
 * Takes out the rows that are to be written anew. Where it may be done, this is half as dear as an update, which has to
 * unpack every part of every column that it touches (10,000 of 1M rows, spread evenly: 0.25 s against 0.5 s).
 */
export function removeStatement(qualified: string, contract: Contract, difference: string): string {
  const key = contract.columns.filter((column) => column.key)
  return `delete from ${qualified} as stet_t
 using ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'update'
   and ${keyMatchSql(key, DIFFERENCE)}`
}

/** Inserts the rows of the difference that are new, or those that have been removed to be written anew. */
export function insertStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  op: 'insert' | 'update',
): string {
  const kept = keptAssignments(contract)
  const names = [...contract.columns.map((column) => column.name), ...kept.map(([name]) => name)]
  const values = [
    ...contract.columns.map((column) => storedForm(column, `${DIFFERENCE}.${column.id}`)),
    ...kept.map(([, value]) => value),
  ]
  return `insert into ${qualified} (${names.map(quoteIdentifier).join(', ')})
select ${values.join(', ')}
  from ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = '${op}'`
}

/** `now()` is the time at which the transaction began, one for all rows of a run. */
function keptAssignments(contract: Contract): [string, string][] {
  const assignments: [string, string][] = []
  if (contract.keep.updatedAt !== null) assignments.push([contract.keep.updatedAt, 'now()'])
  if (contract.keep.contentHash !== null)
    assignments.push([contract.keep.contentHash, `${DIFFERENCE}.content_hash`])
  return assignments
}
