import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { WriteStrategy } from '../model/write.ts'
import { plan } from '../pipeline/plan.ts'
import { type Check, expectCounts, isRefusal, lastRun, make, pipelineOf, type Rows } from './kit.ts'
import type { Attempt, Place } from './place.ts'
import {
  BY_DAY,
  BY_DAY_WITHOUT_KEY,
  DAY_1,
  DAY_2,
  DAY_2_AGAIN,
  EVENTS,
  ofDay,
  ofExtract,
  ofSnapshot,
} from './slice-scenarios.ts'

/** `a 2026-08-07 first`, one for each row of the table, sorted. */
async function lines(place: Place): Promise<readonly string[]> {
  const rows = await place.rows('t')
  return rows.map((row) => {
    const { id, day, note } = JSON.parse(row) as Record<string, string | null>
    return `${id} ${day} ${note}`
  })
}

/** All that changes of a row that is back as it was. */
const MARK_TAKEN_OFF = [{ column: 'deleted_at', from: 'gone', to: null }]

/** Rows that are not marked as gone. */
async function live(place: Place): Promise<readonly string[]> {
  const rows = await place.rows('t')
  return rows
    .map((row) => JSON.parse(row) as Record<string, string | null>)
    .filter((row) => row.deleted_at === null)
    .map(({ id, note }) => `${id} ${note}`)
}

export function checksOfSlices(check: Check): void {
  check('a slice is replaced, and nothing else is touched', ['G2', 'G3'], async (place) => {
    await make(place, ofDay('2026-08-07', DAY_1))
    await make(place, ofDay('2026-08-08', DAY_2))
    const before = await place.versions('t')
    const result = await make(place, ofDay('2026-08-08', DAY_2_AGAIN))
    expectCounts(result, { read: 2, inserted: 1, updated: 1, deleted: 1 })
    equal(result.slice, '2026-08-08')
    deepEqual(await lines(place), [
      'a 2026-08-07 first',
      'b 2026-08-07 first',
      'd 2026-08-08 corrected',
      'e 2026-08-08 new',
    ])
    const after = await place.versions('t')
    if (before !== null && after !== null) {
      equal(before.filter((version) => after.includes(version)).length, 2, 'the other day is as it was')
    }
    const again = await make(place, ofDay('2026-08-08', DAY_2_AGAIN))
    expectCounts(again, { read: 2, unchanged: 2 })
    deepEqual(await place.versions('t'), after, 'an unchanged slice is not written at all')
  })

  check('a slice without a key compares as a multiset', ['G1', 'G2'], async (place) => {
    const twice: Rows = [...DAY_2, ...DAY_2]
    expectCounts(await make(place, ofDay('2026-08-07', DAY_1, BY_DAY_WITHOUT_KEY)), { read: 2, inserted: 2 })
    expectCounts(await make(place, ofDay('2026-08-08', twice, BY_DAY_WITHOUT_KEY)), { read: 4, inserted: 4 })
    expectCounts(await make(place, ofDay('2026-08-08', twice, BY_DAY_WITHOUT_KEY)), { read: 4, unchanged: 4 })
    expectCounts(await make(place, ofDay('2026-08-08', DAY_2, BY_DAY_WITHOUT_KEY)), {
      read: 2,
      unchanged: 2,
      deleted: 2,
    })
    equal(await place.count('t'), 4)
  })

  check('a row of another slice refuses the run and is named', ['G3', 'G9'], async (place) => {
    await make(place, ofDay('2026-08-08', DAY_2))
    const before = await place.rows('t')
    for (const stray of ['2026-08-07', '2026-08-09', null]) {
      const rows: Rows = [...DAY_2, ['x', stray, 'stray', '9']]
      await rejects(make(place, ofDay('2026-08-08', rows)), (error: unknown) =>
        isRefusal(error, 'STET_OUTSIDE_SLICE', ['1 row', '2026-08-08', 'id=x', `day=${stray ?? 'NULL'}`]),
      )
    }
    deepEqual(await place.rows('t'), before)
  })

  check('a key that is in another slice refuses the run, in either order', ['G1', 'G3'], async (place) => {
    await make(place, ofDay('2026-08-07', DAY_1))
    const moved: Rows = [['a', '2026-08-08', 'moved', '9']]
    await rejects(make(place, ofDay('2026-08-08', moved)), (error: unknown) =>
      isRefusal(error, 'STET_KEY_CONSTRAINT', ['a']),
    )
    deepEqual(await lines(place), ['a 2026-08-07 first', 'b 2026-08-07 first'])
    // The slice that it has left is loaded first: then it may come.
    await make(place, ofDay('2026-08-07', DAY_1.slice(1)))
    expectCounts(await make(place, ofDay('2026-08-08', moved)), { read: 1, inserted: 1 })
    deepEqual(await lines(place), ['a 2026-08-08 moved', 'b 2026-08-07 first'])
  })

  check('a slice whose source is empty is emptied only by name', ['G10'], async (place) => {
    await make(place, ofDay('2026-08-07', DAY_1))
    await make(place, ofDay('2026-08-08', DAY_2))
    await rejects(make(place, ofDay('2026-08-08', [])), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['empty', '2 rows']),
    )
    const allowed: Attempt = {
      ...ofDay('2026-08-08', []),
      options: { slice: '2026-08-08', allow: { empty: true } },
    }
    const planned = await plan(pipelineOf(place.target, allowed), {
      slice: '2026-08-08',
      allow: { empty: true },
    })
    deepEqual(planned.rows, { before: 2, after: 0 })
    expectCounts(await make(place, allowed), { deleted: 2 })
    expectCounts(await make(place, allowed), {})
    deepEqual(await lines(place), ['a 2026-08-07 first', 'b 2026-08-07 first'])
  })

  check('windows are half-open, in the zone that is named', ['G3'], async (place) => {
    const columns = { id: 'text', at: 'timestamptz' }
    const write: WriteStrategy = {
      strategy: 'replace-partition',
      by: 'at',
      size: 'day',
      zone: 'America/New_York',
      key: ['id'],
    }
    const ofZone = (slice: string, rows: Rows): Attempt => ({
      table: 't',
      columns,
      rows,
      write,
      options: { slice },
    })
    // The day has 25 hours: it ends at 05:00 UTC of the next, and the last microsecond is its own.
    await make(
      place,
      ofZone('2026-11-01', [
        ['first', '2026-11-01 04:00:00+00'],
        ['last', '2026-11-02 04:59:59.999999+00'],
      ]),
    )
    await make(place, ofZone('2026-11-02', [['next', '2026-11-02 05:00:00+00']]))
    for (const outside of ['2026-11-01 03:59:59.999999+00', '2026-11-02 05:00:00+00']) {
      await rejects(make(place, ofZone('2026-11-01', [['x', outside]])), (error: unknown) =>
        isRefusal(error, 'STET_OUTSIDE_SLICE', ['2026-11-01']),
      )
    }
    const only = await make(place, ofZone('2026-11-01', [['first', '2026-11-01 04:00:00+00']]))
    expectCounts(only, { read: 1, unchanged: 1, deleted: 1 })
    equal(await place.count('t'), 2, 'the row at the boundary belongs to the next day')
  })

  check('slices of values and of ranges end where they end', ['G3'], async (place) => {
    const columns = { id: 'text', region: 'text', customer_no: 'bigint' }
    const rows: Rows = [
      ['a', 'KR', '1000'],
      ['b', 'KR', '1999'],
    ]
    const ofValue = (slice: string, load: Rows): Attempt => ({
      table: 't',
      columns,
      rows: load,
      write: { strategy: 'replace-partition', by: 'region', size: 'value', key: ['id'] },
      options: { slice },
    })
    await make(place, ofValue('KR', rows))
    await make(place, ofValue("K'R", [['c', "K'R", '2000']]))
    expectCounts(await make(place, ofValue('KR', rows.slice(1))), { read: 1, unchanged: 1, deleted: 1 })
    const ofRange = (slice: string, load: Rows): Attempt => ({
      ...ofValue(slice, load),
      write: { strategy: 'replace-partition', by: 'customer_no', size: { range: 1000 }, key: ['id'] },
    })
    expectCounts(await make(place, ofRange('1000', [['d', 'JP', '1400']])), {
      read: 1,
      inserted: 1,
      deleted: 1,
    })
    await rejects(make(place, ofRange('1000', [['e', 'JP', '2000']])), (error: unknown) =>
      isRefusal(error, 'STET_OUTSIDE_SLICE', ['customer_no=2000']),
    )
    equal(await place.count('t'), 2, 'the number at the boundary belongs to the next range')
    // The first and the last range reach beyond what a bigint can be.
    for (const [slice, number] of [
      ['-9223372036854776000', '-9223372036854775808'],
      ['9223372036854775000', '9223372036854775807'],
    ] as const) {
      const load: Rows = [[`at ${number}`, 'JP', number]]
      expectCounts(await make(place, ofRange(slice, load)), { read: 1, inserted: 1 })
      expectCounts(await make(place, ofRange(slice, load)), { read: 1, unchanged: 1 })
    }
  })

  check('a slice of a value has one name', ['G7', 'G12'], async (place) => {
    const ofNumber = (slice: string): Attempt => ({
      table: 't',
      columns: { id: 'text', shop: 'integer' },
      rows: [['a', '1']],
      write: { strategy: 'replace-partition', by: 'shop', size: 'value', key: ['id'] },
      pipeline: { truth: 'snapshot' },
      options: { slice },
    })
    expectCounts(await make(place, ofNumber('1')), { read: 1, inserted: 1 })
    for (const other of ['01', '+1', 'one']) {
      await rejects(make(place, ofNumber(other)), (error: unknown) => isRefusal(error, 'STET_USAGE', [other]))
    }
  })

  check(
    'what one pipeline has frozen does not freeze another that follows its source',
    ['G12'],
    async (place) => {
      await make(place, ofSnapshot('2026-08-08', DAY_2))
      expectCounts(await make(place, ofDay('2026-08-08', DAY_2_AGAIN)), {
        read: 2,
        inserted: 1,
        updated: 1,
        deleted: 1,
      })
    },
  )

  check('the last day that a date can be is a slice like any other', ['G3'], async (place) => {
    const last: Rows = [['z', '9999-12-31', 'the end', '1']]
    expectCounts(await make(place, ofDay('9999-12-31', last)), { read: 1, inserted: 1 })
    expectCounts(await make(place, ofDay('9999-12-31', last)), { read: 1, unchanged: 1 })
  })

  check('slices of one table may be loaded at once, and one slice twice', ['G3', 'G7'], async (place) => {
    await make(place, ofDay('2026-08-06', [['z', '2026-08-06', 'there', '0']]))
    const days = ['2026-08-07', '2026-08-08', '2026-08-07', '2026-08-08']
    const results = await Promise.all(
      days.map((day) => make(place, ofDay(day, day === '2026-08-07' ? DAY_1 : DAY_2))),
    )
    equal(
      results.reduce((sum, { counts }) => sum + counts.inserted, 0),
      4,
    )
    equal(await place.count('t'), 5)
  })

  check('a frozen slice keeps what its first run wrote, and tells the drift', ['G12'], async (place) => {
    const first = await make(place, ofSnapshot('2026-08-08', DAY_2))
    expectCounts(first, { read: 2, inserted: 2 })
    equal(first.frozen, false)
    const again = await make(place, ofSnapshot('2026-08-08', DAY_2_AGAIN))
    expectCounts(again, { read: 2, inserted: 1, frozen: 1, missing: 1 })
    equal(again.frozen, true)
    deepEqual(
      again.drift.map(({ key, changes }) => [
        key.id,
        changes.map(({ column, from, to }) => [column, from, to]),
      ]),
      [
        [
          'd',
          [
            ['note', null, 'corrected'],
            ['seq', '4', '5'],
          ],
        ],
      ],
    )
    deepEqual(await lines(place), ['c 2026-08-08 first', 'd 2026-08-08 null', 'e 2026-08-08 new'])
    // Another slice of the table is not frozen by it.
    await make(place, ofSnapshot('2026-08-07', DAY_1))
    await using record = await place.target.openRecord({ signal: new AbortController().signal })
    await using log = await place.target.openRunLog({ signal: new AbortController().signal })
    const [entry] = await log.list({})
    equal(await record.thaw(entry?.table ?? '', '2026-08-08', 'somebody'), true)
    equal(await record.thaw(entry?.table ?? '', '2026-08-08', 'somebody'), false)
    const thawed = await make(place, ofSnapshot('2026-08-08', DAY_2_AGAIN))
    expectCounts(thawed, { read: 2, updated: 1, unchanged: 1, deleted: 1 })
    equal((await log.events())[0]?.kind, 'thaw')
  })

  check('a slice without a key is frozen as a whole', ['G12'], async (place) => {
    const frozen = (rows: Rows): Attempt => ({
      ...ofDay('2026-08-08', rows, BY_DAY_WITHOUT_KEY),
      pipeline: { truth: 'snapshot' },
    })
    // Nothing read is no first run: the day may only have come too early.
    expectCounts(await make(place, frozen([])), {})
    expectCounts(await make(place, frozen(DAY_2)), { read: 2, inserted: 2 })
    expectCounts(await make(place, frozen(DAY_2_AGAIN)), { read: 2, frozen: 2, missing: 2 })
    deepEqual(await lines(place), ['c 2026-08-08 first', 'd 2026-08-08 null'])
    // One more of a row that is there is another row, and shown as any other that is kept out.
    const doubled = await make(place, frozen([...DAY_2, ...DAY_2.slice(0, 1)]))
    expectCounts(doubled, { read: 3, unchanged: 2, frozen: 1 })
    deepEqual(
      doubled.drift.map(({ changes }) => changes.map(({ to }) => to)),
      [['c', '2026-08-08', 'first', '3']],
    )
  })

  check(
    'a row that was marked before its slice was frozen again stays so, and is shown',
    ['G12'],
    async (place) => {
      const day = (rows: Rows): Attempt => ({
        ...ofDay('2026-08-08', rows, { ...BY_DAY, missing: 'mark' }),
        pipeline: { truth: 'snapshot', keep: { gone: 'deleted_at' } },
      })
      await make(place, day(DAY_2))
      await using record = await place.target.openRecord({ signal: new AbortController().signal })
      const { table } = await lastRun(place)
      equal(await record.thaw(table, '2026-08-08', 'somebody'), true)
      expectCounts(await make(place, day(DAY_2.slice(1))), { read: 1, unchanged: 1, marked: 1 })
      const back = await make(place, day(DAY_2))
      expectCounts(back, { read: 2, unchanged: 1, frozen: 1 })
      deepEqual(back.drift, [{ op: 'drift', key: { id: 'c' }, changes: MARK_TAKEN_OFF }])
      deepEqual(await live(place), ['d null'])
    },
  )

  checksOfMissing(check)
}

function checksOfMissing(check: Check): void {
  const all: Rows = [...DAY_1, ...DAY_2]

  check('what an extract no longer has is deleted, where the pipeline says so', ['G10'], async (place) => {
    await make(place, ofExtract(all, 'delete'))
    expectCounts(await make(place, ofExtract(all.slice(0, 3), 'keep')), { read: 3, unchanged: 3 })
    // `d` has the greatest seq of all: newer than the whole load, so the load cannot know of it.
    expectCounts(await make(place, ofExtract(all.slice(0, 3), 'delete')), { read: 3, unchanged: 3 })
    expectCounts(
      await make(place, ofExtract([...all.slice(1, 3), ['e', '2026-08-09', 'new', '5']], 'delete')),
      {
        read: 3,
        inserted: 1,
        unchanged: 2,
        deleted: 2,
      },
    )
    deepEqual(await lines(place), ['b 2026-08-07 first', 'c 2026-08-08 first', 'e 2026-08-09 new'])
    expectCounts(
      await make(place, ofExtract([...all.slice(1, 3), ['e', '2026-08-09', 'new', '5']], 'delete')),
      {
        read: 3,
        unchanged: 3,
      },
    )
  })

  check('a row that is gone is marked, and comes back as an update', ['G2', 'G5', 'G10'], async (place) => {
    await make(place, ofExtract(all, 'mark'))
    const without = all.filter(([id]) => id !== 'b')
    expectCounts(await make(place, ofExtract(without, 'mark')), { read: 3, unchanged: 3, marked: 1 })
    deepEqual(await live(place), ['a first', 'c first', 'd null'])
    const marked = await place.versions('t')
    expectCounts(await make(place, ofExtract(without, 'mark')), { read: 3, unchanged: 3 })
    deepEqual(await place.versions('t'), marked, 'a marked row is not marked again')
    // An older extract, in which it still was, does not bring it back.
    expectCounts(await make(place, ofExtract(DAY_1, 'mark')), { read: 2, unchanged: 1, stale: 1 })
    deepEqual(await live(place), ['a first', 'c first', 'd null'])
    const { samples } = await plan(pipelineOf(place.target, ofExtract(all, 'mark')))
    deepEqual(samples, [{ op: 'update', key: { id: 'b' }, changes: MARK_TAKEN_OFF }])
    expectCounts(await make(place, ofExtract(all, 'mark')), {
      read: 4,
      unchanged: 3,
      updated: 1,
      restored: 1,
    })
    deepEqual(await live(place), ['a first', 'b first', 'c first', 'd null'])
  })

  check('a short extract takes away no more than a tenth', ['G10'], async (place) => {
    const many: Rows = Array.from({ length: 1200 }, (_, n) => [`k${n}`, '2026-08-07', 'x', String(n)])
    await make(place, ofExtract(many, 'mark'))
    // The last row stays, so that the load is as new as the table.
    await rejects(make(place, ofExtract(many.slice(150), 'mark')), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['150 rows', 'of 1,200']),
    )
    expectCounts(await make(place, ofExtract(many.slice(100), 'mark')), {
      read: 1100,
      unchanged: 1100,
      marked: 100,
    })
    // Marked rows are not live: they neither count as missing again nor as something to be a tenth of.
    const allowed = { ...ofExtract(many.slice(300), 'mark'), options: { allow: { deletes: true } } }
    await rejects(make(place, ofExtract(many.slice(300), 'mark')), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['200 rows', 'of 1,100']),
    )
    expectCounts(await make(place, allowed), { read: 900, unchanged: 900, marked: 200 })
    equal(await place.count('t'), 1200)
  })

  check('an extract with rejects takes nothing away', ['G9', 'G10'], async (place) => {
    await make(place, ofExtract(all, 'delete'))
    const partly: Attempt = {
      ...ofExtract([...all.slice(1), [null, '2026-08-07', 'no id', '9']], 'delete'),
      pipeline: { maxRejects: 5 },
    }
    await rejects(make(place, partly), (error: unknown) =>
      isRefusal(error, 'STET_DELETE_GUARD', ['1 row was rejected']),
    )
    equal(await place.count('t'), 4)
  })

  check(
    'quarantined rows are kept whole, once, with the rows that are loaded',
    ['G1', 'G9'],
    async (place) => {
      const partly: Attempt = {
        ...ofExtract(
          [...all, ['x', 'soon', 'no date', '9'], ['y', '2026-08-07', 'no number', 'many']],
          'keep',
        ),
        pipeline: { maxRejects: 2, onReject: 'quarantine' },
      }
      expectCounts(await make(place, partly), { read: 6, inserted: 4, rejected: 2 })
      expectCounts(await make(place, partly), { read: 6, unchanged: 4, rejected: 2 })
      const quarantined = await place.rows('stet.quarantine')
      equal(quarantined.length, 2, 'a rerun does not double them')
      ok(quarantined.some((row) => row.includes('no date') && row.includes('soon')))
      const more: Attempt = {
        ...partly,
        rows: [...partly.rows, ['z', 'never', 'one too many', '1'], ['n', '2026-08-09', 'new', '7']],
      }
      await rejects(make(place, more), (error: unknown) => isRefusal(error, 'STET_REJECTED', ['3 rows']))
      equal((await place.rows('stet.quarantine')).length, 2, 'a run that fails keeps nothing')
      equal(await place.count('t'), 4)
    },
  )

  check('a pipeline without rows of its day is told so', ['G3'], async (place) => {
    const unnamed: Attempt = { table: 't', columns: EVENTS, rows: DAY_1, write: ofDay('x', []).write }
    await rejects(make(place, unnamed), (error: unknown) => isRefusal(error, 'STET_USAGE', ['names none']))
    const at: Attempt = { ...unnamed, options: { at: '2026-08-07T12:00:00Z' } }
    equal((await make(place, at)).slice, '2026-08-07')
  })
}
