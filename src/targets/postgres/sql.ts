import { quoteIdentifier } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract, ContractColumn } from '../../model/columns.ts'
import type { Slice } from '../../model/slice.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { CatalogTable } from './catalog.ts'
import type { KeyEnforcement } from './key-checks.ts'
import { inSliceSql } from './slice-sql.ts'

/** All that decides the statements of one write. */
export interface WriteContext {
  readonly table: CatalogTable
  readonly contract: Contract
  readonly write: WriteStrategy
  readonly enforcement: KeyEnforcement
  /** The part of the table that the run owns; null where it owns the whole. */
  readonly slice: Slice | null
}

/** The difference as it was sent: `n` numbers its rows, `c0`, `c1`, … are the contract's columns in the target's types. */
export const DIFFERENCE = 'pg_temp.stet_difference'
/** Which rows of the difference have their key in the table, and whether marked as gone; those rows are locked. */
export const EXISTING = 'pg_temp.stet_existing'
/** Keys of the rows that the database says it has written. */
export const WRITTEN = 'pg_temp.stet_written'
/** Rows of the difference that are to be in the table. */
export const PRESENT = `d.op in ('insert', 'update')`

export function keyOf(contract: Contract): readonly ContractColumn[] {
  return contract.columns.filter((column) => column.key)
}

/** `t."a" = d.c0 and …`; rows with a NULL in the key never match. */
export function keyMatch(key: readonly ContractColumn[], table: string, local: string): string {
  return key.map((column) => `${table}.${quoteIdentifier(column.name)} = ${local}.${column.id}`).join(' and ')
}

/**
 * The same for the table's row `t` and the difference's row `d`, with NULL as a value like any other where the key may
 * hold it. Where the slice is part of the key its bounds are said as well: they keep the other partitions out of the join.
 */
export function rowMatch(context: WriteContext): string {
  const { table, contract } = context
  const match = keyOf(contract).map((column) => {
    const name = inTable('t')(column)
    const value = inDifference(column)
    const nullable = table.columns.find((found) => found.name === column.name)?.nullable === true
    // `or` and not `is not distinct from`: an index serves both halves of the first, and neither of the second.
    return nullable ? `(${name} = ${value} or (${name} is null and ${value} is null))` : `${name} = ${value}`
  })
  return [...match, ...(isSlicedByKey(context) ? ownedSql(context) : [])].join(' and ')
}

/** Whether a key can only ever be in one slice. */
export function isSlicedByKey({ contract, write }: WriteContext): boolean {
  return write.strategy === 'replace-partition' && keyOf(contract).some(({ name }) => name === write.by)
}

/** The condition that a row `t` is one that the run owns, as a list for further ones; empty where it owns the whole table. */
export function ownedSql({ table, slice }: WriteContext): readonly string[] {
  return slice === null ? [] : [inSliceSql(table, slice, 't')]
}

/** The type below any domain, without a modifier that would cut. */
export function storageBase(table: CatalogTable, column: ContractColumn): string {
  return table.columns.find(({ name }) => name === column.name)?.base ?? formatColumnType(column.type)
}

/** What the pull selects: the text that a cast gives, not COPY's own, where the two differ (`inet`, `char(n)`). */
export function pulledExpression(column: ContractColumn): string {
  const name = `t.${quoteIdentifier(column.name)}`
  return column.asText || column.type.kind === 'other' || column.type.kind === 'char' ? `${name}::text` : name
}

/** A row's place. It names the row only within its partition and its transaction. */
export function rowIdExpression(): string {
  return `t.tableoid::text || ' ' || t.ctid::text`
}

/**
 * Whether two values are different ones. Types whose own equality is coarser than their value, or missing, are compared
 * by their text, as the local engine compares them.
 */
export function differs(
  { table }: WriteContext,
  column: ContractColumn,
  left: string,
  right: string,
): string {
  const found = table.columns.find(({ name }) => name === column.name)
  const byText =
    column.asText ||
    found?.coarseCollation != null ||
    ['real', 'double', 'json', 'jsonb', 'char', 'other'].includes(column.type.kind)
  const side = (value: string) => (byText ? `${value}::text collate "C"` : value)
  return `${side(left)} is distinct from ${side(right)}`
}

export function comparedColumns(contract: Contract): readonly ContractColumn[] {
  return contract.columns.filter((column) => !column.key && !column.ignored)
}

/** Whether the table's row `t` is to be changed: it holds something else, or is marked as gone and has come back. */
export function rowDiffers(context: WriteContext, value: (column: ContractColumn) => string): string {
  const { gone } = context.contract.keep
  const parts = comparedColumns(context.contract).map((column) =>
    differs(context, column, inTable('t')(column), value(column)),
  )
  if (gone !== null) parts.push(`t.${quoteIdentifier(gone)} is not null`)
  return parts.length === 0 ? 'false' : `(${parts.join('\n         or ')})`
}

export const inTable = (alias: string) => (column: ContractColumn) =>
  `${alias}.${quoteIdentifier(column.name)}`
export const inDifference = (column: ContractColumn) => `d.${column.id}`
export const inExcluded = (column: ContractColumn) => `excluded.${quoteIdentifier(column.name)}`

/** Whether the table's row is newer than the load's (G5). Only an upsert minds: what replaces follows the load. */
export function tableIsNewer(
  { contract, write }: WriteContext,
  value: (column: ContractColumn) => string,
): string | null {
  const newest = contract.columns.find((column) => column.newest)
  if (newest === undefined || write.strategy !== 'upsert') return null
  return `coalesce(${value(newest)} < ${inTable('t')(newest)}, false)`
}

/** Rows of the difference of which nothing is known yet. */
export function notSettled(context: WriteContext): string {
  return `not exists (select from ${EXISTING} as e where e.n = d.n)
     and not exists (select from ${WRITTEN} as w where ${sameKey(context, 'w', 'd')})`
}

/** Keys of two of our own tables. Arrays, because their `=` takes NULL for equal and can still be hashed. */
export function sameKey({ contract, table }: WriteContext, left: string, right: string): string {
  return keyOf(contract)
    .map(({ id, name }) =>
      table.columns.find((found) => found.name === name)?.nullable === true
        ? `array[${left}.${id}] = array[${right}.${id}]`
        : `${left}.${id} = ${right}.${id}`,
    )
    .join(' and ')
}

/** What an update sets: the load's values, the kept columns, and no mark. */
export function assignments(
  { contract }: WriteContext,
  value: (column: ContractColumn) => string,
  hash: string,
): string {
  const { updatedAt, contentHash, gone } = contract.keep
  const list = contract.columns
    .filter((column) => !column.key)
    .map((column) => `${quoteIdentifier(column.name)} = ${value(column)}`)
  if (contentHash !== null) list.push(`${quoteIdentifier(contentHash)} = ${hash}`)
  if (updatedAt !== null) list.push(`${quoteIdentifier(updatedAt)} = now()`)
  if (gone !== null) list.push(`${quoteIdentifier(gone)} = null`)
  return list.join(',\n        ')
}
