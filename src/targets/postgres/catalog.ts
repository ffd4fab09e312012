import { quoteIdentifier } from '../../local/quote.ts'
import { parseColumnType } from '../../model/column-type.ts'
import type { TargetColumn, UniqueRule } from '../../model/target.ts'
import type { TableName } from '../shared/table-name.ts'
import type { Connection } from './connection.ts'

/** Which table is meant, with the schema that the server's search path gives where the user named none. */
export interface TableIdentity {
  readonly schema: string
  readonly table: string
  /** Quoted where needed, as the server prints it. */
  readonly qualified: string
  /** The search path under which all this was found. */
  readonly searchPath: string
  readonly schemaExists: boolean
}

/** A column with what the checks need beyond {@link TargetColumn}. */
export interface CatalogColumn extends TargetColumn {
  /** The type without its modifier, below any domain: `numeric` of `numeric(12,2)`. */
  readonly base: string
  /** The type below any domain, with its modifier. */
  readonly storage: string
  readonly typeCategory: string
  readonly alwaysIdentity: boolean
  /** A collation that takes different texts for equal; its name. */
  readonly coarseCollation: string | null
  readonly comment: string | null
}

/** A unique index, with all that decides whether it enforces a key. */
export interface UniqueIndex {
  readonly name: string
  /** Null where one of its parts is an expression. */
  readonly columns: readonly string[] | null
  readonly partial: boolean
  readonly immediate: boolean
  readonly valid: boolean
  readonly nullsNotDistinct: boolean
  readonly coarseCollation: string | null
}

interface Trigger {
  readonly name: string
  /** Quoted where needed: the partition whose own trigger it is; null for one of the table itself. */
  readonly partition: string | null
  readonly onInsert: boolean
  readonly onUpdate: boolean
  readonly onDelete: boolean
  readonly before: boolean
}

/** A table as the catalogue has it. */
export interface CatalogTable {
  readonly identity: TableIdentity
  readonly oid: string
  /** `r` a table, `p` a partitioned one, `v` a view, and so on. */
  readonly kind: string
  readonly columns: readonly CatalogColumn[]
  readonly uniques: readonly UniqueIndex[]
  readonly rowTriggers: readonly Trigger[]
  readonly rules: readonly string[]
  readonly hasInheritanceChildren: boolean
  /** Columns that decide in which partition a row lies; null where an expression does. */
  readonly partitionColumns: readonly string[] | null
  readonly rowsEstimate: number
}

/** Below this many 8 kB pages counting is as cheap as asking for the estimate. */
const PAGES_COUNTED_MAX = 1_000

/** Finds out which table a name means, whether or not it exists. */
export async function identify(connection: Connection, name: TableName): Promise<TableIdentity> {
  const named = name.schema === null ? quoteIdentifier(name.table) : qualify(name.schema, name.table)
  // to_regclass answers null where a plain cast would fail, also for a schema that is not there.
  const [row] = await connection.query(
    `select coalesce(n.nspname, $2, current_schema()) as schema,
            coalesce(c.relname, $3) as table,
            quote_ident(coalesce(n.nspname, $2, current_schema())) || '.' || quote_ident(coalesce(c.relname, $3)) as qualified,
            current_setting('search_path') as search_path,
            exists (select from pg_namespace where nspname = coalesce(n.nspname, $2, current_schema())) as schema_exists
       from (select to_regclass($1) as oid) as found
       left join pg_class as c on c.oid = found.oid
       left join pg_namespace as n on n.oid = c.relnamespace`,
    [named, name.schema, name.table],
  )
  return {
    schema: row?.schema ?? '',
    table: row?.table ?? name.table,
    qualified: row?.qualified ?? named,
    searchPath: row?.search_path ?? '',
    schemaExists: row?.schema_exists === 't',
  }
}

/**
 * Reads all that is known of a table, or null where there is none.
 *
 * @param options.counting Whether to find out how many rows there are, which may mean counting them; else 0.
 */
export async function readCatalog(
  connection: Connection,
  identity: TableIdentity,
  { counting }: { readonly counting: boolean },
): Promise<CatalogTable | null> {
  const [table] = await connection.query(
    `select c.oid, c.relkind as kind,
            c.relkind = 'r' and exists (select from pg_inherits where inhparent = c.oid) as has_children,
            (select p.partattrs::text from pg_partitioned_table as p where p.partrelid = c.oid) as partition_columns
       from pg_class as c
       join pg_namespace as n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = $2`,
    [identity.schema, identity.table],
  )
  const oid = table?.oid
  if (table === undefined || oid === undefined || oid === null) return null
  const columns = await readColumns(connection, oid)
  const nameByNumber = new Map(columns.map(({ number, column }) => [number, column.name]))
  const kind = table.kind ?? ''
  const partitionNumbers = (table.partition_columns ?? '').split(' ').filter((part) => part !== '')
  const partitionColumns = partitionNumbers.map((number) => nameByNumber.get(number))
  return {
    identity,
    oid,
    kind,
    columns: columns.map(({ column }) => column),
    uniques: await readUniques(connection, oid),
    rowTriggers: await readTriggers(connection, oid),
    rules: (
      await connection.query(
        `select rulename as name from pg_rewrite where ev_class = $1 and rulename <> '_RETURN' order by 1`,
        [oid],
      )
    ).map((row) => row.name ?? ''),
    hasInheritanceChildren: table.has_children === 't',
    partitionColumns: partitionColumns.includes(undefined)
      ? null
      : partitionColumns.filter((name) => name !== undefined),
    rowsEstimate:
      counting && (kind === 'r' || kind === 'p') ? await estimateRows(connection, identity, oid) : 0,
  }
}

/** How many rows there are: counted where that is cheap, else the statistics' word, else the planner's guess. */
async function estimateRows(connection: Connection, identity: TableIdentity, oid: string): Promise<number> {
  // Asked apart, because pg_partition_tree() locks all partitions.
  const [row] = await connection.query(
    `with part as (
       select $1::oid as relid
       union
       select relid from pg_partition_tree($1::oid)
     )
     select sum(c.reltuples)::bigint as tuples,
            bool_or(c.reltuples < 0) as unknown,
            sum(pg_relation_size(c.oid)) / 8192 <= ${PAGES_COUNTED_MAX} as countable
       from part
       join pg_class as c on c.oid = part.relid
      where c.relkind in ('r', 'f')`,
    [oid],
  )
  if (row?.countable !== 'f') {
    const [counted] = await connection.query(`select count(*) as rows from ${identity.qualified}`)
    return Number(counted?.rows ?? 0)
  }
  if (row.unknown === 'f') return Number(row.tuples ?? 0)
  // Nobody has analysed it since it was filled. The planner goes by the size of the file and the width of a row.
  const [explained] = await connection.query(`explain (format json) select from ${identity.qualified}`)
  const plans = JSON.parse(Object.values(explained ?? {})[0] ?? '[]') as readonly {
    readonly Plan: { readonly 'Plan Rows': number }
  }[]
  return plans[0]?.Plan['Plan Rows'] ?? 0
}

async function readColumns(
  connection: Connection,
  oid: string,
): Promise<readonly { number: string; column: CatalogColumn }[]> {
  // A domain is read as what lies below it: its values are those, and its checks are the server's business.
  const rows = await connection.query(
    `with recursive below (attnum, type, typmod) as (
       select attnum, atttypid, atttypmod
         from pg_attribute
        where attrelid = $1 and attnum > 0 and not attisdropped
       union all
       select below.attnum, t.typbasetype, t.typtypmod
         from below
         join pg_type as t on t.oid = below.type
        where t.typtype = 'd'
     )
     select a.attnum as number, a.attname as name,
            format_type(a.atttypid, a.atttypmod) as native,
            format_type(below.type, below.typmod) as storage,
            format_type(below.type, -1) as base,
            base.typtype as category,
            not a.attnotnull as nullable,
            a.attgenerated <> '' as generated,
            a.attidentity = 'a' as always_identity,
            not a.attnotnull or a.atthasdef or a.attidentity <> '' as optional,
            case when not coll.collisdeterministic then coll.collname end as coarse_collation,
            col_description(a.attrelid, a.attnum) as comment
       from pg_attribute as a
       join below on below.attnum = a.attnum
       join pg_type as base on base.oid = below.type and base.typtype <> 'd'
       left join pg_collation as coll on coll.oid = a.attcollation
      where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
      order by a.attnum`,
    [oid],
  )
  return rows.map((row) => {
    const storage = row.storage ?? ''
    const comment = row.comment ?? null
    const kept = KEPT_ROLES.find((role) => KEPT_COMMENTS[role] === comment)
    return {
      number: row.number ?? '',
      column: {
        name: row.name ?? '',
        type: parseColumnType(storage),
        native: row.native ?? storage,
        nullable: row.nullable === 't',
        generated: row.generated === 't',
        optional: row.optional === 't',
        kept,
        base: row.base ?? storage,
        storage,
        typeCategory: row.category ?? 'b',
        alwaysIdentity: row.always_identity === 't',
        coarseCollation: row.coarse_collation ?? null,
        comment,
      },
    }
  })
}

/** How a column that Stet made for itself is marked; the comment lives and dies with the column. */
export const KEPT_COMMENTS = {
  updatedAt: 'stet:updated_at',
  contentHash: 'stet:content_hash',
  gone: 'stet:gone',
} as const

/** The columns that Stet may keep, by what they are for. */
export const KEPT_ROLES = ['updatedAt', 'contentHash', 'gone'] as const

async function readUniques(connection: Connection, oid: string): Promise<readonly UniqueIndex[]> {
  const rows = await connection.query(
    `select c.relname as name,
            i.indpred is not null as partial,
            i.indimmediate as immediate,
            i.indisvalid as valid,
            -- the column came with PostgreSQL 15
            coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) as nulls_not_distinct,
            (select json_agg(a.attname order by k.place)
               from unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
               left join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum and k.attnum > 0
              where k.place <= i.indnkeyatts) as columns,
            (select min(coll.collname)
               from unnest(i.indcollation::oid[]) as used (oid)
               join pg_collation as coll on coll.oid = used.oid
              where not coll.collisdeterministic) as coarse_collation
       from pg_index as i
       join pg_class as c on c.oid = i.indexrelid
      where i.indrelid = $1 and i.indisunique
      order by not i.indisprimary, c.relname`,
    [oid],
  )
  return rows.map((row) => {
    const columns = JSON.parse(row.columns ?? '[]') as readonly (string | null)[]
    return {
      name: row.name ?? '',
      columns: columns.includes(null) ? null : columns.filter((name) => name !== null),
      partial: row.partial === 't',
      immediate: row.immediate === 't',
      valid: row.valid === 't',
      nullsNotDistinct: row.nulls_not_distinct === 't',
      coarseCollation: row.coarse_collation ?? null,
    }
  })
}

/** What a plan has to know of a unique index. */
export function uniqueRule({ name, columns, partial, immediate, nullsNotDistinct }: UniqueIndex): UniqueRule {
  return {
    name: `unique index "${name}"`,
    columns: partial ? null : columns,
    nullsNotDistinct,
    rowByRow: immediate,
  }
}

/** The table's own and those of its partitions. Read from the catalogue alone: `pg_partition_tree()` locks all partitions. */
async function readTriggers(connection: Connection, oid: string): Promise<readonly Trigger[]> {
  const rows = await connection.query(
    `with recursive part (oid) as (
       select $1::oid
       union
       select i.inhrelid
         from pg_inherits as i
         join part on i.inhparent = part.oid
     )
     select t.tgname as name,
            case when t.tgrelid <> $1::oid then t.tgrelid::regclass::text end as partition,
            t.tgtype & 4 <> 0 as on_insert,
            t.tgtype & 16 <> 0 as on_update,
            t.tgtype & 8 <> 0 as on_delete,
            t.tgtype & 2 <> 0 as before
       from pg_trigger as t
       join part on part.oid = t.tgrelid
      where not t.tgisinternal and t.tgparentid = 0 and t.tgenabled <> 'D' and t.tgtype & 1 <> 0
      order by 2 nulls first, 1`,
    [oid],
  )
  return rows.map((row) => ({
    name: row.name ?? '',
    partition: row.partition ?? null,
    onInsert: row.on_insert === 't',
    onUpdate: row.on_update === 't',
    onDelete: row.on_delete === 't',
    before: row.before === 't',
  }))
}

/** What may not change between the checks and the transaction that relies on them. */
export function fingerprintOf(table: CatalogTable | null): string {
  if (table === null) return 'none'
  const { oid, kind, columns, uniques, rules } = table
  return JSON.stringify([oid, kind, columns, uniques, rules])
}

function qualify(schema: string, table: string): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`
}
