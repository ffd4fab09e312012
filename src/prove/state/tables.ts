import type { Session } from '../sandbox/cluster.ts'

export interface ColumnShape {
  readonly name: string
  readonly type: string
  readonly isKey: boolean
  /** The database makes up its values: serial, identity, a random uuid. */
  readonly isGenerated: boolean
  /** Every run fills it differently, so that only null counts. */
  readonly varies?: boolean
}

export interface TableShape {
  /** As a person writes it: without the schema `public`. */
  readonly name: string
  /** Quoted, for SQL. */
  readonly reference: string
  readonly columns: readonly ColumnShape[]
}

/**
 * Tables with rows of their own: partitions but not what they are partitions of, materialized views but not views.
 */
const TABLES = `
select n.nspname as schema,
       c.relname as name,
       format('%I.%I', n.nspname, c.relname) as reference,
       a.attname as column,
       format_type(a.atttypid, a.atttypmod) as type,
       a.attnum = any (k.indkey) as is_key,
       a.attidentity <> '' or pg_get_expr(d.adbin, d.adrelid) ~ '(nextval|gen_random_uuid|uuid_generate)' as is_generated
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
  left join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
  left join pg_index as k on k.indrelid = c.oid and k.indisprimary
 where c.relkind in ('r', 'm')
   and c.relpersistence <> 't'
   and n.nspname !~ '^pg_'
   and n.nspname <> 'information_schema'
 order by 1, 2, a.attnum`

export async function listTables(session: Session): Promise<readonly TableShape[]> {
  const tables: (TableShape & { readonly columns: ColumnShape[] })[] = []
  for (const row of await session.query(TABLES)) {
    const name = row.schema === 'public' ? row.name : `${row.schema}.${row.name}`
    const reference = row.reference ?? ''
    let table = tables.at(-1)
    if (table?.reference !== reference) {
      table = { name: name ?? '', reference, columns: [] }
      tables.push(table)
    }
    if (row.column === null || row.column === undefined) continue
    table.columns.push({
      name: row.column,
      type: row.type ?? '',
      isKey: row.is_key === 't',
      isGenerated: row.is_generated === 't',
    })
  }
  return tables
}

/** Everything else that defines how the database behaves, a line for each thing. */
const DEFINITIONS = `
select format('column %I.%I.%I %s', n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) as line
  from pg_attribute as a
  join pg_class as c on c.oid = a.attrelid
  join pg_namespace as n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p', 'm', 'v') and a.attnum > 0 and not a.attisdropped and n.nspname = any ($1)
 union all
select pg_get_indexdef(i.indexrelid)
  from pg_index as i
  join pg_class as c on c.oid = i.indexrelid
  join pg_namespace as n on n.oid = c.relnamespace
 where n.nspname = any ($1)
 union all
select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(k.oid))
  from pg_constraint as k
  join pg_namespace as n on n.oid = k.connamespace
 where conrelid <> 0 and n.nspname = any ($1)
 union all
select format('view %I.%I %s', schemaname, viewname, definition)
  from pg_views
 where schemaname = any ($1)
 union all
select format('partition %s of %s %s', c.oid::regclass, i.inhparent::regclass, pg_get_expr(c.relpartbound, c.oid))
  from pg_class as c
  join pg_inherits as i on i.inhrelid = c.oid
  join pg_namespace as n on n.oid = c.relnamespace
 where c.relispartition and c.relkind in ('r', 'p') and n.nspname = any ($1)
 union all
select format('function %s %s', p.oid::regprocedure, md5(p.prosrc))
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
 where n.nspname = any ($1)
 union all
select format('prepared transaction %s', gid)
  from pg_prepared_xacts
 where database = current_database()`

const SCHEMAS = `
select nspname as name
  from pg_namespace
 where nspname !~ '^pg_' and nspname <> 'information_schema'`

export async function listDefinitions(session: Session): Promise<readonly string[]> {
  const schemas = await session.query(SCHEMAS)
  // node-postgres writes an array as PostgreSQL reads it.
  const rows = await session.query(DEFINITIONS, [schemas.map((row) => row.name)])
  return rows.map((row) => row.line ?? '').sort()
}

const SEQUENCES = `
select format('%I.%I', schemaname, sequencename) as name, last_value as value
  from pg_sequences
 order by 1`

export async function listSequences(session: Session): Promise<readonly string[]> {
  const rows = await session.query(SEQUENCES)
  return rows.map((row) => `${row.name} ${row.value}`)
}
