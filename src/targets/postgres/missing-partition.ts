import { createHash } from 'node:crypto'
import { quoteIdentifier } from '../../local/quote.ts'
import type { Slice } from '../../model/slice.ts'
import type { CatalogTable } from './catalog.ts'
import { IDENTIFIER_BYTES_MAX } from './checks.ts'
import type { Connection } from './connection.ts'
import type { Partition } from './partitions.ts'
import { type Patience, withShortLocks } from './short-locks.ts'
import { inSliceSql } from './slice-sql.ts'

export interface MissingPartition {
  readonly table: CatalogTable
  readonly slice: Slice
  /** `for values …`. */
  readonly bound: string
  readonly rest: Partition | null
}

/**
 * Attaches a new partition for the slice, with the slice's rows that lie in the default partition. `create table …
 * partition of` would lock out every reader of the table; `attach` holds up the other writers of definitions, and those who
 * read the default partition.
 *
 * @returns the partition's name, and how many rows were moved.
 */
export async function makePartition(
  connection: Connection,
  missing: MissingPartition,
  patience: Patience,
): Promise<{ readonly name: string; readonly moved: number }> {
  const { table } = missing
  const name = await freeName(connection, missing)
  const qualified = `${quoteIdentifier(table.identity.schema)}.${quoteIdentifier(name)}`
  const what = `attach partition ${name} to ${table.identity.qualified}`
  const moved = await withShortLocks(connection, what, patience, async (tryMs) => {
    await connection.query(`set local lock_timeout = '${tryMs}ms';\n${createPartitionSql(table, qualified)}`)
    await giveToOwner(connection, table, qualified)
    const rows = await moveRows(connection, missing, qualified)
    await connection.query(
      `alter table ${table.identity.qualified} attach partition ${qualified} ${missing.bound}`,
    )
    return rows
  })
  return { name, moved }
}

/** Whether the default partition holds rows of the slice. */
export async function hasRowsInDefault(
  connection: Connection,
  { table, slice, rest }: MissingPartition,
): Promise<boolean> {
  if (rest === null) return false
  const [row] = await connection.query(
    `select exists (select from ${rest.qualified} as t where ${inSliceSql(table, slice, 't')}) as found`,
  )
  return row?.found === 't'
}

/** Indexes, foreign keys and triggers come from the table when it is attached; nothing else is a partition's own. */
function createPartitionSql({ identity }: CatalogTable, qualified: string): string {
  return `create table ${qualified} (like ${identity.qualified} including all excluding indexes excluding identity excluding statistics excluding comments)`
}

/** A member of the owner's role may make a partition; it is the owner's all the same. */
async function giveToOwner(connection: Connection, { oid }: CatalogTable, qualified: string): Promise<void> {
  const [row] = await connection.query(
    `select quote_ident(pg_get_userbyid(relowner)) as owner, pg_get_userbyid(relowner) = current_user as mine
       from pg_class where oid = $1`,
    [oid],
  )
  if (row?.mine === 't') return
  await connection.query(`alter table ${qualified} owner to ${row?.owner}`)
}

/** The table first, then its partition: the order in which other writers lock. Readers go on meanwhile. */
async function moveRows(
  connection: Connection,
  missing: MissingPartition,
  qualified: string,
): Promise<number> {
  const { table, slice, rest } = missing
  if (rest === null) return 0
  const columns = table.columns
    .filter(({ generated }) => !generated)
    .map(({ name }) => quoteIdentifier(name))
    .join(', ')
  const [row] = await connection.query(
    `lock table only ${table.identity.qualified} in share row exclusive mode;
lock table only ${rest.qualified} in share row exclusive mode;
with moved as (
  delete from ${rest.qualified} as t
   where ${inSliceSql(table, slice, 't')}
  returning ${columns}),
there as (
  insert into ${qualified} (${columns}) select ${columns} from moved returning 1)
select count(*) as rows from there`,
  )
  return Number(row?.rows)
}

/** `orders_2026_08_07`: for people, within the limit, and not the name of something that is there. */
async function freeName(connection: Connection, { table, slice }: MissingPartition): Promise<string> {
  const { schema, table: parent } = table.identity
  const plain = slice.name.toLowerCase().replace(/[^a-z0-9]+/g, '_')
  const full = `${parent}_${plain}`
  const hash = createHash('sha256').update(slice.name).digest('hex').slice(0, 8)
  const room = IDENTIFIER_BYTES_MAX - hash.length - 1
  const short = `${Buffer.from(full, 'utf8')
    .subarray(0, room)
    .toString('utf8')
    .replace(/\uFFFD$/, '')}_${hash}`
  const candidates = Buffer.byteLength(full, 'utf8') <= IDENTIFIER_BYTES_MAX ? [full, short] : [short]
  for (const name of candidates) {
    const [row] = await connection.query(
      `select to_regclass($1) is null and to_regtype($1) is null as free`,
      [`${quoteIdentifier(schema)}.${quoteIdentifier(name)}`],
    )
    if (row?.free === 't') return name
  }
  return short
}
