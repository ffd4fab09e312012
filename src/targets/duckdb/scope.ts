import { quoteIdentifier } from '../../local/quote.ts'
import { localTypeOf } from '../../local/typing.ts'
import type { Contract, ContractColumn } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { RowsInScope, Scope } from '../../model/target.ts'
import { readColumnSql } from './forms.ts'
import { sliceSql } from './slice.ts'

/**
 * The target's rows in scope as a view over the attached file: nothing is copied, and nobody can write the file before
 * `apply` does.
 */
export async function viewRowsInScope(
  local: LocalConnection,
  qualified: string,
  contract: Contract,
  scope: Scope,
): Promise<RowsInScope> {
  const table = local.newName('in_scope')
  const key = contract.columns.filter((column) => column.key)
  const columns = contract.columns.map((column) => `${readColumnSql(column)} as ${column.id}`)
  const rowId = key.length === 0 ? `, stet_t.rowid::varchar as row_id` : ''
  const { gone } = contract.keep
  const isGone = gone === null ? '' : `, stet_t.${quoteIdentifier(gone)} is not null as is_gone`
  await local.run(`
    create view ${table} as
    select ${columns.join(', ')}${rowId}${isGone}
      from ${qualified} as stet_t
           ${narrowedSql(contract, scope)}`)
  const rows = await local.count(`select count(*) from ${table}`)
  return { table, rows, unheld: [] }
}

/** The rows in scope of a table that is not there. */
export async function viewNoRows(local: LocalConnection, contract: Contract): Promise<RowsInScope> {
  const table = local.newName('in_scope')
  const columns = contract.columns.map((column) => `null::${localTypeOf(column)} as ${column.id}`)
  const isGone = contract.keep.gone === null ? '' : ', false as is_gone'
  await local.run(
    `create view ${table} as select ${columns.join(', ')}, null::varchar as row_id${isGone} where false`,
  )
  return { table, rows: 0, unheld: [] }
}

/** Narrows the target's rows `stet_t` to those whose keys the load has, or to those of the slice. */
function narrowedSql(contract: Contract, scope: Scope): string {
  switch (scope.kind) {
    case 'table':
      return ''
    case 'keys': {
      const key = contract.columns.filter((column) => column.key)
      return `semi join ${scope.keys} as stet_k on ${keyMatchSql(key, 'stet_k')}`
    }
    case 'slice':
      return `where ${sliceSql(contract, scope.slice)}`
    default:
      return scope satisfies never
  }
}

/** The condition under which the target's row `stet_t` has the key of a local row; NULL is a value like any other. */
export function keyMatchSql(key: readonly ContractColumn[], alias: string): string {
  return key
    .map((column) => `${readColumnSql(column)} is not distinct from ${alias}.${column.id}`)
    .join(' and ')
}
