import { quoteIdentifier, quoteLiteral } from '../../../local/quote.ts'
import { formatColumnType } from '../../../model/column-type.ts'
import type { Contract, ContractColumn } from '../../../model/columns.ts'
import type { Slice } from '../../../model/slice.ts'
import type { WriteStrategy } from '../../../model/write.ts'
import type { CatalogColumn, CatalogTable, TableIdentity } from '../catalog.ts'
import type { Connection } from '../connection.ts'
import { inSliceSql } from '../slice-sql.ts'

/** The rows of the query, typed and checked: `c0`, `c1`, … in the types of the table; of one at fault also its texts. */
export const STAGE = 'pg_temp.stet_stage'

/** The connection, as far as the steps need it. */
export type Asked = Pick<Connection, 'query'>

/** What the steps of one run inside the server have in common. */
export interface RemoteContext {
  readonly identity: TableIdentity
  /** Null where the run is to make the table. */
  readonly table: CatalogTable | null
  /** The table as it is, or as the contract would make it. */
  readonly shape: CatalogTable
  readonly contract: Contract
  readonly write: WriteStrategy
}

/** What a table that does not exist yet will look like, as far as statements depend on it. */
export function shapeOf(identity: TableIdentity, contract: Contract): CatalogTable {
  const columns = contract.columns.map(({ name, type }): CatalogColumn => {
    const native = formatColumnType(type)
    // `timestamp(3)` and `bit(4)` without their modifier, `text[]` as it is.
    const base = native.replace(/\([-\d, ]*\)/, '')
    return {
      name,
      type,
      native,
      storage: native,
      base: BASE_NAMES[base] ?? base,
      nullable: true,
      generated: false,
      optional: true,
      typeCategory: 'b',
      alwaysIdentity: false,
      coarseCollation: null,
      comment: null,
    }
  })
  return {
    identity,
    oid: '',
    kind: 'r',
    columns,
    uniques: [],
    rowTriggers: [],
    rules: [],
    hasInheritanceChildren: false,
    partitionColumns: [],
    rowsEstimate: 0,
  }
}

/** As `format_type` prints them. */
const BASE_NAMES: Readonly<Record<string, string>> = {
  varchar: 'character varying',
  char: 'character',
  timestamp: 'timestamp without time zone',
  timestamptz: 'timestamp with time zone',
  time: 'time without time zone',
}

export function columnOf(shape: CatalogTable, column: ContractColumn): CatalogColumn {
  const found = shape.columns.find(({ name }) => name === column.name)
  if (found === undefined) throw new Error(`${shape.identity.qualified} has no column ${column.name}`)
  return found
}

/**
 * The stage has the columns of the load only, all nullable, with the table's types and collations, and goes with the
 * transaction. A temporary table and not one beside the target: nothing of it can be left behind, no right to create tables
 * is needed, and the query can be held to reading while its rows are written here.
 */
export function createStageSql({ table, shape, contract }: RemoteContext): string {
  const faults = 'null::text[] as raw, null::integer[] as bad'
  if (table === null) {
    const columns = contract.columns.map((column) => `${column.id} ${columnOf(shape, column).storage}`)
    return `create temp table stet_stage (${[...columns, 'raw text[]', 'bad integer[]'].join(', ')}) on commit drop`
  }
  const columns = contract.columns.map((column) => {
    const { native, storage } = columnOf(shape, column)
    const name = `t.${quoteIdentifier(column.name)}`
    // Below a domain: its checks are the table's business, and a constraint of the type would end the run without a row.
    return `${native === storage ? name : `${name}::${storage}`} as ${column.id}`
  })
  return `create temp table stet_stage on commit drop as
select ${[...columns, faults].join(', ')}
  from ${table.identity.qualified} as t
  with no data`
}

/** Whether a row `s` of the stage belongs to the slice; NULL where its value is. */
export function inStageSliceSql({ shape, contract }: RemoteContext, slice: Slice): string {
  const by = contract.columns.find(({ name }) => name === slice.by)
  if (by === undefined) return inSliceSql(shape, slice, 's')
  const renamed = { ...columnOf(shape, by), name: by.id }
  return inSliceSql({ ...shape, columns: [renamed] }, { ...slice, by: by.id }, 's')
}

/** A text as a value of a column's type. */
export function literalOf(shape: CatalogTable, column: ContractColumn, text: string): string {
  return `${quoteLiteral(text)}::${columnOf(shape, column).base}`
}
