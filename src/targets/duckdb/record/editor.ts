import { StetError } from '../../../errors.ts'
import { openLocalEngine } from '../../../local/engine.ts'
import type { RecordEditor } from '../../../model/target.ts'
import { attachFile } from '../attach.ts'
import { lookAtFile } from '../file.ts'
import { duckdbTableName } from '../table-name.ts'
import { writeEvent } from './events.ts'
import { isFrozen } from './history.ts'
import { migrateRecord, recordVersion, refuseNewerRecord, SLICES_VERSION } from './schema.ts'
import { findWatermark, forgetWatermark, writeWatermark } from './watermark.ts'

/** People wait for this; a run that holds the file for longer is named instead. */
const WAIT_MS = 2_000
const forgotten = (slice: string) => `the slice ${slice}, which was never loaded, is not shown any more`

/** What the record's schema is said to have been made by: a person's hand knows no version of Stet. */
const BY_HAND = 'by hand'

/**
 * Opens the record of a file to be changed by a person. The file is held only while something is done, because whoever has
 * it keeps every run waiting. Only setting a watermark makes a file that is not there.
 *
 * @throws {StetError} `STET_LOCKED` while a run holds the file, `STET_VERSION` when a newer Stet has written the record.
 */
export async function openRecord(path: string, shown: string, signal: AbortSignal): Promise<RecordEditor> {
  const local = await openLocalEngine({ threads: 1 })
  const attach = (readOnly: boolean) =>
    attachFile({ local, path, shown, readOnly, timeoutMs: WAIT_MS, signal, notice: () => undefined })

  /** Runs a step in a transaction on a record that is up to date. */
  const change = async <Value>(step: (catalog: string) => Promise<Value>): Promise<Value> => {
    const file = await attach(false)
    if (file === null) throw new StetError('STET_INTERNAL', `${shown} was to be written and was not made`)
    try {
      await migrateRecord(local, file.catalog, BY_HAND)
      await local.run('begin transaction')
      try {
        const value = await step(file.catalog)
        await local.run('commit')
        return value
      } catch (error) {
        await local.run('rollback').catch(() => undefined)
        throw error
      }
    } finally {
      await file.release()
    }
  }

  return {
    watermark: async (pipeline, table) => {
      const file = await attach(true)
      if (file === null) return null
      try {
        const version = await recordVersion(local, file.catalog)
        refuseNewerRecord(version)
        if (version < SLICES_VERSION) return null
        return await findWatermark(local, file.catalog, pipeline, duckdbTableName(table).recorded)
      } finally {
        await file.release()
      }
    },

    setWatermark: async ({ pipeline, table: written, cursor, definition, value }, by) => {
      const table = duckdbTableName(written).recorded
      await change(async (catalog) => {
        const before = await findWatermark(local, catalog, pipeline, table)
        if (value !== null)
          await writeWatermark(local, catalog, { pipeline, table, cursor, definition, value, setBy: by })
        else await forgetWatermark(local, catalog, pipeline, table)
        const other = before === null || before.cursor === cursor ? '' : ` (of ${before.cursor})`
        const detail = `${cursor}: ${before?.value ?? 'none'}${other} -> ${value ?? 'none'}`
        await writeEvent(local, catalog, { kind: 'watermark', pipeline, table, slice: null, detail, by })
      })
    },

    thaw: async (written, slice, by) => {
      const table = duckdbTableName(written).recorded
      if ((await lookAtFile(path, shown)) === 'missing') return false
      return change(async (catalog) => {
        if (!(await isFrozen(local, catalog, table, slice))) return false
        const detail = `the slice ${slice} follows its source again`
        await writeEvent(local, catalog, { kind: 'thaw', pipeline: null, table, slice, detail, by })
        return true
      })
    },

    forgetSlice: async (pipeline, written, slice, by) => {
      const table = duckdbTableName(written).recorded
      await change((catalog) =>
        writeEvent(local, catalog, { kind: 'forget', pipeline, table, slice, detail: forgotten(slice), by }),
      )
    },

    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  }
}
