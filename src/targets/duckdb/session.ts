import { StetError } from '../../errors.ts'
import { interruptOnAbort } from '../../local/engine.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import type { Difference } from '../../model/comparison.ts'
import type { RunStart } from '../../model/run.ts'
import type { Slice } from '../../model/slice.ts'
import type { OpenTargetOptions, TargetSession } from '../../model/target.ts'
import { applyDifference } from './apply.ts'
import { type AttachedFile, attachFile } from './attach.ts'
import { canonicalTexts } from './canonical.ts'
import { type FoundTable, findTable } from './catalog.ts'
import {
  checkColumns,
  checkNewTable,
  isKeyEnforced,
  isRewritable,
  keyColumnsOf,
  requireUniqueKey,
} from './checks.ts'
import { describeError } from './errors.ts'
import { plannedStatements } from './planned.ts'
import { keepExtras } from './record/extras.ts'
import { readHistory } from './record/history.ts'
import { findLeftState, finishRun, noteLeftState, startRun, statusAtEnd } from './record/runs.ts'
import { migrateRecord } from './record/schema.ts'
import { viewNoRows, viewRowsInScope } from './scope.ts'
import { createStatements } from './statements.ts'
import { duckdbTableName } from './table-name.ts'
import { nativeOfType } from './types.ts'

/**
 * One attempt's dealings with a DuckDB file. The file is attached to the run's own engine, so that its rows are compared
 * where they lie. From `acquire` to the end nobody else has the file (G7): the lock on it is the lease, and a snapshot is
 * not needed.
 *
 * Two connections: `local` is the pipeline's and never in a transaction; `writer` is ours. A transaction sees the tables
 * of the local engine as they were when it first looked at them, so it begins in `apply`, when all of them are there.
 */
export async function openSession(
  path: string,
  shown: string,
  options: OpenTargetOptions,
): Promise<TargetSession> {
  const { local, mode, write, signal } = options
  const table = duckdbTableName(options.table)
  const writer = await local.connect()
  let file: AttachedFile | null = null
  let start: RunStart | null = null
  let found: FoundTable | null = null
  let contract: Contract | null = null
  let slice: Slice | null = null
  let frozen = false
  let inTransaction = false
  let created = false

  const attach = async (): Promise<AttachedFile | null> =>
    attachFile({
      local: writer,
      path,
      shown,
      readOnly: mode === 'plan',
      timeoutMs: options.lockTimeoutMs,
      signal,
      notice: options.notice,
    })
  if (mode === 'plan') file = await attach()

  const qualified = (): string => `${catalogOf(file)}.${table.quoted}`

  /** Runs steps that stop when the run is aborted, and gives their errors Stet's words. */
  const guarded = async <Value>(step: () => Promise<Value>): Promise<Value> => {
    signal.throwIfAborted()
    const stopListening = interruptOnAbort(writer, signal)
    try {
      return await step()
    } catch (error) {
      signal.throwIfAborted()
      throw describeError(error, table.shown)
    } finally {
      stopListening()
    }
  }

  const beginTransaction = async (agreed: Contract): Promise<void> => {
    if (inTransaction) return
    await writer.run('begin transaction')
    inTransaction = true
    if (found !== null) return
    await writer.run(`create schema if not exists ${catalogOf(file)}.${quoteIdentifier(table.schema)}`)
    for (const statement of createStatements(qualified(), agreed)) await writer.run(statement)
    created = true
  }

  /** A way that was asked for and that there is none of is told, where there is something to write. */
  const sayHowApplied = ({ inserts, updates, deletes, marks }: Difference): void => {
    const { apply = 'diff' } = write.strategy === 'replace-partition' ? write : {}
    if (apply === 'diff' || inserts + updates + deletes + marks === 0) return
    options.notice(`DuckDB has no partitions to exchange: the rows are written in place (apply ${apply})`)
  }

  /** Also where none is known of: an abort may have cut short what should have ended one. */
  const rollback = async (): Promise<void> => {
    inTransaction = false
    await writer.run('rollback').catch(() => undefined)
  }

  return {
    acquire: async (run) => {
      file = await attach()
      start = run
      await guarded(async () => {
        await migrateRecord(writer, catalogOf(file), run.stetVersion)
        await startRun(writer, catalogOf(file), table.recorded, run)
      })
    },

    history: async (pipeline, name) => {
      if (file === null) return { watermark: null, frozen: false }
      const history = await guarded(() =>
        readHistory(writer, catalogOf(file), pipeline, table.recorded, name),
      )
      frozen = history.frozen
      return history
    },

    describe: async () => {
      found = file === null ? null : await guarded(() => findTable(writer, catalogOf(file), table))
      return found
    },

    prepare: async (agreed) => {
      contract = agreed
      const existing = found
      await guarded(async () => {
        if (existing === null) {
          await checkNewTable(writer, agreed)
          return
        }
        checkColumns(existing, agreed)
        if (isKeyEnforced(existing, agreed, write)) return
        // A table that a run has left with this key and this many rows has not been written since, or not to any harm.
        const left = await findLeftState(writer, catalogOf(file), table.recorded)
        const rows = await writer.count(`select count(*) from ${qualified()}`)
        if (left?.rows === rows && left.keyColumns === keyColumnsOf(agreed)) return
        await requireUniqueKey(writer, { name: existing.name, qualified: qualified() }, agreed, write)
      })
    },

    canonical: async (column, from) => {
      const existing = found?.columns.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())
      const native = existing?.native ?? nativeOfType(column.type, column.name)
      return guarded(() => canonicalTexts(local, column, native, from))
    },

    // The file is this run's alone since `acquire`, and the transaction begins in `apply`: see above.
    begin: async () => undefined,

    rowsInScope: async (agreed, scope) => {
      contract = agreed
      slice = scope.kind === 'slice' ? scope.slice : null
      const isThere = found !== null
      return guarded(() =>
        isThere ? viewRowsInScope(local, qualified(), agreed, scope) : viewNoRows(local, agreed),
      )
    },

    apply: async (agreed, difference, load) => {
      contract = agreed
      sayHowApplied(difference)
      return guarded(async () => {
        await beginTransaction(agreed)
        const keyEnforced = found !== null && isKeyEnforced(found, agreed, write)
        const rewritable = found !== null && isRewritable(found, agreed)
        const to = {
          name: table.shown,
          qualified: qualified(),
          keyEnforced,
          created,
          rewritable,
          slice: load === undefined ? slice : load.slice,
          frozen: load?.frozen === true,
        }
        return applyDifference(writer, to, agreed, write, difference)
      })
    },

    statements: () =>
      contract === null
        ? []
        : plannedStatements({ name: table.shown, found, contract, write, slice, frozen }),

    commit: async (record, extras) => {
      const agreed = contract
      if (agreed === null) throw new StetError('STET_INTERNAL', 'A run was committed before it was prepared')
      await guarded(async () => {
        await beginTransaction(agreed)
        await finishRun(writer, catalogOf(file), record)
        if (extras !== undefined && start !== null)
          await keepExtras(writer, catalogOf(file), table.recorded, start, record, extras)
        await noteLeftState(writer, catalogOf(file), record.attemptId, qualified(), keyColumnsOf(agreed))
      })
      // From here on an abort comes too late: an interrupted COMMIT says nothing of what became of it.
      const failure = await writer.run('commit').then(
        () => null,
        (error: unknown) => error,
      )
      if (failure === null) inTransaction = false
      else await rollback()
      // DuckDB answers the COMMIT of a failed transaction as if all were well, so only the record can be believed.
      if ((await statusAtEnd(writer, catalogOf(file), record.attemptId)) !== record.status) {
        throw describeError(
          failure ??
            new StetError(
              'STET_INTERNAL',
              `DuckDB undid the transaction of ${table.shown} and said nothing; nothing was written`,
            ),
          table.shown,
        )
      }
      await file?.release()
    },

    fail: async (record) => {
      await rollback()
      if (file !== null && start !== null) await finishRun(writer, file.catalog, record)
      await file?.release()
    },

    [Symbol.asyncDispose]: async () => {
      await rollback()
      await file?.release()
      writer.duckdb.closeSync()
    },
  }
}

function catalogOf(file: AttachedFile | null): string {
  if (file === null) throw new StetError('STET_INTERNAL', 'The DuckDB file was used before it was acquired')
  return file.catalog
}
