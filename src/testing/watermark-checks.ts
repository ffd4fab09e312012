import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { StetError } from '../errors.ts'
import type { Pipeline } from '../pipeline/types.ts'
import { type Check, expectCounts, isRefusal, make, type Rows } from './kit.ts'
import type { Attempt, Place } from './place.ts'

const READINGS = { id: 'text', at: 'timestamptz', value: 'bigint' }

function byClock(rows: Rows, now: string, incremental: Partial<Pipeline['incremental']> = {}): Attempt {
  return {
    table: 't',
    columns: READINGS,
    rows,
    write: { strategy: 'upsert', key: ['id'] },
    pipeline: { incremental: { cursor: 'at', grace: '5m', ...incremental } },
    options: { now },
  }
}

async function ids(place: Place): Promise<readonly string[]> {
  const rows = await place.rows('t')
  return rows.map((row) => String((JSON.parse(row) as Record<string, unknown>).id)).toSorted()
}

async function stored(place: Place): Promise<string | undefined> {
  await using log = await place.target.openRunLog({ signal: new AbortController().signal })
  const [watermark] = await log.watermarks()
  return watermark?.value
}

export function checksOfWatermarks(check: Check): void {
  const noon: Rows = [
    ['1', '2025-06-01 11:50:00+00', '1'],
    ['2', '2025-06-01 11:58:00.000001+00', '2'],
  ]

  check('the watermark is the greatest value seen, in every digit', ['G4'], async (place) => {
    const first = await make(place, byClock(noon, '2025-06-01T12:00:00Z'))
    expectCounts(first, { read: 2, inserted: 2 })
    equal(first.watermark, '2025-06-01 11:58:00.000001+00')
    equal(await stored(place), '2025-06-01 11:58:00.000001+00')
    deepEqual(first.window, { from: null, to: '2025-06-01 12:00:00.000000+00' })
    const again = await make(place, byClock(noon, '2025-06-01T12:01:00Z'))
    expectCounts(again, { read: 2, outside: 1, unchanged: 1 })
    equal(again.window?.from, '2025-06-01 11:53:00.000001+00')
    equal(await stored(place), '2025-06-01 11:58:00.000001+00')
  })

  check(
    'a row that shares the boundary is not skipped, one late within the grace is loaded',
    ['G4'],
    async (place) => {
      await make(place, byClock(noon, '2025-06-01T12:00:00Z', { grace: '0s' }))
      const twin: Rows = [...noon, ['3', '2025-06-01 11:58:00.000001+00', '3']]
      expectCounts(await make(place, byClock(twin, '2025-06-01T12:10:00Z', { grace: '0s' })), {
        read: 3,
        outside: 1,
        inserted: 1,
        unchanged: 1,
      })
      const late: Rows = [
        ...twin,
        ['4', '2025-06-01 11:53:00.000001+00', '4'],
        ['5', '2025-06-01 11:53:00+00', '5'],
      ]
      expectCounts(await make(place, byClock(late, '2025-06-01T12:20:00Z')), {
        read: 5,
        outside: 2,
        inserted: 1,
        unchanged: 2,
      })
      deepEqual(await ids(place), ['1', '2', '3', '4'])
    },
  )

  check('a row dated 2099 neither is read nor moves the watermark', ['G4'], async (place) => {
    const wrong: Rows = [...noon, ['9', '2099-01-01 00:00:00+00', '9']]
    const first = await make(place, byClock(wrong, '2025-06-01T12:00:00Z'))
    expectCounts(first, { read: 3, outside: 1, inserted: 2 })
    ok(first.notices.some((notice) => notice.includes('1 row has') && notice.includes('later run')))
    equal(await stored(place), '2025-06-01 11:58:00.000001+00')
    const next: Rows = [...wrong, ['3', '2025-06-02 10:00:00+00', '3']]
    expectCounts(await make(place, byClock(next, '2025-06-02T12:00:00Z')), {
      read: 4,
      outside: 2,
      inserted: 1,
      unchanged: 1,
    })
    deepEqual(await ids(place), ['1', '2', '3'])
  })

  check('a run that fails, a rerun and a backfill leave the watermark where it is', ['G4'], async (place) => {
    await make(place, byClock(noon, '2025-06-01T12:00:00Z'))
    const before = await stored(place)
    const bad: Rows = [...noon, ['3', '2025-06-01 12:30:00+00', 'many']]
    await rejects(make(place, byClock(bad, '2025-06-01T13:00:00Z')), (error: unknown) =>
      isRefusal(error, 'STET_REJECTED', ['many']),
    )
    const more: Rows = [...noon, ['3', '2025-06-02 12:30:00+00', '3']]
    const later = byClock(more, '2025-06-03T00:00:00Z')
    const ofDay = await make(place, { ...later, options: { ...later.options, slice: '2025-06-02' } })
    expectCounts(ofDay, { read: 3, outside: 2, inserted: 1 })
    equal(await stored(place), before)
    const window = { from: '2025-06-01 11:58:00+00', to: '2025-06-02 00:00:00+00' }
    expectCounts(await make(place, { ...later, options: { ...later.options, window } }), {
      read: 3,
      outside: 2,
      unchanged: 1,
    })
    equal(await stored(place), before)
    await make(place, later)
    equal(await stored(place), '2025-06-02 12:30:00+00')
    // Older rows than before are within the source again: it never goes back.
    await make(place, byClock(noon, '2025-06-03T00:00:00Z'))
    equal(await stored(place), '2025-06-02 12:30:00+00')
  })

  check('a watermark of another cursor, key, source or zone refuses the run', ['G4'], async (place) => {
    await make(place, byClock(noon, '2025-06-01T12:00:00Z'))
    const rezoned = byClock(noon, '2025-06-01T13:00:00Z', { zone: 'Asia/Seoul' })
    await rejects(make(place, rezoned), (error: unknown) =>
      isRefusal(error, 'STET_DEFINITION_CHANGED', ['zone', '2025-06-01 11:58:00.000001+00']),
    )
    await rejects(
      make(place, {
        ...byClock(noon, '2025-06-01T13:00:00Z'),
        pipeline: { incremental: { cursor: 'value' } },
      }),
      (error: unknown) => {
        // How far the one has read is no value of the other, and no way on with it.
        const { hint = '' } = error as StetError
        ok(hint.includes('--from VALUE') && !hint.includes('2025-06-01'), hint)
        return isRefusal(error, 'STET_DEFINITION_CHANGED', ['cursor'])
      },
    )
    // All of it again is a new beginning.
    expectCounts(await make(place, { ...rezoned, options: { ...rezoned.options, full: true } }), {
      read: 2,
      unchanged: 2,
    })
    expectCounts(await make(place, rezoned), { read: 2, outside: 1, unchanged: 1 })
  })

  check('a row without a cursor value is what the pipeline says', ['G4', 'G9'], async (place) => {
    const blank: Rows = [...noon, ['3', null, '3']]
    await rejects(make(place, byClock(blank, '2025-06-01T12:00:00Z')), (error: unknown) =>
      isRefusal(error, 'STET_REJECTED', ['at', 'the run reads by it']),
    )
    const taken = await make(place, byClock(blank, '2025-06-01T12:00:00Z', { nulls: 'include' }))
    expectCounts(taken, { read: 3, inserted: 3 })
    ok(taken.notices.some((notice) => notice.startsWith('1 row without a value of at')))
  })

  check(
    'a watermark that a person sets back makes what came since come again',
    ['G4', 'G7'],
    async (place) => {
      await make(place, byClock(noon, '2025-06-01T12:00:00Z'))
      const more: Rows = [...noon, ['3', '2025-06-01 12:30:00+00', '3']]
      const signal = new AbortController().signal
      await using log = await place.target.openRunLog({ signal })
      const [watermark] = await log.watermarks()
      if (watermark === undefined) throw new Error('no watermark')
      const setBack = async () => {
        await using record = await place.target.openRecord({ signal })
        await record.setWatermark({ ...watermark, value: '2025-05-01 00:00:00+00' }, 'somebody')
      }
      await setBack()
      equal(await stored(place), '2025-05-01 00:00:00+00')
      // What was read since is read again, and written once.
      expectCounts(await make(place, byClock(more, '2025-06-01T13:00:00Z')), {
        read: 3,
        inserted: 1,
        unchanged: 2,
      })
      equal(await stored(place), '2025-06-01 12:30:00+00')
      equal((await log.events())[0]?.by, 'somebody')
    },
  )

  check(
    'the first run begins at the start, and a bare date is its first moment in the zone',
    ['G4'],
    async (place) => {
      const rows: Rows = [
        ['1', '2025-05-31 14:59:59.999999+00', '1'],
        ['2', '2025-05-31 15:00:00+00', '2'],
      ]
      const from = { start: '2025-06-01', zone: 'Asia/Seoul' }
      const first = await make(place, byClock(rows, '2025-06-01T12:00:00Z', from))
      expectCounts(first, { read: 2, outside: 1, inserted: 1 })
      deepEqual(await ids(place), ['2'])
      // However long the grace: before the start nothing is read.
      expectCounts(await make(place, byClock(rows, '2025-06-01T12:00:00Z', { ...from, grace: '3d' })), {
        read: 2,
        outside: 1,
        unchanged: 1,
      })
    },
  )

  check('a cursor of decimals is not rounded on the way', ['G4'], async (place) => {
    const priced = (rows: Rows): Attempt => ({
      table: 't',
      columns: { id: 'text', n: 'numeric(20,3)' },
      rows,
      write: { strategy: 'upsert', key: ['id'] },
      pipeline: { incremental: { cursor: 'n' } },
    })
    const first: Rows = [
      ['1', '1.500'],
      ['2', '1.600'],
    ]
    expectCounts(await make(place, priced(first)), { read: 2, inserted: 2 })
    const more: Rows = [...first, ['3', '1.700'], ['4', '2.100']]
    expectCounts(await make(place, priced(more)), { read: 4, outside: 1, inserted: 2, unchanged: 1 })
  })

  check('a rejected row that is corrected is read again', ['G4', 'G9'], async (place) => {
    const attempt = (value: string): Attempt => {
      const rows: Rows = [
        ['1', '2025-05-01 00:00:00+00', '1'],
        ['2', '2025-05-02 00:00:00+00', value],
        ['3', '2025-05-09 00:00:00+00', '3'],
      ]
      const { pipeline, ...others } = byClock(rows, '2025-06-01T12:00:00Z')
      return { ...others, pipeline: { ...pipeline, maxRejects: 1 } }
    }
    const first = await make(place, attempt('oops'))
    expectCounts(first, { read: 3, inserted: 2, rejected: 1 })
    equal(await stored(place), undefined)
    ok(first.notices.some((notice) => notice.startsWith('The watermark stays where it is')))
    expectCounts(await make(place, attempt('2')), { read: 3, inserted: 1, unchanged: 2 })
    equal(await stored(place), '2025-05-09 00:00:00+00')
  })

  check('a table that is gone is read from the beginning again', ['G1', 'G4'], async (place) => {
    await make(place, byClock(noon, '2025-06-01T12:00:00Z'))
    await place.execute('drop table t')
    expectCounts(await make(place, byClock(noon, '2025-06-01T12:01:00Z')), { read: 2, inserted: 2 })
  })

  check('a window that ends before it begins is told of', ['G4'], async (place) => {
    const future = await make(place, byClock(noon, '2025-06-01T12:00:00Z', { start: '2027-01-01' }))
    expectCounts(future, { read: 2, outside: 2 })
    ok(future.notices.some((notice) => notice.includes('after its end')))
  })

  check('a cursor of numbers has a grace of numbers', ['G4'], async (place) => {
    const byNumber = (rows: Rows, grace: number): Attempt => ({
      ...byClock(rows, '2025-06-01T12:00:00Z'),
      pipeline: { incremental: { cursor: 'value', grace } },
    })
    const rows: Rows = [
      ['1', null, '9007199254740992'],
      ['2', null, '9007199254740993'],
    ]
    expectCounts(await make(place, byNumber(rows, 0)), { read: 2, inserted: 2 })
    equal(await stored(place), '9007199254740993')
    expectCounts(await make(place, byNumber(rows, 0)), { read: 2, outside: 1, unchanged: 1 })
    expectCounts(await make(place, byNumber(rows, 1)), { read: 2, unchanged: 2 })
  })
}
