import { StetError } from '../../errors.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract } from '../../model/columns.ts'
import type { TableIdentity } from './catalog.ts'
import type { Connection } from './connection.ts'
import { requireExactKey } from './key-checks.ts'

/** A first load must not make a table whose key every later load refuses. */
export async function requireExactNewKey(
  connection: Connection,
  identity: TableIdentity,
  contract: Contract,
): Promise<void> {
  for (const column of contract.columns.filter(({ key }) => key)) {
    const native = formatColumnType(column.type)
    const [type] =
      column.type.kind === 'other'
        ? await connection.query(
            `select typtype as category, format_type(oid, -1) as base from pg_type where oid = to_regtype($1)`,
            [native],
          )
        : []
    // What a domain stands for, and what is no type at all, the server says itself.
    if (column.type.kind === 'other' && (type === undefined || type.category === 'd')) continue
    requireExactKey(
      { identity },
      {
        name: column.name,
        type: column.type,
        native,
        base: type?.base ?? native,
        typeCategory: type?.category ?? 'b',
        coarseCollation: null,
      },
    )
  }
}

export async function requireNullsNotDistinct(
  connection: Connection,
  contract: Contract,
  nullKeys: 'reject' | 'match' | undefined,
): Promise<void> {
  if (nullKeys !== 'match' || contract.columns.every(({ key }) => !key)) return
  const [row] = await connection.query(
    `select current_setting('server_version_num')::integer >= 150000 as able`,
  )
  if (row?.able === 't') return
  throw new StetError('STET_CONFIG', 'nullKeys "match" needs PostgreSQL 15 or newer', {
    hint: 'Leave --null-keys out (nullKeys in a pipeline): a NULL in the key is then a reject',
  })
}
