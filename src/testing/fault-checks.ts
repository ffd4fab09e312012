import { deepEqual, equal, ok } from 'node:assert/strict'
import type { RunCounts } from '../model/run.ts'
import type { WriteStrategy } from '../model/write.ts'
import {
  type Check,
  COLUMNS,
  entriesOf,
  FIRST,
  INSERT_ONCE,
  make,
  REPLACE,
  REPLACE_WITHOUT_KEY,
  runCount,
  SECOND,
  UPSERT,
} from './kit.ts'
import type { Faults, Place, Scenario } from './place.ts'
import { scenariosOfSlices } from './slice-scenarios.ts'

export function checksOfFaults(check: Check, faults: Faults, stride: number): void {
  for (const scenario of [...scenariosOfStrategies(), ...scenariosOfSlices()]) {
    check(
      `${scenario.name}: ${faults.what} anywhere, and the rerun ends as if nothing had happened`,
      ['G1', 'G4', 'G6'],
      (place) => walk(place, scenario, faults, stride),
    )
  }
}

function scenariosOfStrategies(): readonly Scenario[] {
  const strategies: readonly [string, WriteStrategy][] = [
    ['upsert', UPSERT],
    ['insert-once', INSERT_ONCE],
    ['replace-table', REPLACE],
    ['replace-table without a key', REPLACE_WITHOUT_KEY],
  ]
  return strategies.flatMap(([name, write]) => [
    {
      name: `${name}, on an empty target`,
      before: [],
      attempt: { table: 't', columns: COLUMNS, rows: FIRST, write },
    },
    {
      name: `${name}, on a loaded target`,
      before: [{ table: 't', columns: COLUMNS, rows: FIRST, write }],
      attempt: { table: 't', columns: COLUMNS, rows: SECOND, write },
    },
  ])
}

async function walk(place: Place, scenario: Scenario, faults: Faults, stride: number): Promise<void> {
  const { attempt } = scenario
  const begin = async () => {
    await forget(place)
    for (const earlier of scenario.before) await make(place, earlier)
  }
  await begin()
  const clean = await make(place, attempt)
  const wanted = await rowsOf(place)
  await begin()
  const points = await faults.countOf(place, attempt)
  ok(points > 0, 'a run that sends nothing proves nothing')
  for (let at = 1; at <= points; at += stride) {
    for (const side of ['before', 'after'] as const) {
      await begin()
      const where = `${side} ${at} of ${points}`
      const runsBefore = await runCount(place)
      const { claimedSuccess } = await faults.attemptWithFault(place, attempt, { at, side })
      if (claimedSuccess) deepEqual(await rowsOf(place), wanted, `success was claimed, fault ${where}`)
      await watermarkIsNotAhead(place, where)
      const committed = claimedSuccess || (await succeededSince(place, runsBefore)) > 0
      if (committed && faults.attemptSurvives)
        ok(claimedSuccess, `a commit that arrived is found out, fault ${where}`)
      const again = await make(place, attempt)
      deepEqual(await rowsOf(place), wanted, `after the rerun, fault ${where}`)
      if (!committed)
        deepEqual(changes(again.counts), changes(clean.counts), `counts of the rerun, fault ${where}`)
      equal(again.watermark, clean.watermark, `the watermark after the rerun, fault ${where}`)
      deepEqual(await place.leftovers(), [], `nothing is left behind, fault ${where}`)
      await recordIsTrue(place, runsBefore, changes(clean.counts), where)
    }
  }
}

/** The table's rows; when a row was found to be gone differs from run to run, that it is gone does not. */
async function rowsOf(place: Place): Promise<readonly string[]> {
  return (await place.rows('t')).map((row) => row.replace(/("deleted_at": ?)"[^"]*"/, '$1"gone"'))
}

/** A table and a record as if nothing had been loaded: no watermark, no frozen slice. */
async function forget(place: Place): Promise<void> {
  await place.execute('drop table if exists t')
  const signal = new AbortController().signal
  await using record = await place.target.openRecord({ signal })
  const entries = await entriesOf(place)
  for (const name of new Set(entries.map(({ table }) => table))) {
    for (const slice of new Set(entries.map((entry) => entry.slice)))
      await record.thaw(name, slice, 'contract')
    const watermark = await record.watermark('contract', name)
    if (watermark !== null) await record.setWatermark({ ...watermark, value: null }, 'contract')
  }
}

/** G4: whatever has been cut short, the watermark is not beyond what the table holds. Cursors of these scenarios are numbers. */
async function watermarkIsNotAhead(place: Place, where: string): Promise<void> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const [watermark] = await log.watermarks()
  if (watermark === undefined) return
  const cursors = (await place.rows('t')).map((row) =>
    Number((JSON.parse(row) as Record<string, unknown>)[watermark.cursor]),
  )
  ok(
    Number(watermark.value) <= Math.max(...cursors),
    `the watermark ${watermark.value} is not beyond ${Math.max(...cursors)}, fault ${where}`,
  )
}

async function succeededSince(place: Place, runsBefore: number): Promise<number> {
  const entries = await entriesOf(place)
  return entries.slice(0, entries.length - runsBefore).filter(({ status }) => status === 'succeeded').length
}

/** Over all attempts since, what the record says was changed is what one run changes: rows and record are one commit. */
async function recordIsTrue(place: Place, runsBefore: number, wanted: unknown, where: string): Promise<void> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const entries = await log.list({})
  const since = entries.slice(0, entries.length - runsBefore)
  const total = { inserted: 0, updated: 0, deleted: 0, marked: 0 }
  for (const entry of since) {
    if (entry.counts === null) continue
    if (entry.status !== 'succeeded') {
      const { inserted, updated, deleted, marked } = entry.counts
      equal(
        inserted + updated + deleted + marked,
        0,
        `a run that ${entry.status} tells of no change, fault ${where}`,
      )
      continue
    }
    total.inserted += entry.counts.inserted
    total.updated += entry.counts.updated
    total.deleted += entry.counts.deleted
    total.marked += entry.counts.marked
  }
  deepEqual(total, wanted, `the record tells of each change once, fault ${where}`)
  ok(
    since.every((entry) => entry.status !== 'running'),
    `no attempt is left running in the record, fault ${where}`,
  )
}

function changes({ inserted, updated, deleted, marked }: RunCounts): {
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
  readonly marked: number
} {
  return { inserted, updated, deleted, marked }
}
