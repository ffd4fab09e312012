import { StetError } from '../../errors.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { Connection } from './connection.ts'

type TableRight = 'select' | 'insert' | 'update' | 'delete'

interface Place {
  readonly schema: string
  readonly table: string
}

/** What a load needs. `update` also where nothing will be updated: rows are locked before they are judged. */
export function rightsOfLoad({ strategy }: WriteStrategy, deletes: boolean): readonly TableRight[] {
  return [
    'select',
    'insert',
    ...(strategy === 'insert-once' ? [] : (['update'] as const)),
    ...(deletes ? (['delete'] as const) : []),
  ]
}

/**
 * The statements with which an owner gives the user of the connection the rights that it lacks; empty where it lacks none.
 * Asks the catalogue only, which everybody may read. Where the table is not there, rights mean that it has to be made.
 */
export async function missingGrants(
  connection: Connection,
  { schema, table }: Place,
  rights: readonly TableRight[],
): Promise<readonly string[]> {
  // A right on a column is enough to be let in; which columns a statement touches is for the server to judge.
  const [row] = await connection.query(
    `select quote_ident(current_user) as user,
            quote_ident(current_database()) as database,
            quote_ident($1) as schema,
            quote_ident($1) || '.' || quote_ident($2) as table,
            c.oid is null as absent,
            has_schema_privilege(n.oid, 'usage') as usage,
            has_schema_privilege(n.oid, 'create') as create,
            has_database_privilege(current_database(), 'temporary') as temporary,
            has_any_column_privilege(c.oid, 'select') as select,
            has_any_column_privilege(c.oid, 'insert') as insert,
            has_any_column_privilege(c.oid, 'update') as update,
            has_table_privilege(c.oid, 'delete') as delete
       from pg_namespace as n
       left join pg_class as c
         on c.relnamespace = n.oid and c.relname = $2
      where n.nspname = $1`,
    [schema, table],
  )
  if (row === undefined) return []
  const ofSchema = [
    ...(row.usage === 'f' ? ['usage'] : []),
    ...(rights.length > 0 && row.absent === 't' && row.create === 'f' ? ['create'] : []),
  ]
  const ofTable = rights.filter((right) => row[right] === 'f')
  const needsTemporary = rights.length > 0 && row.absent === 'f' && row.temporary === 'f'
  return [
    ...(ofSchema.length === 0 ? [] : [`grant ${ofSchema.join(', ')} on schema ${row.schema} to ${row.user}`]),
    ...(ofTable.length === 0 ? [] : [`grant ${ofTable.join(', ')} on ${row.table} to ${row.user}`]),
    ...(needsTemporary ? [`grant temporary on database ${row.database} to ${row.user}`] : []),
  ]
}

/** The same error with the statements that would help, where the catalogue tells which. */
export async function withGrants(
  error: StetError,
  connection: Connection,
  place: Place,
  rights: readonly TableRight[],
): Promise<StetError> {
  const grants = await missingGrants(connection, place, rights).catch(() => [])
  if (grants.length === 0) return error
  return new StetError(error.code, error.message, {
    hint: `Run once as an owner: ${grants.join('; ')}`,
    ...(error.details === undefined ? {} : { details: error.details }),
    cause: error.cause,
  })
}

/** Whether the user may write the record of runs, or make it; a run without it ends before it reads anything. */
export async function mayRecord(connection: Connection): Promise<boolean> {
  const [row] = await connection.query(
    `select case
              when n.oid is null then has_database_privilege(current_database(), 'create')
              else has_schema_privilege(n.oid, 'usage')
                   and coalesce((select bool_and(has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update'))
                                   from pg_class as c
                                  where c.relnamespace = n.oid and c.relname in ('run', 'lease')),
                                has_schema_privilege(n.oid, 'create'))
            end as may
       from (select 1) as one
       left join pg_namespace as n on n.nspname = 'stet'`,
  )
  return row?.may !== 'f'
}
