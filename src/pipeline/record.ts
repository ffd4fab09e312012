import { isStetError } from '../errors.ts'
import type { RecordEvent, RunLog, RunLogEntry } from '../model/run.ts'
import type { Watermark } from '../model/slice.ts'
import type { Target } from '../model/target.ts'
import type { DefinedPipeline } from './types.ts'

/** What the record of a target says of one pipeline and its table. */
export interface PipelineRecord {
  /** Newest first. */
  readonly entries: readonly RunLogEntry[]
  /** Newest first. */
  readonly events: readonly RecordEvent[]
  readonly watermark: Watermark | null
  /** The table's name in the record; null for a pipeline that never ran. */
  readonly table: string | null
}

export interface ReadRecordOptions {
  /** Default: the pipeline's. */
  readonly target?: Target | undefined
  readonly signal: AbortSignal
  /** How long to wait for somebody who holds the record, in milliseconds. Default 30 000. */
  readonly lockTimeoutMs?: number | undefined
}

const LOCK_TIMEOUT_MS = 30_000
const NOTHING: PipelineRecord = { entries: [], events: [], watermark: null, table: null }

/** Reads the record of one pipeline; a target that has none yet gives nothing. */
export async function recordOf(
  pipeline: DefinedPipeline,
  options: ReadRecordOptions,
): Promise<PipelineRecord> {
  const target = options.target ?? pipeline.target
  const deadline = performance.now() + (options.lockTimeoutMs ?? LOCK_TIMEOUT_MS)
  while (true) {
    options.signal.throwIfAborted()
    try {
      await using log = await target.openRunLog({ signal: options.signal })
      return await read(log, pipeline, target)
    } catch (error) {
      if (!isStetError(error)) throw error
      if (error.details?.noRecord === true) return NOTHING
      // A log is given up on after two seconds, for people; a backfill beside another one has more patience.
      if (error.code !== 'STET_LOCKED' || performance.now() > deadline) throw error
    }
  }
}

async function read(log: RunLog, pipeline: DefinedPipeline, target: Target): Promise<PipelineRecord> {
  const listed = await log.list({ pipeline: pipeline.name, table: pipeline.table })
  const entries = target.capabilities.oneRunAtATime === true ? listed.map(withoutTheDead) : listed
  const watermarks = await log.watermarks()
  const known = new Set(entries.map((entry) => entry.table))
  const watermark =
    watermarks.find(
      (mark) => mark.pipeline === pipeline.name && (known.size === 0 || known.has(mark.table)),
    ) ?? null
  const table = entries[0]?.table ?? watermark?.table ?? null
  const events = (await log.events()).filter((event) => event.table === table)
  return { entries, events, watermark, table }
}

/** Whoever can read such a target holds it alone, so a run that is said to be under way has died. */
function withoutTheDead(entry: RunLogEntry): RunLogEntry {
  return entry.status === 'running' ? { ...entry, status: 'interrupted', verdict: 'interrupted' } : entry
}
