import { StetError } from '../errors.ts'
import { requireSliceable } from '../local/slice.ts'
import { readText } from '../local/typing/reading.ts'
import { isNumberType, isTimeType } from '../model/column-type.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { RemoteCompare } from '../model/remote.ts'
import type { CursorWindow, Narrowing } from '../model/slice.ts'
import type { SourceField } from '../model/source.ts'
import { contractOf, typesOfSource } from './contract.ts'
import { unreadableEnd } from './keep-window.ts'
import { keepRejectsOf, type ReadyRows, takeWindow, withCursor } from './rows.ts'
import { otherSlices, ROWS_SHOWN, requireOneName, sliceColumn } from './slice-rows.ts'
import { windowAtSource } from './window.ts'
import {
  type Attempt,
  type Known,
  looksAtWhole,
  mayNarrow,
  sliceToReplace,
  typeHeld,
  type Workplace,
} from './workplace.ts'

/** Has the target land and compare a query of its own: the same steps as SQL there, and no row leaves it. */
export async function openRemoteWorkplace(attempt: Attempt, known: Known): Promise<Workplace> {
  const { pipeline, options, slice } = attempt
  const { table } = known
  const remote = remoteOf(attempt)
  const query = pipeline.source.own?.query ?? ''
  const fields = await remote.fields(query)
  return {
    files: [],
    notices: [],
    ready: () => readyThere(attempt, known, remote, query, fields),
    compare: async ({ contract, afterTransform, rejected, duplicate }, rules) => {
      const replaced = sliceToReplace(pipeline, slice)
      options.onProgress?.({ phase: 'comparing', rows: afterTransform })
      const hasKey = contract.columns.some(({ key }) => key)
      const rows = afterTransform - rejected - duplicate
      const isWhole = table === null || looksAtWhole(pipeline, table, { hasKey, rows })
      const countsLive = isWhole || replaced !== null
      const comparison = await remote.compare(rules, { slice: replaced, countsLive })
      return {
        contract,
        comparison,
        scopeKind: replaced !== null ? 'slice' : isWhole ? 'table' : 'keys',
        samples: () => remote.samples(),
        drift: async () => (known.frozen && table !== null && comparison.frozen > 0 ? remote.drift() : []),
        digest: () => remote.digest(),
      }
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** What `readyRows` does in the local engine, step by step. */
async function readyThere(
  attempt: Attempt,
  known: Known,
  remote: RemoteCompare,
  query: string,
  fields: readonly SourceField[],
): Promise<ReadyRows> {
  const { pipeline, slice, local, session, notice } = attempt
  const { write } = pipeline
  const { table, cursor } = known
  const types = await typesOfSource(pipeline, { fields, parts: [] }, table, local, notice)
  const contract = withCursor(contractOf(types, write, pipeline.keep, table, notice), cursor)
  await session.prepare(contract)
  const landed = await remote.land(query, contract, {
    nullKeys: write.nullKeys ?? 'reject',
    normalizeKey: write.normalizeKey,
    keepRejects: keepRejectsOf(pipeline),
    narrowing: {
      window: await windowOfQuery(attempt, known, contract, fields),
      slice: sliceOfQuery(attempt, known, fields),
    },
  })
  const { read, rejected, rejects } = landed
  const window = await takeWindow(attempt, cursor, contract, (column, ends, part) => {
    requireReadable(column, ends)
    return remote.keepWindow(column, ends, part)
  })
  const replaced = sliceToReplace(pipeline, slice)
  if (replaced !== null && write.strategy === 'replace-partition') {
    const column = sliceColumn(contract, replaced)
    requireSliceable(column, replaced.bounds, write.size === 'hour')
    if (replaced.bounds.kind === 'value') await requireOneName(local, column, replaced.name)
    const { count, rows } = await remote.rowsOutside(replaced, ROWS_SHOWN)
    if (count > 0) throw otherSlices(count, rows, replaced)
  }
  const duplicate = await remote.keepNewest()
  const outside = window?.outside ?? 0
  return {
    contract,
    // Only the target knows it, and whoever works there.
    table: '',
    read,
    outside,
    filtered: 0,
    added: 0,
    afterTransform: read - outside,
    rejected,
    duplicate,
    rejects,
    cursor: window,
  }
}

/** The window where the query holds the cursor in the type of the table: only then do its ends mean the same there. */
async function windowOfQuery(
  { pipeline, local }: Attempt,
  { table, cursor }: Known,
  contract: Contract,
  fields: readonly SourceField[],
): Promise<CursorWindow | null> {
  if (cursor === null) return null
  const isCursor = ({ name }: { readonly name: string }) => name === cursor.incremental.cursor
  const column = contract.columns.find(isCursor)
  const type = fields.find(isCursor)?.type
  if (column === undefined || type === undefined) return null
  if (!isTimeType(type) && !isNumberType(type)) return null
  const window = await windowAtSource(local, cursor, type, typeHeld(pipeline, table, column.name))
  if (window !== null) requireReadable(column, window)
  return window
}

/** The slice, where the query holds its column in the type of the table. */
function sliceOfQuery(
  { pipeline, slice }: Attempt,
  { table }: Known,
  fields: readonly SourceField[],
): Narrowing['slice'] {
  const type = fields.find(({ name }) => name === slice?.by)?.type
  return slice !== null && type !== undefined && mayNarrow(pipeline, table, slice, type)
    ? { slice, type }
    : null
}

/** The server would call an end that it cannot read a fault of the query. */
function requireReadable(column: ContractColumn, { from, to }: CursorWindow): void {
  for (const end of [from, to]) {
    if (end !== null && 'reason' in readText(column.type, end)) throw unreadableEnd(column, end)
  }
}

function remoteOf({ pipeline, session }: Attempt): RemoteCompare {
  const { source, target } = pipeline
  if (session.remote !== undefined && source.own?.place === target.place) return session.remote
  throw new StetError(
    'STET_CONFIG',
    `${source.description} is a query of another target than ${target.description}`,
    {
      hint: "Take the query from the pipeline's own target, or read it with a source: stet/sources/postgres",
    },
  )
}
