import { deepEqual, equal, fail, ok } from 'node:assert/strict'
import { StetError } from '../errors.ts'
import type { RunCounts, RunLogEntry } from '../model/run.ts'
import type { WriteStrategy } from '../model/write.ts'
import { definePipeline } from '../pipeline/define.ts'
import { run } from '../pipeline/run.ts'
import type { DefinedPipeline, RunOptions, RunResult } from '../pipeline/types.ts'
import { literalRows } from './literal-source.ts'
import type { Attempt, Place, TargetUnderContract } from './place.ts'

// The rows, loads and looks that the checks of the contract share.

export const COLUMNS: Readonly<Record<'id' | 'amount' | 'note' | 'at' | 'seq', string>> = {
  id: 'text',
  amount: 'numeric(12,2)',
  note: 'text',
  at: 'timestamptz',
  seq: 'bigint',
}
export type Rows = readonly (readonly (string | null)[])[]

export const FIRST: Rows = [
  ['a', '1.50', 'first', '2024-02-29 10:00:00+00', '1'],
  ['b', '2.00', '', '2024-02-29 10:00:00.000001+00', '1'],
  ['c', '-0.01', null, null, '1'],
]
/** `a` changed, `c` as it was, `d` new, `b` older than before. */
export const SECOND: Rows = [
  ['a', '1.75', 'second', '2024-02-29 10:00:00+00', '2'],
  ['b', '9.99', 'stale', null, '0'],
  ['c', '-0.01', null, null, '1'],
  ['d', '4.00', 'new', null, '2'],
]
export const UPSERT: WriteStrategy = { strategy: 'upsert', key: ['id'], newest: 'seq' }
export const INSERT_ONCE: WriteStrategy = { strategy: 'insert-once', key: ['id'], newest: 'seq' }
export const REPLACE: WriteStrategy = { strategy: 'replace-table', key: ['id'] }
export const REPLACE_WITHOUT_KEY: WriteStrategy = { strategy: 'replace-table' }

export type Check = (
  name: string,
  guarantees: readonly string[],
  body: (place: Place) => Promise<void>,
) => void

/** An attempt as a pipeline; also used by the process that gets killed. */
export function pipelineOf(target: TargetUnderContract, attempt: Attempt): DefinedPipeline {
  const { table, columns, rows, write, pipeline } = attempt
  return definePipeline({
    name: 'contract',
    source: target.sourceOf?.(attempt) ?? literalRows(columns, rows),
    target,
    table,
    write,
    ...pipeline,
  } as never)
}

/** What the run of an attempt is given. */
export function optionsOf({ options }: Attempt): RunOptions {
  const { now, ...others } = options ?? {}
  return now === undefined ? others : { ...others, now: () => new Date(now) }
}

/** Makes an attempt from this process. */
export async function make(place: Place, attempt: Attempt, options: RunOptions = {}): Promise<RunResult> {
  return run(pipelineOf(place.target, attempt), { ...optionsOf(attempt), ...options })
}

export async function load(
  place: Place,
  rows: Rows,
  write: WriteStrategy = UPSERT,
  options: RunOptions = {},
): Promise<RunResult> {
  return run(pipelineOf(place.target, { table: 't', columns: COLUMNS, rows, write }), options)
}

export function expectCounts(result: RunResult, wanted: Partial<RunCounts>): void {
  const { filtered, added, afterTransform, ...terms } = result.counts
  const all: Record<string, number> = {
    read: 0,
    rejected: 0,
    duplicate: 0,
    inserted: 0,
    updated: 0,
    unchanged: 0,
    stale: 0,
    frozen: 0,
    deleted: 0,
    outside: 0,
    marked: 0,
    restored: 0,
    missing: 0,
  }
  deepEqual({ ...terms }, { ...all, ...wanted })
  equal(filtered + added, 0)
  equal(afterTransform, terms.read - terms.outside)
}

export async function idsAndNotes(place: Place): Promise<(string | null)[][]> {
  const rows = await place.rows('t')
  return rows.map((row) => {
    const { id, note } = JSON.parse(row) as { id: string; note: string | null }
    return [id, note]
  })
}

export async function lastRun(place: Place): Promise<RunLogEntry> {
  const [entry] = await entriesOf(place)
  return entry ?? fail('the record is empty')
}

/** The record, newest first. */
export async function entriesOf(place: Place): Promise<readonly RunLogEntry[]> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  return await log.list({})
}

export async function runCount(place: Place): Promise<number> {
  return (await entriesOf(place)).length
}

export function isRefusal(error: unknown, code: string, words: readonly string[]): boolean {
  ok(error instanceof StetError, String(error))
  equal(error.code, code)
  for (const word of words) ok(error.message.includes(word), `"${error.message}" names ${word}`)
  return true
}
