import type { Judge } from '../../model/target.ts'
import type { Connection } from './connection.ts'

/** The constraints of a table that a plan does not work out: checks, exclusions, and foreign keys of both directions. */
export async function judgesOf(connection: Connection, oid: string): Promise<readonly Judge[]> {
  const rows = await connection.query(
    `select case contype
              when 'c' then 'check constraint '
              when 'x' then 'exclusion constraint '
              else 'foreign key '
            end
            || quote_ident(conname)
            || case when conrelid = $1::oid then '' else ' of ' || conrelid::regclass::text end as name,
            conrelid = $1::oid as written
       from pg_constraint
      where (conrelid = $1::oid and contype in ('c', 'x', 'f') or confrelid = $1::oid and contype = 'f')
        and conparentid = 0
      order by 2 desc, 1`,
    [oid],
  )
  return rows.map(({ name, written }) => ({
    name: name ?? '',
    of: written === 't' ? 'written' : 'removed',
  }))
}
