import { narrowQuery } from '../../local/narrow.ts'
import { isNumberType, isTimeType } from '../../model/column-type.ts'
import type { Columns } from '../../model/columns.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { Narrowing } from '../../model/slice.ts'
import type { OpenSource, Source, SourceContext } from '../../model/source.ts'
import { rowAsJson, rowsAt } from '../shared/text-table.ts'
import { loadDriver } from './driver.ts'
import { describeQuery, type QueryField } from './fields.ts'
import { pullRows } from './pull.ts'
import { openSession } from './session.ts'

export interface PostgresQueryOptions<C extends Columns> {
  /** `postgres://user:password@host:5432/database`. */
  readonly url: string
  /** One statement that gives rows. It is run in a transaction that only reads. */
  readonly query: string
  /** Default: the target's columns, and the query's own types for a table that does not exist yet. */
  readonly columns?: C | undefined
}

/**
 * A source of the rows that a query gives at a PostgreSQL server, all from one moment of the database. It is run once
 * for each run, streamed, and every value is the text that the server prints.
 *
 * Needs the packages `pg` and `pg-copy-streams`.
 *
 * @example
 * postgres({
 *   url: process.env.SHOP_URL ?? '',
 *   query: 'select order_ref, amount, updated_at from orders where paid',
 * })
 */
export function postgres<const C extends Columns = Columns>(options: PostgresQueryOptions<C>): Source<C> {
  refuseUnknownOptions('postgres', options, { url: true, query: true, columns: true })
  return {
    kind: 'postgres',
    columns: options.columns,
    description: `query at ${placeOf(options.url)}`,
    identity: `${placeOf(options.url)} ${options.query}`,
    open: (context) => openQuery(options.url, options.query, context),
    clock: ({ signal }) => clockOf(options.url, signal),
  }
}

async function openQuery(url: string, query: string, context: SourceContext): Promise<OpenSource> {
  const { local, signal, progress } = context
  // A semicolon at the end is a habit, and no part of a statement inside another.
  const statement = query.trim().replace(/(\s*;)+$/, '')
  await using session = await openSession(await loadDriver(), url, signal)
  const fields = await describeQuery(session, statement)
  const narrowed = narrowQuery(statement, await narrowingOf(fields, context))
  const table = await pullRows({ session, local, query: narrowed, fields, signal, progress })
  const positionByName = new Map(fields.map(({ name }, i) => [name, i]))
  return {
    fields: fields.map(({ name, type }) => ({ name, type })),
    files: [],
    parts: [
      {
        file: null,
        select: (wanted) => {
          const values = wanted.map((name, i) => `${valueSql(fields, positionByName.get(name))} as c${i}`)
          return `select ${values.join(', ')} from ${table}`
        },
        rejects: async () => [],
        locate: async (rows) => {
          const names = fields.map(({ name }) => name)
          const found = await rowsAt(local, table, rows)
          return found.map((values, i) => ({ line: rows[i] ?? 0, raw: rowAsJson(names, values) }))
        },
      },
    ],
    verify: async () => undefined,
    [Symbol.asyncDispose]: () => local.run(`drop table ${table}`),
  }
}

/** Where a column has another type than the ends are in, nothing is left out here. */
async function narrowingOf(
  fields: readonly QueryField[],
  { cursor, slice, mayNarrow }: SourceContext,
): Promise<Narrowing> {
  const typeOf = (column: string | undefined) => fields.find(({ name }) => name === column)?.type
  const cursorType = typeOf(cursor?.column)
  const isOrdered = cursorType !== undefined && (isTimeType(cursorType) || isNumberType(cursorType))
  const type = typeOf(slice?.by)
  return {
    window: cursor !== undefined && isOrdered ? await cursor.window(cursorType) : null,
    slice: slice !== undefined && type !== undefined && mayNarrow?.(type) === true ? { slice, type } : null,
  }
}

/** The server's clock, which is the one that dates its rows. */
async function clockOf(url: string, signal: AbortSignal): Promise<string> {
  await using session = await openSession(await loadDriver(), url, signal)
  const [row] = await session.query(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    [],
  )
  await session.commit()
  return row?.now ?? ''
}

function valueSql(fields: readonly QueryField[], position: number | undefined): string {
  if (position === undefined) return 'null::varchar'
  // COPY writes t and f, a cast to text true and false: a text column shall hold what the server's own cast gives.
  return fields[position]?.type.kind === 'boolean'
    ? `case f${position} when 't' then 'true' when 'f' then 'false' end`
    : `f${position}`
}

/** Host and database of a URL, and never who may enter. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'PostgreSQL'
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}
