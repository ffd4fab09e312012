import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { WriteStrategy } from '../model/write.ts'
import { plan } from '../pipeline/plan.ts'
import {
  type Check,
  COLUMNS,
  expectCounts,
  FIRST,
  isRefusal,
  lastRun,
  load,
  pipelineOf,
  REPLACE,
  type Rows,
  runCount,
  SECOND,
  UPSERT,
} from './kit.ts'

export function checksOfGuards(check: Check): void {
  check('a rejected row fails the run and changes nothing', ['G9'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const bad: Rows = [...SECOND, ['e', '1.005', 'rounds', null, '1']]
    await rejects(load(place, bad), (error: unknown) =>
      isRefusal(error, 'STET_REJECTED', ['amount', '1.005', '5']),
    )
    deepEqual(await place.rows('t'), rows)
    equal((await lastRun(place)).status, 'failed')
    equal((await lastRun(place)).error?.code, 'STET_REJECTED')
  })

  check('a NULL in the key is a reject', ['G1', 'G9'], async (place) => {
    const bad: Rows = [[null, '1.00', 'nobody', null, '1']]
    await rejects(load(place, bad), (error: unknown) => isRefusal(error, 'STET_REJECTED', ['id', 'NULL']))
  })

  check('an empty source empties nothing unless that is allowed by name', ['G10'], async (place) => {
    await load(place, FIRST, REPLACE)
    await rejects(load(place, [], REPLACE), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['empty', '3 rows']),
    )
    equal(await place.count('t'), 3)
    const allowed: WriteStrategy = { strategy: 'replace-table', key: ['id'], allowEmpty: true }
    expectCounts(await load(place, [], allowed), { deleted: 3 })
    equal(await place.count('t'), 0)
  })

  check('reading nothing and finding nothing changed are told apart', ['G10'], async (place) => {
    await load(place, FIRST)
    equal((await load(place, FIRST)).verdict, 'unchanged')
    equal((await load(place, [])).verdict, 'nothing read')
    equal(await place.count('t'), 3)
  })

  check('the run log tells every run with its counts', ['G6'], async (place) => {
    await load(place, FIRST, UPSERT, { runId: 'r1' })
    await load(place, SECOND, UPSERT, { runId: 'r2' })
    await using log = await place.target.openRunLog({ signal: new AbortController().signal })
    const entries = await log.list({})
    deepEqual(
      entries.map((entry) => [entry.runId, entry.status, entry.verdict]),
      [
        ['r2', 'succeeded', 'changed'],
        ['r1', 'succeeded', 'changed'],
      ],
    )
    equal(entries[0]?.counts?.stale, 1)
    equal(entries[0]?.counts?.updated, 1)
    equal((await log.find('r1'))[0]?.counts?.inserted, 3)
  })

  check('a plan says what a run will do and changes nothing', ['G2'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const runs = await runCount(place)
    const planned = await plan(
      pipelineOf(place.target, { table: 't', columns: COLUMNS, rows: SECOND, write: UPSERT }),
    )
    deepEqual(await place.rows('t'), rows)
    equal(await runCount(place), runs, 'a plan leaves no line in the record')
    const result = await load(place, SECOND, UPSERT, { plan: planned })
    deepEqual(result.counts, planned.counts)
    equal(
      (await load(place, SECOND, UPSERT, { plan: planned })).verdict,
      'unchanged',
      'a plan that was applied',
    )
    const other: Rows = [['a', '8.00', 'third', null, '3']]
    await rejects(load(place, other, UPSERT, { plan: planned }), (error: unknown) =>
      isRefusal(error, 'STET_PLAN_DIFFERS', []),
    )
    ok((await place.rows('t')).every((row) => !row.includes('third')))
  })

  check('an aborted run leaves the table as it was', ['G1'], async (place) => {
    await load(place, FIRST)
    const rows = await place.rows('t')
    const reason = new Error('enough')
    const controller = new AbortController()
    const attempt = load(place, SECOND, UPSERT, {
      signal: controller.signal,
      onProgress: ({ phase }) => {
        if (phase === 'writing') controller.abort(reason)
      },
    })
    await rejects(attempt, (error: unknown) => error === reason)
    deepEqual(await place.rows('t'), rows)
    expectCounts(await load(place, SECOND), { read: 4, inserted: 1, updated: 1, unchanged: 1, stale: 1 })
  })
}
