import type { CatalogTable } from './catalog.ts'
import type { Connection } from './connection.ts'
import type { Partition } from './partitions.ts'

/** What stands against exchanging a partition, or against moving rows between partitions without anybody being told. */
export interface Obstacle {
  /** `moving`: rows may not change their partition behind the server's back either. */
  readonly against: 'swapping' | 'moving'
  readonly why: string
}

/** Scanning more of the default partition than this would keep readers waiting; 8 kB pages. */
const DEFAULT_PAGES_MAX = 1_000

/**
 * Everything that would be lost, or not happen, when a table takes the place of the partition.
 *
 * @param partition The one to exchange, or the default one whose rows are to be moved.
 */
export async function obstaclesOf(
  connection: Connection,
  table: CatalogTable,
  partition: Partition,
  rest: Partition | null,
): Promise<readonly Obstacle[]> {
  const rows = await connection.query(obstaclesSql, [table.oid, partition.oid])
  const found = rows.map(({ against, why }): Obstacle => {
    return { against: against === 'moving' ? 'moving' : 'swapping', why: why ?? '' }
  })
  if (rest !== null && rest.pages > DEFAULT_PAGES_MAX) {
    const size = `${Math.round((rest.pages * 8) / 1024)} MB`
    const why = `the server would scan default partition ${rest.qualified} (${size}) with readers locked out`
    found.push({ against: 'moving', why })
  }
  return found
}

const obstaclesSql = `
with parent as (select $1::oid as oid), part as (select $2::oid as oid),
both_ as (select oid from parent union all select oid from part)
-- Deleting or detaching a row that others refer to is refused, or takes the others along.
select distinct 'moving' as against,
       format('foreign key %I of table %s refers to it', k.conname, k.conrelid::regclass) as why
  from pg_constraint as k
 where k.contype = 'f' and k.confrelid in (select oid from both_) and k.conparentid = 0
union all
select distinct 'moving', format('its trigger %I would not fire', t.tgname)
  from pg_trigger as t
 where t.tgrelid in (select oid from both_) and not t.tgisinternal and t.tgtype & 28 <> 0 and t.tgenabled <> 'D'
union all
select distinct 'moving', format('publication %I would not publish what changes', p.pubname)
  from pg_publication_tables as p
  join pg_class as c on c.relname = p.tablename
  join pg_namespace as n on n.oid = c.relnamespace and n.nspname = p.schemaname
 where c.oid in (select oid from both_)
union all
select 'moving', format('%s belongs to role %s, which %s is not a member of', c.oid::regclass, pg_get_userbyid(c.relowner), current_user)
  from pg_class as c
 where c.oid in (select oid from both_) and not pg_has_role(c.relowner, 'usage')
union all
select 'moving', format('role %s may not create tables in schema %I', current_user, n.nspname)
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
 where c.oid = (select oid from part) and not has_schema_privilege(n.oid, 'create')
union all
-- The server lets no one be given a table who could not have made it, but by a superuser.
select 'moving', format('role %s, which owns %s, may not create tables in schema %I', pg_get_userbyid(c.relowner), c.oid::regclass, n.nspname)
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
 where c.oid = (select oid from part) and pg_get_userbyid(c.relowner) <> current_user
   and not has_schema_privilege(c.relowner, n.oid, 'create')
   and not (select rolsuper from pg_roles where rolname = current_user)
union all
select 'swapping', format('partition %s is itself partitioned', c.oid::regclass)
  from pg_class as c where c.oid = (select oid from part) and c.relkind = 'p'
union all
select 'swapping', format('partition %s is a foreign table', c.oid::regclass)
  from pg_class as c where c.oid = (select oid from part) and c.relkind = 'f'
union all
select 'swapping', format('partition %s is stored by access method %I', c.oid::regclass, a.amname)
  from pg_class as c join pg_am as a on a.oid = c.relam
 where c.oid = (select oid from part) and c.relkind = 'r' and a.amname <> 'heap'
union all
select 'swapping', format('%s is itself a partition of another table', c.oid::regclass)
  from pg_class as c where c.oid = (select oid from parent) and c.relispartition
union all
select 'swapping', format('a disabled trigger of partition %s, %I, would be lost', c.oid::regclass, t.tgname)
  from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
 where t.tgrelid = (select oid from part) and not t.tgisinternal and (t.tgenabled = 'D' or t.tgtype & 28 = 0)
union all
select 'swapping', format('row level security of partition %s itself would be lost', c.oid::regclass)
  from pg_class as c
 where c.oid = (select oid from part)
   and (c.relrowsecurity or exists (select from pg_policy as p where p.polrelid = c.oid))
union all
select 'swapping', format('rule %I of partition %s would be lost', r.rulename, r.ev_class::regclass)
  from pg_rewrite as r where r.ev_class = (select oid from part)
union all
select distinct 'swapping', format('view %s reads partition %s itself', r.ev_class::regclass, d.refobjid::regclass)
  from pg_depend as d
  join pg_rewrite as r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
 where d.refclassid = 'pg_class'::regclass and d.refobjid = (select oid from part) and r.ev_class <> d.refobjid
union all
select 'swapping', format('identity column %I takes its numbers from the table, which a table beside cannot', a.attname)
  from pg_attribute as a
 where a.attrelid = (select oid from parent) and a.attidentity <> '' and not a.attisdropped
union all
select 'swapping', format('sequence %s belongs to partition %s', d.objid::regclass, d.refobjid::regclass)
  from pg_depend as d
  join pg_class as s on d.classid = 'pg_class'::regclass and s.oid = d.objid and s.relkind = 'S'
 where d.refclassid = 'pg_class'::regclass and d.refobjid = (select oid from part)
union all
select 'swapping', format('statistics %I of partition %s would be lost', s.stxname, s.stxrelid::regclass)
  from pg_statistic_ext as s where s.stxrelid = (select oid from part)
union all
select 'swapping', format('security label of partition %s would be lost', l.objoid::regclass)
  from pg_seclabel as l where l.classoid = 'pg_class'::regclass and l.objoid = (select oid from part)
union all
select 'swapping', format('index %s is %s', x.indexrelid::regclass,
         case when not x.indisvalid then 'not valid' when x.indisexclusion then 'an exclusion constraint' else 'in a tablespace of its own' end)
  from pg_index as x join pg_class as i on i.oid = x.indexrelid
 where x.indrelid = (select oid from part) and (not x.indisvalid or x.indisexclusion or i.reltablespace <> 0)
union all
select 'swapping', format('a detach of partition %s is pending', i.inhrelid::regclass)
  from pg_inherits as i
 where i.inhparent = (select oid from parent) and i.inhdetachpending`
