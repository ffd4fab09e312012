import { compare } from '../local/compare.ts'
import { digestOf } from '../local/digest.ts'
import type { ColumnType, Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { OpenSource } from '../model/source.ts'
import type { RowsInScope, Scope, TargetTable } from '../model/target.ts'
import { type ReadyRows, readyRows } from './rows.ts'
import { driftOf, samplesOf } from './samples.ts'
import { turnIntoText, withTextColumns } from './target-form.ts'
import { type CursorPlan, windowAtSource } from './window.ts'
import {
  type Attempt,
  holdsJson,
  type Known,
  looksAtWhole,
  mayNarrow,
  sliceToReplace,
  typeHeld,
  type Workplace,
} from './workplace.ts'

/** Lands the source in the local engine and compares it there with rows that the target gives out. */
export async function openLocalWorkplace(attempt: Attempt, known: Known): Promise<Workplace> {
  const { pipeline, options, slice, local, session, signal, notice } = attempt
  const { table, cursor, frozen } = known
  const source = await pipeline.source.open({
    local,
    cwd: options.cwd ?? process.cwd(),
    signal,
    progress: options.onProgress ?? (() => undefined),
    mayLookLater: true,
    slice: slice ?? undefined,
    mayNarrow: (type) => slice !== null && mayNarrow(pipeline, table, slice, type),
    holdsJson: (column) => holdsJson(pipeline, table, column),
    keepRejects: pipeline.onReject === 'quarantine',
    cursor:
      cursor === null
        ? undefined
        : cursorRequest(local, cursor, typeHeld(pipeline, table, cursor.incremental.cursor)),
  })
  return {
    get files() {
      return source.files
    },
    notices: source.notices ?? [],
    ready: () =>
      untilLooked(source, () =>
        readyRows({
          pipeline,
          local,
          session,
          source,
          table,
          signal,
          notice,
          prepare: (contract) => session.prepare(contract),
          cursor,
          slice: sliceToReplace(pipeline, slice),
        }),
      ),
    compare: async (rows, rules) => {
      const { contract, scope, scopeKind } = await pull(attempt, table, rows)
      options.onProgress?.({ phase: 'comparing', rows: rows.afterTransform })
      const comparison = await compare(local, rows.table, scope, contract, rules)
      const seen = { contract, scope, landed: rows.table, comparison }
      return {
        contract,
        comparison,
        scopeKind,
        samples: () => samplesOf(local, seen),
        drift: async () => (frozen ? driftOf(local, seen) : []),
        digest: () => digestOf(local, comparison.difference.table, contract),
      }
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  }
}

/** Does the work; when it is over, also by an error, the source knows its files: they may have been looked at meanwhile only. */
async function untilLooked<T>(source: OpenSource, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } finally {
    await source.looked?.().catch(() => undefined)
  }
}

function cursorRequest(local: LocalConnection, plan: CursorPlan, expected: ColumnType | undefined) {
  return {
    column: plan.incremental.cursor,
    window: (type: ColumnType) => windowAtSource(local, plan, type, expected),
  }
}

/** The target's rows that the load can touch; a column that they hold wider than the local type goes over as text. */
async function pull(
  attempt: Attempt,
  table: TargetTable | null,
  rows: ReadyRows,
): Promise<{ scope: RowsInScope | null; scopeKind: Scope['kind']; contract: Contract }> {
  if (table === null) return { scope: null, scopeKind: 'table', contract: rows.contract }
  const { local, session } = attempt
  let contract = rows.contract
  for (;;) {
    const wanted = await scopeOf(attempt, table, rows, contract)
    const scope = await session.rowsInScope(contract, wanted)
    if (scope.unheld.length === 0) return { scope, scopeKind: wanted.kind, contract }
    const wide = contract.columns.filter((column) => scope.unheld.includes(column.id))
    await turnIntoText(local, rows.table, wide)
    contract = withTextColumns(contract, scope.unheld)
  }
}

async function scopeOf(
  { pipeline, local, slice }: Attempt,
  table: TargetTable,
  rows: ReadyRows,
  contract: Contract,
): Promise<Scope> {
  const replaced = sliceToReplace(pipeline, slice)
  if (replaced !== null) return { kind: 'slice', slice: replaced }
  const key = contract.columns.filter((column) => column.key)
  const count = rows.afterTransform - rows.rejected - rows.duplicate
  if (looksAtWhole(pipeline, table, { hasKey: key.length > 0, rows: count })) return { kind: 'table' }
  const keys = local.newName('keys')
  await local.run(
    `create table ${keys} as select ${key.map((column) => column.id).join(', ')} from ${rows.table}`,
  )
  return { kind: 'keys', keys, count }
}
