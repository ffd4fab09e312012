import { deepEqual, equal, ok } from 'node:assert/strict'
import type { RunCounts } from '../model/run.ts'
import type { WriteStrategy } from '../model/write.ts'
import { run } from '../pipeline/run.ts'
import {
  type Check,
  COLUMNS,
  entriesOf,
  FIRST,
  INSERT_ONCE,
  load,
  pipelineOf,
  REPLACE,
  REPLACE_WITHOUT_KEY,
  runCount,
  SECOND,
  UPSERT,
} from './kit.ts'
import type { Attempt, Faults, Place } from './place.ts'

export function checksOfFaults(check: Check, faults: Faults, stride: number): void {
  const strategies: readonly [string, WriteStrategy][] = [
    ['upsert', UPSERT],
    ['insert-once', INSERT_ONCE],
    ['replace-table', REPLACE],
    ['replace-table without a key', REPLACE_WITHOUT_KEY],
  ]
  for (const [name, write] of strategies) {
    for (const start of ['an empty target', 'a loaded target'] as const) {
      check(
        `${name}: ${faults.what} anywhere, on ${start}, and the rerun ends as if nothing had happened`,
        ['G1', 'G6'],
        async (place) => {
          const rows = start === 'an empty target' ? FIRST : SECOND
          const attempt: Attempt = { table: 't', columns: COLUMNS, rows, write }
          const begin = async () => {
            await place.execute('drop table if exists t')
            if (start === 'a loaded target') await load(place, FIRST, write)
          }
          await begin()
          const clean = await run(pipelineOf(place.target, attempt))
          const wanted = await place.rows('t')
          await begin()
          const points = await faults.countOf(place, attempt)
          ok(points > 0, 'a run that sends nothing proves nothing')
          for (let at = 1; at <= points; at += stride) {
            for (const side of ['before', 'after'] as const) {
              await begin()
              const where = `${side} ${at} of ${points}`
              const runsBefore = await runCount(place)
              const { claimedSuccess } = await faults.attemptWithFault(place, attempt, { at, side })
              if (claimedSuccess)
                deepEqual(await place.rows('t'), wanted, `success was claimed, fault ${where}`)
              const committed = claimedSuccess || (await succeededSince(place, runsBefore)) > 0
              if (committed && faults.attemptSurvives)
                ok(claimedSuccess, `a commit that arrived is found out, fault ${where}`)
              const again = await run(pipelineOf(place.target, attempt))
              deepEqual(await place.rows('t'), wanted, `after the rerun, fault ${where}`)
              const sum = again.counts
              if (!committed)
                deepEqual(changes(sum), changes(clean.counts), `counts of the rerun, fault ${where}`)
              deepEqual(await place.leftovers(), [], `nothing is left behind, fault ${where}`)
              await recordIsTrue(place, runsBefore, changes(clean.counts), where)
            }
          }
        },
      )
    }
  }
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
  const total = { inserted: 0, updated: 0, deleted: 0 }
  for (const entry of since) {
    if (entry.counts === null) continue
    if (entry.status !== 'succeeded') {
      const { inserted, updated, deleted } = entry.counts
      equal(inserted + updated + deleted, 0, `a run that ${entry.status} tells of no change, fault ${where}`)
      continue
    }
    total.inserted += entry.counts.inserted
    total.updated += entry.counts.updated
    total.deleted += entry.counts.deleted
  }
  deepEqual(total, wanted, `the record tells of each change once, fault ${where}`)
  ok(
    since.every((entry) => entry.status !== 'running'),
    `no attempt is left running in the record, fault ${where}`,
  )
}

function changes({ inserted, updated, deleted }: RunCounts): {
  inserted: number
  updated: number
  deleted: number
} {
  return { inserted, updated, deleted }
}
