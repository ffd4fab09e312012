import { StetError } from '../../errors.ts'
import type { Contract } from '../../model/columns.ts'
import type { RunRecord, RunStart } from '../../model/run.ts'
import type { Slice } from '../../model/slice.ts'
import type { CommitExtras, History, OpenTargetOptions, TargetSession } from '../../model/target.ts'
import { parseTableName, requireIdentifierFits, type TableName } from '../shared/table-name.ts'
import { applyToNewTable, applyToTable } from './apply.ts'
import { canonicalTexts } from './canonical.ts'
import {
  type CatalogTable,
  fingerprintOf,
  identify,
  readCatalog,
  type TableIdentity,
  uniqueRule,
} from './catalog.ts'
import {
  IDENTIFIER_BYTES_MAX,
  requireColumns,
  requireCreatable,
  requireSliceValues,
  requireTable,
} from './checks.ts'
import type { Connection } from './connection.ts'
import { describeError, isConnectionLoss, sqlstateOf } from './errors.ts'
import { judgesOf } from './judges.ts'
import { type KeyEnforcement, requireKeyEnforced } from './key-checks.ts'
import { lockTable, requireLease, takeLease } from './locks.ts'
import { requireExactNewKey, requireNullsNotDistinct } from './new-key.ts'
import { resolveOutcome } from './outcome.ts'
import { requirePlace } from './place.ts'
import { type Heartbeat, startHeartbeat } from './record/heartbeat.ts'
import { readHistory } from './record/history.ts'
import { type Lease, leaseLost, releaseLease } from './record/lease.ts'
import { migrate } from './record/migrations.ts'
import { keepRejects } from './record/quarantine.ts'
import { finishRun, insertRun } from './record/runs.ts'
import { moveWatermark } from './record/watermark.ts'
import { remoteCompare } from './remote/index.ts'
import { mayRecord, missingGrants, rightsOfLoad, withGrants } from './rights.ts'
import { pullScope } from './scope.ts'
import { keyedPlansSql, settingsSql } from './settings.ts'
import {
  applyToSlice,
  mayExchange,
  requirePartitioned,
  type SliceWay,
  type SliceWrite,
  waysOfSlice,
} from './slice-apply.ts'
import { statementsOf } from './statements.ts'
import { inTransactionOf } from './transaction.ts'

/** Opens connections for a session: its own, which an abort cuts, and others that go on after one. */
export type Connect = (signal?: AbortSignal) => Promise<Connection>

/** What `prepare` found out, and everything after relies on. */
interface Prepared {
  readonly contract: Contract
  readonly enforcement: KeyEnforcement
}

/** One attempt's dealings with PostgreSQL; the order of its calls is the contract of {@link TargetSession}. */
export async function openSession(connect: Connect, options: OpenTargetOptions): Promise<TargetSession> {
  const { local, write, mode, lockTimeoutMs, leaseTimeoutMs, signal, notice } = options
  const tableName = parseTableName(options.table)
  // Before the server sees them: it would look for the name as cut, and might find another table.
  for (const part of [tableName.schema, tableName.table]) {
    if (part !== null) requireIdentifierFits(part, IDENTIFIER_BYTES_MAX)
  }
  const connection = await connect(signal)
  const identity = await identifyOrClose(connection, tableName)
  const settings = settingsSql({ lockTimeoutMs, searchPath: identity.searchPath })
  let start: RunStart | undefined
  let lease: Lease | undefined
  let heartbeat: Heartbeat | undefined
  let table: CatalogTable | null = null
  let prepared: Prepared | undefined
  /** Of the last scope, for the statements of a plan. */
  let scopeSlice: Slice | null = null
  let way: SliceWay | null = null
  let inTransaction = false

  /** Gives an abort's own reason, and every other failure its place in the table of errors. */
  const doing = async <T>(action: string, work: () => Promise<T>): Promise<T> => {
    try {
      signal.throwIfAborted()
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      const described = describeError(error, `${action} ${identity.qualified}`)
      if (sqlstateOf(error) !== '42501') throw described
      await rollback().catch(() => undefined)
      const { strategy } = write
      const removes = strategy.startsWith('replace') || (strategy === 'upsert' && write.missing === 'delete')
      throw await withGrants(described, connection, identity, rightsOfLoad(write, removes))
    }
  }

  const contractOf = (): Prepared => {
    if (prepared === undefined) throw new StetError('STET_INTERNAL', 'prepare() was not called')
    return prepared
  }

  /** The write into one slice of a table that is there; null for every other one. */
  const slicedWrite = (contract: Contract, slice: Slice | null): SliceWrite | null => {
    if (write.strategy !== 'replace-partition' || slice === null || table === null) return null
    const { enforcement } = contractOf()
    return {
      context: { table, contract, write, enforcement, slice },
      attemptId: start?.attemptId ?? 'plan',
      patience: { timeoutMs: lockTimeoutMs, signal, notice, random: Math.random },
    }
  }

  const leaseOf = (): Lease => {
    if (lease === undefined) throw new StetError('STET_INTERNAL', 'acquire() was not called')
    return lease
  }

  const keepExtras = async (record: RunRecord, extras: CommitExtras) => {
    if (start === undefined) return
    const { pipeline, slice } = start
    const where = { pipeline, table: identity.qualified, slice, attemptId: record.attemptId }
    await keepRejects(connection, extras.quarantine, { ...where, files: record.files })
    if (extras.watermark === null) return
    await moveWatermark(connection, extras.watermark, identity.qualified, record.attemptId)
  }

  const begin = async (access = mode === 'plan' ? ' read only' : '') => {
    await connection.query(`begin${access};\n${settings}\n${keyedPlansSql()}`)
    inTransaction = true
    const [process] = await connection.query('select pg_backend_pid() as pid')
    if (process?.pid != null) connection.runsIn(process.pid)
  }

  const rollback = async () => {
    if (!inTransaction || connection.lost) return
    inTransaction = false
    await connection.query('rollback')
  }

  const remote = remoteCompare({
    connection,
    identity,
    write,
    table: () => table,
    doing,
    // Not read only, also for a plan: its own tables are temporary, and undone with the rest.
    openTransaction: () => begin(''),
    undo: rollback,
  })

  return {
    acquire: (run) =>
      doing('take the lease of', async () => {
        start = run
        await inTransactionOf(connection, settings, () => migrate(connection))
        const beating = await connect()
        try {
          lease = await takeLease(connection, settings, identity, run, options, beating.directProcess)
        } catch (error) {
          await beating[Symbol.asyncDispose]()
          throw error
        }
        heartbeat = startHeartbeat({ lease, leaseTimeoutMs, connection: beating, connect })
      }),

    history: (pipeline, slice) =>
      doing('read the record of', () =>
        inTransactionOf(connection, settings, () =>
          readHistory(connection, pipeline, identity.qualified, slice),
        ).catch((error: unknown) => withoutRecord(error, options)),
      ),

    describe: () =>
      doing('describe', async () => {
        table = await inTransactionOf(connection, settings, () =>
          readCatalog(connection, identity, { counting: true }),
        )
        if (table === null) return null
        const { columns, rowsEstimate } = table
        requireTable(table)
        const judges = mode === 'plan' ? await judgesOf(connection, table.oid) : []
        return {
          name: identity.qualified,
          columns: columns.map(({ name, type, native, nullable, generated, optional, kept }) => ({
            name,
            type,
            native,
            nullable,
            generated,
            optional,
            kept,
          })),
          rowsEstimate,
          uniques: table.uniques.filter(({ valid }) => valid).map(uniqueRule),
          ...(judges.length === 0 ? {} : { judges }),
        }
      }),

    prepare: (contract) =>
      doing('prepare', async () => {
        if (write.strategy === 'replace-partition') {
          requirePartitioned(identity.qualified, table, write)
          requireSliceValues(identity.qualified, contract, write)
        }
        if (table === null) {
          if (write.strategy === 'replace-partition' && write.apply === 'auto')
            notice(
              `${identity.qualified} is made without partitions, so apply: 'auto' writes rows and exchanges none`,
            )
          requireCreatable(identity, contract)
          await requireExactNewKey(connection, identity, contract)
          await requireNullsNotDistinct(connection, contract, write.nullKeys)
          prepared = { contract, enforcement: contract.columns.some(({ key }) => key) ? 'index' : 'none' }
          return
        }
        requireTable(table)
        requireColumns(table, contract)
        prepared = { contract, enforcement: requireKeyEnforced(table, contract, write) }
      }),

    canonical: (column, from) =>
      doing('bring values into the form of', () =>
        canonicalTexts({ connection, local, table, column, from, settings, inTransaction }),
      ),

    begin: () =>
      doing('begin to load', async () => {
        // A query that was landed here has begun it already, and its rows are in it.
        if (!inTransaction) await begin()
        if (mode === 'plan') return
        await lockTable(connection, identity, options.noticeTurn ?? notice)
        await requireLease(connection, leaseOf())
        const found = await identify(connection, tableName)
        const now = await readCatalog(connection, found, { counting: false })
        if (fingerprintOf(now) !== fingerprintOf(table)) {
          throw new StetError(
            'STET_SERIALIZATION',
            `${identity.qualified} was altered since this run described it`,
            {
              hint: 'Nothing was written; run again',
            },
          )
        }
      }),

    remote,

    rowsInScope: (contract, scope) =>
      doing('read', async () => {
        if (table === null) throw new StetError('STET_INTERNAL', `${identity.qualified} does not exist yet`)
        scopeSlice = scope.kind === 'slice' ? scope.slice : null
        const sliced = slicedWrite(contract, scopeSlice)
        // Before the pull, so that a swap that is not possible costs nothing.
        way = sliced === null || !mayExchange(sliced) ? null : await waysOfSlice(connection, sliced)
        return pullScope({ connection, local, table, contract, scope, readOnly: mode === 'plan' })
      }),

    apply: (contract, difference, load) =>
      doing('write', async () => {
        const { enforcement } = contractOf()
        const work = { connection, local, difference, notice }
        if (table === null) return applyToNewTable(work, identity, contract, write)
        const slice = load === undefined ? scopeSlice : load.slice
        const frozen = load?.frozen === true
        const sliced = slicedWrite(contract, slice)
        if (sliced === null) return applyToTable(work, { table, contract, write, enforcement, slice }, frozen)
        return applyToSlice(work, sliced, { frozen, live: load?.live ?? 0 })
      }),

    statements: () =>
      statementsOf({ table, write, slice: remote.slice() ?? scopeSlice, ...contractOf() }, identity, {
        way,
        found: remote.statements(),
      }),

    lackingRights: (difference) =>
      doing('look at the rights on', async () => {
        if (!(await mayRecord(connection))) {
          return 'The user of the target may not make or use schema "stet", where runs are recorded: a run is refused (STET_PRIVILEGE) with the SQL for an owner to run once'
        }
        const { inserts, updates, deletes, marks } = difference
        const changes = inserts + updates + deletes + marks > 0
        if (table !== null && !changes) return null
        const grants = await missingGrants(connection, identity, rightsOfLoad(write, deletes > 0))
        return grants.length === 0
          ? null
          : `The user of the target lacks rights that a run needs: it is refused (STET_PRIVILEGE) until an owner has run: ${grants.join('; ')}`
      }),

    commit: (record, extras) =>
      doing('commit', async () => {
        if (heartbeat?.lost === true || !(await releaseLease(connection, leaseOf())))
          throw leaseLost(leaseOf())
        const transaction = await finishRun(connection, record)
        if (transaction === null) throw leaseLost(leaseOf())
        if (extras !== undefined) await keepExtras(record, extras)
        try {
          const done = await connection.command('commit')
          inTransaction = false
          // The server answers a commit of a failed transaction with the word ROLLBACK and no error.
          if (done !== 'COMMIT')
            throw new StetError('STET_INTERNAL', `The server answered the commit with ${done}`)
        } catch (error) {
          if (!isConnectionLoss(error) && !signal.aborted) throw error
          inTransaction = false
          await resolveOutcome({
            connect,
            transaction,
            attemptId: record.attemptId,
            timeoutMs: lockTimeoutMs,
            cause: error,
          })
        }
        lease = undefined
      }),

    fail: async (record) => {
      try {
        await rollback().catch(() => undefined)
        if (start === undefined) return
        const run = start
        const reusable = !connection.lost && !signal.aborted
        const recorder = reusable ? connection : await connect()
        try {
          await inTransactionOf(recorder, settings, async () => {
            await insertRun(recorder, identity.qualified, run, lease?.epoch ?? null)
            await finishRun(recorder, record)
            if (lease !== undefined) await releaseLease(recorder, lease)
          })
        } finally {
          if (!reusable) await recorder[Symbol.asyncDispose]()
        }
        lease = undefined
      } catch (error) {
        // The failure that is being recorded is the one that people must see.
        notice(describeError(error, `record the failed run of ${identity.qualified}`).message)
      }
    },

    [Symbol.asyncDispose]: async () => {
      await heartbeat?.[Symbol.asyncDispose]()
      await rollback().catch(() => undefined)
      await connection[Symbol.asyncDispose]()
    },
  }
}

async function identifyOrClose(connection: Connection, name: TableName): Promise<TableIdentity> {
  try {
    const identity = await identify(connection, name)
    requirePlace(identity)
    return identity
  } catch (error) {
    const described = describeError(error, `look for table ${name.table}`)
    const { schema, table } = name
    const isRefused = sqlstateOf(error) === '42501' && schema !== null
    const told = isRefused ? await withGrants(described, connection, { schema, table }, []) : described
    await connection[Symbol.asyncDispose]()
    throw told
  }
}

/** A plan needs no rights on the record; what it cannot read it says. A run that may not read it cannot be recorded either. */
function withoutRecord(error: unknown, { mode, notice }: OpenTargetOptions): History {
  if (mode !== 'plan' || sqlstateOf(error) !== '42501') throw error
  notice('The record in schema "stet" may not be read, so the plan knows of no watermark and no frozen slice')
  return { watermark: null, frozen: false }
}
