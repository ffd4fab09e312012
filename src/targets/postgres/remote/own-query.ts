import { StetError } from '../../../errors.ts'
import type { Columns } from '../../../model/columns.ts'
import type { Source } from '../../../model/source.ts'
import type { Connection } from '../connection.ts'
import { describeError } from '../errors.ts'
import type { QueryOptions } from '../options.ts'

interface OwnQueryOptions<C extends Columns> extends QueryOptions<C> {
  readonly place: string
  readonly query: string
  /** Of the target. */
  readonly description: string
  readonly clock: (signal: AbortSignal) => Promise<string>
}

/** A query on the target's own connection, as a source that no pipeline opens. */
export function ownQuery<C extends Columns>(options: OwnQueryOptions<C>): Source<C> {
  const { place, query, description, columns, clock } = options
  if (typeof query !== 'string' || query.trim() === '') {
    throw new StetError('STET_CONFIG', 'The query of the PostgreSQL target is empty', {
      hint: "Write db.query('select … from raw.orders')",
    })
  }
  return {
    kind: 'postgres query',
    columns,
    description: `query in ${description}`,
    identity: `${description} ${query}`,
    own: { place, query },
    open: () => {
      throw new StetError('STET_CONFIG', `A query in ${description} is a source of that target only`, {
        hint: 'To read from one database into another place: stet/sources/postgres',
      })
    },
    clock: ({ signal }) => clock(signal),
  }
}

/** The server's clock, which is the one that dates its rows. */
export async function clockOf(connection: Connection): Promise<string> {
  try {
    const [row] = await connection.query(
      `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    )
    return row?.now ?? ''
  } catch (error) {
    throw describeError(error, 'ask PostgreSQL what time it is')
  }
}
