import type { ReplacePartition, WriteStrategy } from '../model/write.ts'
import type { Rows } from './kit.ts'
import type { Attempt, Scenario } from './place.ts'

// Loads of slices, of windows and of what is missing: the data that their checks and faults share.

export const EVENTS: Readonly<Record<'id' | 'day' | 'note' | 'seq', string>> = {
  id: 'text',
  day: 'date',
  note: 'text',
  seq: 'bigint',
}
export const BY_DAY: ReplacePartition = {
  strategy: 'replace-partition',
  by: 'day',
  size: 'day',
  key: ['id'],
}
export const BY_DAY_WITHOUT_KEY: WriteStrategy = { strategy: 'replace-partition', by: 'day', size: 'day' }

export const DAY_1: Rows = [
  ['a', '2026-08-07', 'first', '1'],
  ['b', '2026-08-07', 'first', '2'],
]
export const DAY_2: Rows = [
  ['c', '2026-08-08', 'first', '3'],
  ['d', '2026-08-08', null, '4'],
]
/** `c` as it was, `d` changed, `e` new; and what was not there any more has to go. */
export const DAY_2_AGAIN: Rows = [
  ['d', '2026-08-08', 'corrected', '5'],
  ['e', '2026-08-08', 'new', '6'],
]

export function ofDay(slice: string, rows: Rows, write: WriteStrategy = BY_DAY): Attempt {
  return { table: 't', columns: EVENTS, rows, write, options: { slice } }
}

/** The whole extract at each run, with what is missing deleted or marked. */
export function ofExtract(rows: Rows, missing: 'keep' | 'delete' | 'mark'): Attempt {
  return {
    table: 't',
    columns: EVENTS,
    rows,
    write: { strategy: 'upsert', key: ['id'], newest: 'seq', missing },
    pipeline: missing === 'mark' ? { keep: { gone: 'deleted_at' } } : undefined,
  }
}

/** By the watermark, whose cursor is a number. */
export function ofCursor(rows: Rows): Attempt {
  return {
    table: 't',
    columns: EVENTS,
    rows,
    write: { strategy: 'upsert', key: ['id'], newest: 'seq' },
    pipeline: { incremental: { cursor: 'seq', grace: 2 } },
  }
}

export function ofSnapshot(slice: string, rows: Rows): Attempt {
  return { ...ofDay(slice, rows), pipeline: { truth: 'snapshot' } }
}

export function scenariosOfSlices(): readonly Scenario[] {
  const loaded = (write: WriteStrategy) => [
    ofDay('2026-08-07', DAY_1, write),
    ofDay('2026-08-08', DAY_2, write),
  ]
  return [
    {
      name: 'replace-partition, the first slice of all',
      before: [],
      attempt: ofDay('2026-08-07', DAY_1),
    },
    {
      name: 'replace-partition, a slice that has changed',
      before: loaded(BY_DAY),
      attempt: ofDay('2026-08-08', DAY_2_AGAIN),
    },
    {
      name: 'replace-partition without a key',
      before: loaded(BY_DAY_WITHOUT_KEY),
      attempt: ofDay('2026-08-08', DAY_2_AGAIN, BY_DAY_WITHOUT_KEY),
    },
    {
      name: 'upsert that deletes what is missing',
      before: [ofExtract([...DAY_1, ...DAY_2], 'delete')],
      attempt: ofExtract([...DAY_1, ...DAY_2_AGAIN], 'delete'),
    },
    {
      name: 'upsert that marks what is missing, and takes marks off',
      before: [ofExtract([...DAY_1, ...DAY_2], 'mark'), ofExtract([...DAY_1.slice(1), ...DAY_2], 'mark')],
      attempt: ofExtract([...DAY_1, ...DAY_2_AGAIN], 'mark'),
    },
    {
      name: 'upsert by a cursor',
      before: [ofCursor([...DAY_1, ...DAY_2])],
      attempt: ofCursor([...DAY_1, ...DAY_2, ...DAY_2_AGAIN.slice(1)]),
    },
    {
      name: 'a frozen slice, whose new keys are inserted',
      before: [ofSnapshot('2026-08-08', DAY_2)],
      attempt: ofSnapshot('2026-08-08', DAY_2_AGAIN),
    },
  ]
}
