import { createHash } from 'node:crypto'
import { quoteIdentifier } from '../../src/local/quote.ts'
import type { Source } from '../../src/model/source.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import type { Attempt, Place, TargetUnderContract } from '../../src/testing/place.ts'
import { connect } from './databases.ts'
import { cutsOf, killsOf, type PostgresPlace, postgresPlace } from './postgres-place.ts'

/** Puts the rows of an attempt where a query finds them; its table. */
type PutRows = (attempt: Attempt) => { readonly table: string; readonly ready: Promise<void> }

interface RemotePlace extends PostgresPlace {
  readonly putRows: PutRows
}

/**
 * A PostgreSQL place whose attempts read their rows by a query in the same database: the rows are in a table of schema
 * `raw`, as text, before the run begins.
 */
export async function postgresRemotePlace(server: string): Promise<RemotePlace> {
  const place = await postgresPlace(server)
  const connection = await connect(place.url)
  await connection.client.query('create schema raw')
  const tables = new Map<string, Promise<void>>()
  const putRows: PutRows = ({ columns, rows }) => {
    const hash = createHash('sha256')
      .update(JSON.stringify([columns, rows]))
      .digest('hex')
      .slice(0, 16)
    const table = `raw.rows_${hash}`
    const ready = tables.get(table) ?? fill(connection.client, table, Object.keys(columns), rows)
    tables.set(table, ready)
    return { table, ready }
  }
  return {
    ...place,
    putRows,
    target: remoteTarget(place.url, putRows),
    leftovers: async () => (await place.leftovers()).filter((name) => !name.startsWith('raw.')),
    [Symbol.asyncDispose]: async () => {
      await connection[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    },
  }
}

const targetAt = (url: string, place: Place) => remoteTarget(url, (place as RemotePlace).putRows)

/** Cuts of a run whose rows never leave the server. */
export const remoteCuts = cutsOf(targetAt)

/** And kills; the rows are in their table before the process begins. */
export const remoteKills = killsOf(targetAt, async (place, attempt) => {
  const { table, ready } = (place as RemotePlace).putRows(attempt)
  await ready
  return { target: 'query in postgres', attempt, rows: table }
})

/** A target whose attempts read their rows by a query of its own. */
export function remoteTarget(url: string, putRows: PutRows): TargetUnderContract {
  const target = postgres({ url })
  const pending = new Set<Promise<void>>()
  return {
    ...target,
    sourceOf: (attempt): Source => {
      const { table, ready } = putRows(attempt)
      pending.add(ready)
      const names = Object.keys(attempt.columns).map(quoteIdentifier)
      return {
        ...target.query(`select ${names.join(', ')} from ${table}`, { columns: attempt.columns }),
        // Other rows are the same source at another time, whose clock is the caller's.
        identity: 'rows of the contract',
        clock: undefined as never,
      }
    },
    open: async (options) => {
      await Promise.all(pending)
      return target.open(options)
    },
  }
}

async function fill(
  client: Awaited<ReturnType<typeof connect>>['client'],
  table: string,
  names: readonly string[],
  rows: Attempt['rows'],
): Promise<void> {
  const columns = names.map((name) => `${quoteIdentifier(name)} text`)
  await client.query(`create table ${table} (${columns.join(', ')})`)
  const values = names.map((_, position) => `r ->> ${position}`)
  await client.query(
    `insert into ${table} select ${values.join(', ')} from json_array_elements($1::json) as r`,
    [JSON.stringify(rows)],
  )
}
