import type { WriteStrategy } from '../../model/write.ts'
import type { TableIdentity } from './catalog.ts'
import * as removal from './removal-sql.ts'
import * as settle from './settle-sql.ts'
import type { SliceWay } from './slice-apply.ts'
import { isSlicedByKey, type WriteContext } from './sql.ts'
import { swapStatements } from './swap.ts'
import { addKeySql, createTableSql, fillTableSql, newTableTarget } from './table-sql.ts'
import * as sql from './write-sql.ts'

/** What `apply` would send, for people. */
export function statementsOf(
  context: Omit<WriteContext, 'table'> & { readonly table: WriteContext['table'] | null },
  identity: TableIdentity,
  /** How a slice would be applied, and how the difference is found where that happens in the server. */
  {
    way = null,
    found = null,
  }: { readonly way?: SliceWay | null; readonly found?: readonly string[] | null } = {},
): readonly string[] {
  const { table, contract, write } = context
  if (table === null) {
    const key = addKeySql(identity, contract, write)
    return [
      ...(found ?? []),
      createTableSql(identity, contract),
      found === null
        ? `copy ${newTableTarget(identity, contract)} from stdin (format text, freeze)`
        : fillTableSql(identity, contract, 'pg_temp.stet_stage'),
      ...(key === null ? [] : [key]),
    ]
  }
  const full: WriteContext = { ...context, table }
  const difference = found ?? [
    sql.createDifferenceSql(full),
    `copy ${sql.differenceTarget(contract)} from stdin (format text)`,
  ]
  if (way?.how === 'swap' && write.strategy === 'replace-partition') {
    const swapped = swapStatements(way.swap, difference)
    if (write.apply === 'swap') return swapped
    return [
      '-- where less than a third of the slice changes',
      ...inPlace(full, difference),
      '-- else',
      ...swapped,
    ]
  }
  return inPlace(full, difference)
}

function inPlace(full: WriteContext, difference: readonly string[]): readonly string[] {
  return [
    ...difference,
    ...(full.enforcement === 'table lock' ? [sql.lockTableSql(full)] : []),
    ...removals(full),
    ...(full.enforcement === 'none' ? [sql.appendSql(full)] : writes(full)),
  ]
}

function removals(context: WriteContext): readonly string[] {
  const { gone } = context.contract.keep
  switch (missingOf(context.write)) {
    case 'keep':
      return []
    case 'delete':
      return [removal.deleteSql(context)]
    case 'mark':
      return gone === null ? [] : [removal.markSql(context, gone)]
  }
}

/** What becomes of rows that the load no longer has. */
function missingOf(write: WriteStrategy): 'keep' | 'delete' | 'mark' {
  switch (write.strategy) {
    case 'insert-once':
      return 'keep'
    case 'replace-table':
      return 'delete'
    case 'upsert':
      return write.missing ?? 'keep'
    case 'replace-partition':
      return write.missing ?? 'delete'
  }
}

function writes(context: WriteContext): readonly string[] {
  const { write, slice, enforcement } = context
  const changes = write.strategy !== 'insert-once'
  const isBound = write.strategy === 'replace-partition' && !isSlicedByKey(context)
  return [
    sql.createWorkTablesSql(context),
    ...(changes || enforcement === 'table lock' ? [sql.lookUpSql(context, 1)] : []),
    ...(isBound && slice !== null ? [settle.outsideSql(context, slice, 1)] : []),
    ...(changes ? [sql.updateSql(context, 1)] : []),
    sql.insertSql(context),
    ...(changes ? [settle.classifySql(context)] : []),
  ]
}
