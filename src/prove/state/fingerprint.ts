import { createHash } from 'node:crypto'
import type { Session } from '../sandbox/cluster.ts'
import { hashOf, hashOfRow } from './hashing.ts'
import type { Ignore } from './ignore.ts'
import { type ColumnShape, listDefinitions, listSequences, listTables, type TableShape } from './tables.ts'

export interface TableState {
  readonly rows: number
  /** All columns that count. */
  readonly full: string
  /** Without those the database makes up. */
  readonly content: string
  readonly columns: ReadonlyMap<string, string>
}

/** What a database holds, in a form that two of them can be compared by. */
export interface Fingerprint {
  readonly tables: ReadonlyMap<string, TableState>
  readonly definitions: readonly string[]
  readonly sequences: readonly string[]
}

export async function fingerprint(session: Session, ignore: Ignore): Promise<Fingerprint> {
  const tables = new Map<string, TableState>()
  for (const table of await listTables(session)) {
    if (!ignore.table(table.name)) tables.set(table.name, await stateOf(session, table, ignore))
  }
  const [definitions, sequences] = [await listDefinitions(session), await listSequences(session)]
  return { tables, definitions, sequences }
}

export function countingColumns(table: TableShape, ignore: Ignore): readonly ColumnShape[] {
  return table.columns
    .filter((column) => !ignore.column(table.name, column.name))
    .map((column) => ({ ...column, varies: ignore.varies(table.name, column.name) }))
}

/**
 * Sums of hashes: in any order the same, and unlike XOR a row that is there twice does not cancel itself out. sum()
 * of bigint counts in 128 bits and does not wrap. Two seeds, as one 64-bit hash of millions of rows may collide.
 */
async function stateOf(session: Session, table: TableShape, ignore: Ignore): Promise<TableState> {
  const counting = countingColumns(table, ignore)
  const names = counting.map((_, n) => `h${n}`)
  const content = names.filter((_, n) => counting[n]?.isGenerated !== true)
  const hashes = counting.map((column, n) => `${hashOf(column)} as h${n}`)
  const [row] = await session.query(`
select count(*) as rows,
       concat_ws(':', sum(${hashOfRow(names, 1)}), sum(${hashOfRow(names, 2)})) as full_hash,
       concat_ws(':', sum(${hashOfRow(content, 1)}), sum(${hashOfRow(content, 2)})) as content_hash
       ${names.map((name) => `, concat_ws(':', count(${name}), sum(${name})) as ${name}`).join('')}
  from (select ${hashes.join(', ')} from only ${table.reference}) as hashed`)
  return {
    rows: Number(row?.rows),
    full: row?.full_hash ?? '',
    content: row?.content_hash ?? '',
    columns: new Map(counting.map(({ name }, n) => [name, row?.[`h${n}`] ?? ''])),
  }
}

/** Two states with one digest are one state for every purpose here. */
export function digestOf({ tables, definitions, sequences }: Fingerprint): string {
  const hash = createHash('sha256')
  for (const [name, { rows, full }] of tables) hash.update(`${name} ${rows} ${full}\n`)
  for (const line of [...definitions, ...sequences]) hash.update(`${line}\n`)
  return hash.digest('hex')
}

/**
 * Columns that two clean runs fill differently, as `table.column`. Only of tables with the same number of rows: else
 * the runs themselves differ.
 */
export function volatileColumns(
  one: ReadonlyMap<string, TableState>,
  other: ReadonlyMap<string, TableState>,
): readonly string[] {
  const found: string[] = []
  for (const [name, table] of one) {
    const twin = other.get(name)
    if (twin === undefined || twin.rows !== table.rows) continue
    for (const [column, hash] of table.columns) {
      if (twin.columns.get(column) !== hash) found.push(`${name}.${column}`)
    }
  }
  return found
}

export interface Touched {
  readonly table: string
  readonly rows: number
  readonly of: number
}

/**
 * Rows written by the last `transactions` transactions. xmin moves on every write, also on one that sets equal
 * values, where updated_at would not.
 */
export async function touchedRows(
  session: Session,
  transactions: bigint,
  ignore: Ignore,
): Promise<readonly Touched[]> {
  const touched: Touched[] = []
  for (const table of await listTables(session)) {
    if (ignore.table(table.name)) continue
    const [row] = await session.query(
      `select count(*) filter (where age(xmin) <= $1) as rows, count(*) as total from only ${table.reference}`,
      [transactions],
    )
    const rows = Number(row?.rows)
    if (rows > 0) touched.push({ table: table.name, rows, of: Number(row?.total) })
  }
  return touched
}
