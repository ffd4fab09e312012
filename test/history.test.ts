import fc from 'fast-check'
import { describe, expect, inject, test } from 'vitest'
import { StetError } from '../src/errors.ts'
import type { RunOptions } from '../src/index.ts'
import { make } from '../src/testing/kit.ts'
import type { Attempt, Place } from '../src/testing/place.ts'
import { EVENTS, ofCursor, ofDay, ofExtract, ofSnapshot } from '../src/testing/slice-scenarios.ts'
import { duckdbPlace } from './support/duckdb-place.ts'
import {
  EMPTY,
  linesOf,
  readOn,
  replaceFrozenSlice,
  replaceSlice,
  type SourceRow,
  type State,
  takeExtract,
} from './support/oracle.ts'
import { postgresPlace } from './support/postgres-place.ts'

const DAYS = ['2026-08-01', '2026-08-02', '2026-08-03'] as const
const PHASES = ['waiting', 'pulling', 'comparing', 'writing'] as const

/** A step of a history: the source changes, or a run is made, which may die in some phase. */
type Step =
  | { readonly kind: 'write'; readonly id: string; readonly day: string; readonly note: string }
  | { readonly kind: 'remove'; readonly id: string }
  | { readonly kind: 'run'; readonly day: string; readonly dies: (typeof PHASES)[number] | null }

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      day: fc.constantFrom(...DAYS),
      note: fc.constantFrom('x', 'y'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('remove' as const), id: fc.constantFrom('a', 'b', 'c', 'd') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('run' as const),
      day: fc.constantFrom(...DAYS),
      dies: fc.option(fc.constantFrom(...PHASES), { freq: 3 }),
    }),
  },
)

interface Semantics {
  readonly name: string
  readonly attempt: (rows: readonly (string | null)[][], day: string, source: readonly SourceRow[]) => Attempt
  readonly after: (state: State, source: readonly SourceRow[], day: string) => State
}

const ofRows = (source: readonly SourceRow[]) =>
  source.map(({ id, day, note, seq }) => [id, day, note, String(seq)])
const onDay = (source: readonly SourceRow[], day: string) => ofRows(source.filter((row) => row.day === day))
const allowed = (attempt: Attempt): Attempt => ({
  ...attempt,
  options: { ...attempt.options, allow: { empty: true } },
})

const SEMANTICS: readonly Semantics[] = [
  {
    name: 'replace-partition',
    attempt: (_, day, source) => allowed(ofDay(day, onDay(source, day))),
    after: replaceSlice,
  },
  {
    name: 'replace-partition, truth snapshot',
    attempt: (_, day, source) => allowed(ofSnapshot(day, onDay(source, day))),
    after: replaceFrozenSlice,
  },
  {
    name: 'upsert by a cursor',
    attempt: (rows) => ofCursor(rows),
    after: (state, source) => readOn(state, source, 2),
  },
  {
    name: 'upsert that marks what is missing',
    attempt: (rows) => ofExtract(rows, 'mark'),
    after: (state, source) => takeExtract(state, source, 'mark'),
  },
  {
    name: 'upsert that deletes what is missing',
    attempt: (rows) => ofExtract(rows, 'delete'),
    after: (state, source) => takeExtract(state, source, 'delete'),
  },
]

async function tableLines(place: Place): Promise<string[]> {
  if ((await place.count('t')) === 0) return []
  const rows = await place.rows('t')
  return rows
    .map((row) => JSON.parse(row) as Record<string, string | number | null>)
    .map(
      ({ id, day, note, seq, deleted_at: gone }) =>
        `${id} ${day} ${note} ${seq}${gone == null ? '' : ' gone'}`,
    )
    .toSorted()
}

/** A run that may die in a phase, as a process does: whatever it has not committed is gone. */
async function runOnce(
  place: Place,
  attempt: Attempt,
  dies: string | null,
): Promise<'done' | 'refused' | 'died'> {
  const options: RunOptions = {
    onProgress: ({ phase }) => {
      if (phase === dies) throw new Error('the process has died')
    },
  }
  try {
    await make(place, attempt, options)
    return 'done'
  } catch (error) {
    if (error instanceof StetError && ['STET_KEY_CONSTRAINT', 'STET_DELETE_GUARD'].includes(error.code))
      return 'refused'
    if (error instanceof Error && error.message === 'the process has died') return 'died'
    throw error
  }
}

async function live(place: Place, { attempt, after }: Semantics, history: readonly Step[]): Promise<void> {
  const source = new Map<string, SourceRow>()
  let state = EMPTY
  let seq = 0
  const once = async (day: string, dies: string | null) => {
    const rows = [...source.values()]
    const outcome = await runOnce(place, attempt(ofRows(rows), day, rows), dies)
    if (outcome !== 'died') state = after(state, rows, day)
    expect(await tableLines(place), `after a run of ${day} that ${outcome}`).toEqual(linesOf(state))
  }
  for (const step of history) {
    if (step.kind === 'write')
      source.set(step.id, { id: step.id, day: step.day, note: step.note, seq: ++seq })
    else if (step.kind === 'remove') source.delete(step.id)
    else await once(step.day, step.dies)
  }
  // One clean run of every slice; a slice that was refused because another still had its key comes again.
  for (const day of [...DAYS, ...DAYS]) await once(day, null)
}

const RUNS = Number(process.env.STET_HISTORIES ?? 6)

describe.each([
  ['DuckDB', duckdbPlace],
  ['PostgreSQL', () => postgresPlace(inject('postgresUrl'))],
] as const)('any history of changes, runs and deaths ends as the semantics say: %s', (_, create) => {
  test.each(SEMANTICS)('$name (G1, G3, G4, G10, G12)', { timeout: 300_000 }, async (semantics) => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 4, maxLength: 14 }), async (history) => {
        await using place = await create()
        await live(place, semantics, history)
      }),
      { numRuns: RUNS, interruptAfterTimeLimit: 240_000 },
    )
  })
})

test('the columns of the model are those of the loads', () => {
  expect(Object.keys(EVENTS)).toEqual(['id', 'day', 'note', 'seq'])
})
