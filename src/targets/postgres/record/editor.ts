import { StetError } from '../../../errors.ts'
import type { Watermark } from '../../../model/slice.ts'
import type { RecordEditor } from '../../../model/target.ts'
import { parseTableName } from '../../shared/table-name.ts'
import { identify } from '../catalog.ts'
import type { Connection } from '../connection.ts'
import { describeError } from '../errors.ts'
import { settingsSql } from '../settings.ts'
import { inTransactionOf } from '../transaction.ts'
import { writeEvent } from './events.ts'
import { isFrozen } from './history.ts'
import { releaseLease, tryLease, until } from './lease.ts'
import { migrate } from './migrations.ts'
import { readWatermark } from './watermark.ts'

/** Milliseconds that a person waits for a run that is under way. */
const LOCK_TIMEOUT_MS = 10_000
/** How old the heartbeat of a run may be that keeps a slice from being thawed, in milliseconds. */
const LEASE_TIMEOUT_MS = 15_000

/** Opens the record for changes by hand, and brings it up to date first. Closes the connection with itself. */
export async function openEditor(connection: Connection, signal: AbortSignal): Promise<RecordEditor> {
  const settings = settingsSql({ lockTimeoutMs: LOCK_TIMEOUT_MS, searchPath: null })
  const doing = async <T>(action: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await inTransactionOf(connection, settings, work)
    } catch (error) {
      throw describeError(error, action)
    }
  }
  /** As the record names it: the user may have left the schema out. */
  const nameOf = async (table: string) => (await identify(connection, parseTableName(table))).qualified
  await doing('open the record of runs', () => migrate(connection))
  return {
    watermark: (pipeline, table) =>
      doing('read the watermark', async () => readWatermark(connection, pipeline, await nameOf(table))),

    setWatermark: (watermark, by) =>
      doing('set the watermark', async () => {
        const table = await nameOf(watermark.table)
        // Against runs that move it just now; those that only read it go on, and are refused at their commit.
        await connection.query('lock table stet.watermark in share row exclusive mode')
        const before = await readWatermark(connection, watermark.pipeline, table)
        if (before === null && watermark.value === null) return
        if (watermark.value === null) await forget(connection, watermark.pipeline, table)
        else await put(connection, { ...watermark, value: watermark.value, table }, by)
        await writeEvent(connection, {
          kind: 'watermark',
          pipeline: watermark.pipeline,
          table,
          slice: null,
          detail: `${watermark.cursor}: ${before?.value ?? 'none'} → ${watermark.value ?? 'none'}`,
          by,
        })
      }),

    thaw: async (table, slice, by) => {
      let holder = ''
      const thawed = await until(
        () =>
          doing('thaw the slice', async () => {
            const name = await nameOf(table)
            if (!(await isFrozen(connection, name, slice))) return false
            // As a run would: one that has looked before it at what is frozen would freeze the slice again when it ends.
            const outcome = await tryLease(connection, {
              name: { table: name, slice },
              start: { attemptId: `thaw by ${by}`, runId: 'thaw', holder: by },
              leaseTimeoutMs: LEASE_TIMEOUT_MS,
              heartbeatProcess: null,
            })
            if (outcome.lease === null) {
              holder = outcome.holder
              return null
            }
            const detail = `slice ${slice} may change again, until the next snapshot of it`
            await writeEvent(connection, { kind: 'thaw', pipeline: null, table: name, slice, detail, by })
            await releaseLease(connection, outcome.lease)
            return true
          }),
        { timeoutMs: LOCK_TIMEOUT_MS, signal },
      )
      if (thawed !== null) return thawed
      throw new StetError('STET_LOCKED', `Slice ${slice} of ${table} is being loaded by ${holder} (G7)`, {
        hint: 'This slice was not thawed, since that run goes by what was frozen when it began. Thaw it when it has ended',
        details: { table, slice, holder },
      })
    },

    forgetSlice: (pipeline, table, slice, by) =>
      doing('forget the slice', async () => {
        const detail = `slice ${slice}, which was never loaded, is not shown any more`
        await writeEvent(connection, {
          kind: 'forget',
          pipeline,
          table: await nameOf(table),
          slice,
          detail,
          by,
        })
      }),

    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

async function forget(connection: Connection, pipeline: string, table: string): Promise<void> {
  await connection.query('delete from stet.watermark where pipeline = $1 and table_name = $2', [
    pipeline,
    table,
  ])
}

async function put(
  connection: Connection,
  { pipeline, table, cursor, value, definition }: Omit<Watermark, 'setAt' | 'setBy'>,
  by: string,
): Promise<void> {
  await connection.query(
    `insert into stet.watermark as w (pipeline, table_name, cursor_column, value, definition, set_by, set_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp())
     on conflict (pipeline, table_name) do update
        set cursor_column = excluded.cursor_column, value = excluded.value, definition = excluded.definition,
            set_by = excluded.set_by,
            set_at = greatest(excluded.set_at, w.set_at + interval '1 microsecond')`,
    [pipeline, table, cursor, value, definition, by],
  )
}
