import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import { localTypeOf } from '../../local/typing.ts'
import { isNumberType, isTimeType } from '../../model/column-type.ts'
import type { Contract, ContractColumn } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { RowsInScope, Scope } from '../../model/target.ts'
import type { CatalogTable } from './catalog.ts'
import type { Connection } from './connection.ts'
import { type PulledColumn, pullRows } from './pull.ts'
import { pushRows } from './push.ts'
import { inSliceSql } from './slice-sql.ts'
import { keyMatch, pulledExpression, rowIdExpression, storageBase } from './sql.ts'

/**
 * Up to so many keys are sent inside the query. A table of keys would give the transaction a number, and an open
 * transaction with a number holds back vacuum in the whole database for as long as rows are pulled and compared.
 */
const KEYS_INLINE_MAX = 100_000

export interface PullScopeOptions {
  readonly connection: Connection
  readonly local: LocalConnection
  readonly table: CatalogTable
  readonly contract: Contract
  readonly scope: Scope
  /** A read-only transaction cannot make a table of keys. */
  readonly readOnly: boolean
}

/** Brings the target's rows in scope into the local engine, every value exactly. */
export async function pullScope(options: PullScopeOptions): Promise<RowsInScope> {
  const { connection, local, contract, scope } = options
  const keyless = contract.columns.every((column) => !column.key)
  const { gone } = contract.keep
  const columns = [
    ...contract.columns.map(pulledColumn),
    ...(keyless ? [{ id: 'row_id', readAs: 'VARCHAR', value: 'row_id', unheld: null }] : []),
    ...(gone === null ? [] : [{ id: 'is_gone', readAs: 'BOOLEAN', value: 'is_gone', unheld: null }]),
  ]
  const selected = [
    '1',
    ...contract.columns.map((column) => pulledExpression(column)),
    ...(keyless ? [rowIdExpression()] : []),
    ...(gone === null ? [] : [`t.${quoteIdentifier(gone)} is not null`]),
  ].join(', ')
  return pullRows(connection, local, await queryOf(options, selected, scope), columns)
}

async function queryOf(options: PullScopeOptions, selected: string, scope: Scope): Promise<string> {
  const { table } = options
  switch (scope.kind) {
    case 'table':
      return `select ${selected} from ${table.identity.qualified} as t`
    case 'slice':
      return `select ${selected} from ${table.identity.qualified} as t where ${inSliceSql(table, scope.slice, 't')}`
    case 'keys':
      return queryByKeys(options, selected, scope)
  }
}

async function queryByKeys(
  { connection, local, table, contract, readOnly }: PullScopeOptions,
  selected: string,
  scope: Extract<Scope, { kind: 'keys' }>,
): Promise<string> {
  const key = contract.columns.filter((column) => column.key)
  const keys =
    scope.count <= KEYS_INLINE_MAX || readOnly
      ? await inlineKeys(local, table, key, scope.keys)
      : await sendKeys(connection, local, table, key, scope.keys)
  // Only `=`: a comparison that lets NULL match NULL would be answered by a nested loop over the whole table.
  const joined = `
    select ${selected}
      from ${keys} as k (${key.map(({ id }) => id).join(', ')})
      join ${table.identity.qualified} as t
        on ${keyMatch(key, 't', 'k')}
       ${await partitionRange(local, table, key, scope.keys)}`
  const nullable = key.filter(
    (column) => table.columns.find(({ name }) => name === column.name)?.nullable === true,
  )
  if (nullable.length === 0 || scope.withoutNulls === true) return joined
  // Rows with a NULL in the key are few; all of them come, and the comparison takes what it looks for.
  const anyNull = nullable.map((column) => `t.${quoteIdentifier(column.name)} is null`).join(' or ')
  return `${joined}\n union all\n select ${selected} from ${table.identity.qualified} as t where ${anyNull}`
}

/** The keys as array literals in the query's own text (COPY takes no parameters). */
async function inlineKeys(
  local: LocalConnection,
  table: CatalogTable,
  key: readonly ContractColumn[],
  keys: string,
): Promise<string> {
  const element = (id: string) =>
    `case when ${id} is null then 'NULL' else '"' || replace(replace(${id}::varchar, '\\', '\\\\'), '"', '\\"') || '"' end`
  const lists = key.map(({ id }) => `string_agg(${element(id)}, ',' order by rowid) as ${id}`)
  const [row] = await local.rows(`select ${lists.join(', ')} from ${keys}`)
  const arrays = key.map((column) => {
    const elements = row?.[column.id]
    const literal = `{${typeof elements === 'string' ? elements : ''}}`
    return `${quoteLiteral(literal)}::${storageBase(table, column)}[]`
  })
  return `unnest(${arrays.join(', ')})`
}

/** More keys than a query should carry go into a table of the target's own types and collations. */
async function sendKeys(
  connection: Connection,
  local: LocalConnection,
  table: CatalogTable,
  key: readonly ContractColumn[],
  keys: string,
): Promise<string> {
  const columns = key.map((column) => `t.${quoteIdentifier(column.name)} as ${column.id}`)
  await connection.query(`
    drop table if exists pg_temp.stet_keys;
    create temp table stet_keys on commit drop as
    select ${columns.join(', ')} from ${table.identity.qualified} as t with no data`)
  const ids = key.map(({ id }) => id).join(', ')
  await pushRows(connection, local, {
    select: `select ${ids} from ${keys}`,
    into: `pg_temp.stet_keys (${ids})`,
  })
  await connection.query('analyze pg_temp.stet_keys')
  return `(select ${ids} from pg_temp.stet_keys)`
}

/** The range of a partition column that is part of the key, as literals, so that the planner visits only those partitions. */
async function partitionRange(
  local: LocalConnection,
  table: CatalogTable,
  key: readonly ContractColumn[],
  keys: string,
): Promise<string> {
  const pruning = key.filter(
    (column) =>
      table.partitionColumns?.includes(column.name) === true &&
      !column.asText &&
      // Their order is the same in the local engine and in PostgreSQL, whatever the collation.
      (isNumberType(column.type) || isTimeType(column.type)),
  )
  const conditions: string[] = []
  for (const column of pruning) {
    const [range] = await local.rows(
      `select min(${column.id})::varchar as low, max(${column.id})::varchar as high from ${keys}`,
    )
    if (typeof range?.low !== 'string' || typeof range.high !== 'string') continue
    const type = storageBase(table, column)
    conditions.push(
      `and t.${quoteIdentifier(column.name)} between ${quoteLiteral(range.low)}::${type} and ${quoteLiteral(range.high)}::${type}`,
    )
  }
  return conditions.join('\n       ')
}

/**
 * How one column of the server's CSV becomes a local value. The reader converts by itself only where that cannot go
 * wrong: it reads a date before our era as one after it, and a timestamptz that it does not understand as NULL.
 */
function pulledColumn(column: ContractColumn): PulledColumn {
  const { id, type } = column
  const local = localTypeOf(column)
  if (local === 'VARCHAR') return { id, readAs: 'VARCHAR', value: id, unheld: null }
  const cast = `try_cast(${id} as ${local})`
  switch (type.kind) {
    case 'date':
    case 'timestamp':
    case 'timestamptz': {
      const within = `(${id} in ('infinity', '-infinity') or (${id}[5] = '-' and ${id} not like '% BC'))`
      const unheld = `(${id} is not null and (${cast} is null or not ${within}))`
      return { id, readAs: 'VARCHAR', value: cast, unheld }
    }
    case 'numeric':
    case 'time':
      return { id, readAs: 'VARCHAR', value: cast, unheld: `(${id} is not null and ${cast} is null)` }
    default:
      return { id, readAs: local, value: id, unheld: null }
  }
}
