/** Keys, nullability and stamping triggers out of the catalogue of a PostgreSQL database. Reads only. */
import type { Client } from 'pg'
import { StetError } from '../../errors.ts'
import { nameFromText } from '../sql/name.ts'
import { addColumn, addKey, type DdlFact, emptyTable, looksLikeTouch, type TableDraft } from './table.ts'

const TABLES = `
select c.oid::text as id, n.nspname as schema, c.relname as name
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p', 'f')
   and n.nspname not in ('pg_catalog', 'information_schema')
   and n.nspname not like 'pg\\_toast%'
   and n.nspname not like 'pg\\_temp%'`

const COLUMNS = `
select a.attrelid::text as id,
       a.attname as name,
       a.attnotnull as not_null,
       a.attidentity <> '' or coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '')
         ~ '^(nextval|gen_random_uuid|uuid_generate|uuidv[47])' as generated,
       d.adbin is not null as defaulted
  from pg_catalog.pg_attribute as a
  left join pg_catalog.pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attnum > 0
   and not a.attisdropped
 order by a.attrelid, a.attnum`

/** Columns behind \`include\` are no part of the key; an expression has no column. */
const KEYS = `
select i.indrelid::text as id,
       i.indisprimary as primary,
       i.indpred is not null as partial,
       coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) as nulls_not_distinct,
       array(select coalesce(a.attname::text, '(expression)')
               from unnest(i.indkey::int2[]) with ordinality as k (number, place)
               left join pg_catalog.pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.number
              where k.place <= i.indnkeyatts
              order by k.place) as columns
  from pg_catalog.pg_index as i
 where i.indisunique
   and i.indisvalid`

/** Bit 4 of the type is update. */
const TRIGGERS = `
select t.tgrelid::text as id, t.tgname || ' ' || p.proname as named
  from pg_catalog.pg_trigger as t
  join pg_catalog.pg_proc as p on p.oid = t.tgfoid
 where not t.tgisinternal
   and t.tgtype & 16 <> 0`

const CASCADES = `
select c.confrelid::text as id, c.conrelid::text as child
  from pg_catalog.pg_constraint as c
 where c.contype = 'f'
   and c.confdeltype = 'c'`

/**
 * Reads the tables of a database.
 *
 * @throws {StetError} `STET_DRIVER_MISSING` without the package pg, `STET_CONNECTION` when the server is not reached.
 */
export async function readDatabase(url: string): Promise<DdlFact[]> {
  const client = await connect(url)
  try {
    await client.query('begin transaction read only')
    const rows = async (sql: string): Promise<readonly Record<string, unknown>[]> =>
      (await client.query<Record<string, unknown>>(sql)).rows
    const tables = new Map<string, TableDraft>()
    for (const { id, schema, name } of await rows(TABLES)) {
      const table = emptyTable(nameFromText(`${String(schema)}.${String(name)}`), '', 0)
      tables.set(String(id), table)
    }
    const each = async (sql: string, apply: (table: TableDraft, row: Record<string, unknown>) => void) => {
      for (const row of await rows(sql)) {
        const table = tables.get(String(row.id))
        if (table !== undefined) apply(table, row)
      }
    }
    await each(COLUMNS, (table, row) =>
      addColumn(table, {
        name: String(row.name).toLowerCase(),
        notNull: row.not_null === true,
        generated: row.generated === true,
        defaulted: row.defaulted === true,
      }),
    )
    await each(KEYS, (table, row) => {
      const columns = Array.isArray(row.columns) ? row.columns.map((one) => String(one).toLowerCase()) : []
      addKey(table, columns, {
        primary: row.primary === true,
        nullsNotDistinct: row.nulls_not_distinct === true,
        partial: row.partial === true,
      })
    })
    await each(TRIGGERS, (table, row) => {
      if (looksLikeTouch(String(row.named))) table.touchTrigger = true
    })
    const parents = new Map<TableDraft, TableDraft[]>()
    await each(CASCADES, (parent, row) => {
      const child = tables.get(String(row.child))
      if (child !== undefined) parents.set(child, [...(parents.get(child) ?? []), parent])
    })
    await client.query('rollback')
    return [...tables.values()].map((table) => ({
      table,
      parents: (parents.get(table) ?? []).map((parent) => parent.name),
    }))
  } finally {
    await client.end()
  }
}

async function connect(url: string): Promise<Client> {
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new StetError(
      'STET_DRIVER_MISSING',
      'Cannot read keys from PostgreSQL: its driver is not installed',
      {
        hint: 'Run: npm install pg, or give a dump: pg_dump --schema-only > schema.sql, --schema schema.sql',
        cause,
      },
    )
  })
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 15_000 })
  // A connection that breaks later is reported by the statement that waits for it.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (cause) {
    throw new StetError(
      'STET_CONNECTION',
      `Cannot read the schema of ${withoutSecrets(url)}: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        hint: 'Check host, port, user and password; a dump does as well: --schema schema.sql',
        cause,
      },
    )
  }
  return client
}

/** Host, port and database of a URL; never its password. */
function withoutSecrets(url: string): string {
  try {
    const { host, pathname } = new URL(url)
    return `${host}${pathname}`
  } catch {
    return 'the database'
  }
}
