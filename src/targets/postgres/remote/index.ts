import { StetError } from '../../../errors.ts'
import type { Contract } from '../../../model/columns.ts'
import type { RemoteCompare } from '../../../model/remote.ts'
import type { Slice } from '../../../model/slice.ts'
import type { WriteStrategy } from '../../../model/write.ts'
import type { CatalogColumn, CatalogTable, TableIdentity } from '../catalog.ts'
import type { Connection } from '../connection.ts'
import { DIFFERENCE } from '../sql.ts'
import { compareThere } from './compare.ts'
import { wholeStageSql } from './compare-sql.ts'
import { describeQuery, fieldsOf, landQuery } from './land.ts'
import { keepNewest, keepWindow, rowsOutside } from './rows.ts'
import { digestOf, driftOf, samplesOf } from './show.ts'
import { type RemoteContext, shapeOf } from './stage.ts'

/** What the session lends. */
export interface RemoteOptions {
  readonly connection: Connection
  readonly identity: TableIdentity
  readonly write: WriteStrategy
  /** The table as it was described; null where there is none. */
  readonly table: () => CatalogTable | null
  /** Runs work under the name of an action, as the session does. */
  readonly doing: <T>(action: string, work: () => Promise<T>) => Promise<T>
  /** Opens the transaction that the session's `begin`, `apply` and `commit` go on in. */
  readonly openTransaction: () => Promise<void>
  readonly undo: () => Promise<void>
}

/** The same, and what the session asks of it. */
interface RemoteInServer extends RemoteCompare {
  /** What was sent so far to find the difference; null where nothing was. */
  statements(): readonly string[] | null
  /** The slice that was compared. */
  slice(): Slice | null
}

/**
 * Room for one sort or hash. The statements are few and go over whole tables; where the server gives more it stays.
 */
const WORK_MEM = '128MB'

/** The comparison inside the server, for a query whose rows are there already. */
export function remoteCompare(options: RemoteOptions): RemoteInServer {
  const { identity, write, doing } = options
  const sent: string[] = []
  const connection = recording(options.connection, sent)
  let answer: readonly CatalogColumn[] = []
  let context: RemoteContext | undefined
  let scope: Slice | null = null
  const settled = (): RemoteContext => {
    if (context === undefined) throw new StetError('STET_INTERNAL', 'land() was not called')
    return context
  }
  const contextOf = (contract: Contract): RemoteContext => {
    const table = options.table()
    return { identity, table, shape: table ?? shapeOf(identity, contract), contract, write }
  }
  const differenceOf = (of: RemoteContext) => (of.table === null ? wholeStageSql(of) : DIFFERENCE)
  return {
    fields: (query) =>
      doing('look at the query for', async () => {
        await options.openTransaction()
        answer = await describeQuery(options.connection, query)
        await options.undo()
        return fieldsOf(answer)
      }),
    land: (query, contract, rules) =>
      doing('run the query for', async () => {
        context = contextOf(contract)
        await options.openTransaction()
        await connection.query(
          `select set_config('work_mem', '${WORK_MEM}', true)
            where pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('${WORK_MEM}')`,
        )
        return landQuery(connection, context, query, answer, rules)
      }),
    keepWindow: (column, window, slice) =>
      doing('read the window for', () => keepWindow(connection, settled(), column, window, slice)),
    rowsOutside: (slice, shown) =>
      doing('look for other slices in the load of', () => rowsOutside(connection, settled(), slice, shown)),
    keepNewest: () => doing('find duplicates in the load of', () => keepNewest(connection, settled())),
    compare: (rules, { slice, countsLive }) =>
      doing('compare with', () => {
        scope = slice
        return compareThere(connection, settled(), rules, slice, countsLive)
      }),
    statements: () => (context === undefined ? null : sent),
    slice: () => scope,
    samples: () => doing('show changes of', () => samplesOf(connection, settled(), differenceOf(settled()))),
    drift: () => doing('show changes of', () => driftOf(connection, settled())),
    digest: () =>
      doing('summarise changes of', () => digestOf(connection, settled(), differenceOf(settled()))),
  }
}

/** The same connection; what it is asked to write, always into tables of the transaction, is kept for a plan to show. */
function recording(connection: Connection, sent: string[]): Pick<Connection, 'query'> {
  return {
    query: (sql, parameters) => {
      if (/^(insert|create temp table|with|delete)\b/.test(sql)) sent.push(sql.split(';\n')[0] ?? sql)
      return connection.query(sql, parameters)
    },
  }
}
