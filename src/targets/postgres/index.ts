import { createHash } from 'node:crypto'
import type { ClientConfig } from 'pg'
import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { Source } from '../../model/source.ts'
import type { Target } from '../../model/target.ts'
import { IDENTIFIER_BYTES_MAX } from './checks.ts'
import { type Connection, openConnection } from './connection.ts'
import { loadDriver } from './driver.ts'
import { describeError } from './errors.ts'
import type { PostgresOptions, QueryOptions } from './options.ts'
import { openEditor } from './record/editor.ts'
import { readRunLog } from './record/run-log.ts'
import { clockOf, ownQuery } from './remote/own-query.ts'
import { openSession } from './session.ts'

export type { PostgresOptions, QueryOptions } from './options.ts'

/** A PostgreSQL database as a target, which is also the source of queries on its own connection. */
export interface PostgresTarget extends Target {
  /**
   * A query in the target's own database as a pipeline's source. Its rows never leave the server: they are checked,
   * deduplicated and compared there, by the same rules and with the same counts as any other source's.
   *
   * @param query One statement that gives rows; it may only read.
   * @throws {StetError} `STET_CONFIG` when it is used with another target.
   * @example
   * const db = postgres({ url: process.env.DATABASE_URL })
   * definePipeline({
   *   name: 'orders_final',
   *   source: db.query('select order_ref, amount, updated_at from raw.orders'),
   *   target: db,
   *   table: 'sales.orders_final',
   *   write: { strategy: 'upsert', key: ['order_ref'], newest: 'updated_at' },
   * })
   */
  query<const C extends Columns = Columns>(query: string, options?: QueryOptions<C>): Source<C>
}

/**
 * Tables of a PostgreSQL database (14 or newer). Needs the packages `pg` and `pg-copy-streams`. Works through a
 * transaction pooler.
 *
 * @example
 * const target = postgres({ url: process.env.DATABASE_URL })
 */
export function postgres(options: PostgresOptions = {}): PostgresTarget {
  refuseUnknownOptions('postgres', options, { url: true })
  const { url } = options
  // `url: process.env.DATABASE_URL` with nothing in it would go to whatever answers on localhost.
  if ('url' in options && (url === undefined || url === '')) {
    throw new StetError('STET_CONFIG', 'The url of the PostgreSQL target is empty', {
      hint: 'Is the environment variable set that it comes from? To use PG* variables, leave url out: postgres()',
    })
  }
  const config: ClientConfig = {
    fallback_application_name: 'stet',
    ...(url === undefined ? {} : { connectionString: url }),
  }
  const connect = async (signal?: AbortSignal) => openConnection(await loadDriver(), config, signal)
  const opening = async <T>(
    signal: AbortSignal,
    action: string,
    open: (connection: Connection) => Promise<T>,
  ): Promise<T> => {
    const connection = await connect(signal)
    try {
      return await open(connection)
    } catch (error) {
      await connection[Symbol.asyncDispose]()
      throw describeError(error, action)
    }
  }
  const description = describeUrl(url)
  const place = `postgres ${createHash('sha256')
    .update(url ?? '')
    .digest('hex')}`
  return {
    kind: 'postgres',
    description,
    place,
    query: (query, queryOptions = {}) => {
      refuseUnknownOptions('query', queryOptions, { columns: true })
      return ownQuery({
        place,
        query,
        description,
        columns: queryOptions.columns,
        clock: async (signal) => {
          await using connection = await connect(signal)
          return await clockOf(connection)
        },
      })
    },
    capabilities: {
      strategies: ['upsert', 'insert-once', 'replace-table', 'replace-partition'],
      transactional: true,
      identifierBytesMax: IDENTIFIER_BYTES_MAX,
    },
    open: (options) => openSession(connect, options),
    openRunLog: ({ signal }) => opening(signal, 'read the record of runs', readRunLog),
    openRecord: ({ signal }) =>
      opening(signal, 'open the record of runs', (connection) => openEditor(connection, signal)),
  }
}

/** Where the target is, without password and options. */
function describeUrl(url: string | undefined): string {
  if (url === undefined) return 'PostgreSQL (PG* environment)'
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    // The text may hold a password, so it is not shown.
    throw new StetError('STET_CONFIG', 'Cannot read the url of the PostgreSQL target', {
      hint: 'Write postgres://user@host:5432/database; encode special characters of a password (%40 for @)',
    })
  }
  const user = parsed.username === '' ? '' : `${parsed.username}@`
  return `postgres://${user}${parsed.host}${parsed.pathname}`
}
