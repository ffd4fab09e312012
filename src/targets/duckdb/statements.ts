import { StetError } from '../../errors.ts'
import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import type { Slice } from '../../model/slice.ts'
import { readColumnSql, storedForm } from './forms.ts'
import { keptColumns } from './kept.ts'
import { keyMatchSql } from './scope.ts'
import { andInSlice } from './slice.ts'
import { nativeOfType } from './types.ts'

/** The local table with the difference, by its alias in every statement. */
const DIFFERENCE = 'stet_d'

/** Makes the table of a first load. It gets no index: one over the key costs 2.4 times the load and memory that cannot spill. */
export function createStatements(qualified: string, contract: Contract): string[] {
  const kept = keptColumns(contract.keep)
  const columns = [
    ...contract.columns.map(({ name, type }) => `${quoteIdentifier(name)} ${nativeOfType(type, name)}`),
    ...kept.map(({ name, native }) => `${quoteIdentifier(name)} ${native}`),
  ]
  return [
    `create table ${qualified} (\n  ${columns.join(',\n  ')})`,
    ...kept.map(
      ({ name, comment }) =>
        `comment on column ${qualified}.${quoteIdentifier(name)} is ${quoteLiteral(comment)}`,
    ),
  ]
}

/**
 * Deletes by key, or by the engine's own name of the row. The row is deleted only as it was compared; nobody can have
 * changed it meanwhile, so a row that is not met is a defect, which the counts show.
 */
export function deleteStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string {
  return `delete from ${qualified} as stet_t
 using ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'delete'
   and ${asComparedSql(contract)}${andInSlice(contract, slice)}`
}

/** Marks rows as gone, found as {@link deleteStatement} finds them; a mark that is there already stays as it is. */
export function markStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string {
  const { gone, updatedAt } = contract.keep
  if (gone === null)
    throw new StetError('STET_INTERNAL', 'Rows were to be marked, and no column is kept for it')
  const set = [gone, updatedAt]
    .filter((name) => name !== null)
    .map((name) => `${quoteIdentifier(name)} = now()`)
  return `update ${qualified} as stet_t
   set ${set.join(',\n       ')}
  from ${difference} as ${DIFFERENCE}
 where ${DIFFERENCE}.op = 'mark'
   and stet_t.${quoteIdentifier(gone)} is null
   and ${asComparedSql(contract)}${andInSlice(contract, slice)}`
}

/** Whether the target's row is the one that the difference carries, and still as it was pulled. */
function asComparedSql(contract: Contract): string {
  const key = contract.columns.filter((column) => column.key)
  const which = key.length > 0 ? keyMatchSql(key, DIFFERENCE) : `stet_t.rowid = ${DIFFERENCE}.row_id::bigint`
  const asCompared = contract.columns
    .filter((column) => !column.key)
    .map((column) => `\n   and ${readColumnSql(column)} is not distinct from ${DIFFERENCE}.${column.id}`)
  return `${which}${asCompared.join('')}`
}

/** Of the rows that are to be updated, those that are marked as gone. Null where no mark is kept. */
export function restoredStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string | null {
  const { gone } = contract.keep
  if (gone === null) return null
  return `select count(*)
  from ${qualified} as stet_t
       semi join ${difference} as ${DIFFERENCE} on ${toUpdateSql(contract)}
 where stet_t.${quoteIdentifier(gone)} is not null${andInSlice(contract, slice)}`
}

/** Sets the contract's columns, and what Stet keeps, only: what the source does not have is left alone. A mark is taken off. */
export function updateStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string {
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
 where ${toUpdateSql(contract)}${andInSlice(contract, slice)}`
}

/**
 * DuckDB takes `1 day` and `24:00:00` for equal and drops an update from one to the other, which it counts all the same. So
 * such columns are first set to a value that equals neither; not the one that says which slice a row belongs to, which no
 * update within the slice changes. Null where no column needs it.
 */
export function unequalStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string | null {
  const coarse = contract.columns.filter(
    (column) =>
      !column.key &&
      column.name !== slice?.by &&
      column.type.kind === 'other' &&
      /^interval$/i.test(column.type.native),
  )
  if (coarse.length === 0) return null
  return `update ${qualified} as stet_t
   set ${coarse.map((column) => `${quoteIdentifier(column.name)} = interval '98765 years'`).join(',\n       ')}
  from ${difference} as ${DIFFERENCE}
 where ${toUpdateSql(contract)}${andInSlice(contract, slice)}`
}

/**
 * Takes out the rows that are to be written anew. Where it may be done, this is half as dear as an update, which has to
 * unpack every part of every column that it touches (10,000 of 1M rows, spread evenly: 0.25 s against 0.5 s).
 */
export function removeStatement(
  qualified: string,
  contract: Contract,
  difference: string,
  slice: Slice | null,
): string {
  return `delete from ${qualified} as stet_t
 using ${difference} as ${DIFFERENCE}
 where ${toUpdateSql(contract)}${andInSlice(contract, slice)}`
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

/** Whether the target's row has the key of a row that is to be updated. */
function toUpdateSql(contract: Contract): string {
  const key = contract.columns.filter((column) => column.key)
  return `${DIFFERENCE}.op = 'update'\n   and ${keyMatchSql(key, DIFFERENCE)}`
}

/** `now()` is the time at which the transaction began, one for all rows of a run. A row that is written is not gone. */
function keptAssignments(contract: Contract): [string, string][] {
  const valueByRole = { updatedAt: 'now()', contentHash: `${DIFFERENCE}.content_hash`, gone: 'null' }
  return keptColumns(contract.keep).map(({ name, role }) => [name, valueByRole[role]])
}
