import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import type { WriteStrategy } from '../model/write.ts'
import {
  type Check,
  expectCounts,
  FIRST,
  INSERT_ONCE,
  idsAndNotes,
  isRefusal,
  load,
  REPLACE,
  REPLACE_WITHOUT_KEY,
  type Rows,
  SECOND,
} from './kit.ts'

export function checksOfContent(check: Check): void {
  check('the same rows again touch nothing', ['G1', 'G2'], async (place) => {
    const first = await load(place, FIRST)
    expectCounts(first, { read: 3, inserted: 3 })
    const rows = await place.rows('t')
    const versions = await place.versions('t')
    const second = await load(place, FIRST)
    expectCounts(second, { read: 3, unchanged: 3 })
    equal(second.verdict, 'unchanged')
    deepEqual(await place.rows('t'), rows)
    deepEqual(await place.versions('t'), versions)
  })

  check(
    'a changed row is updated, a new one inserted, an older one left alone',
    ['G1', 'G5', 'G6'],
    async (place) => {
      await load(place, FIRST)
      const versions = await place.versions('t')
      const result = await load(place, SECOND)
      expectCounts(result, { read: 4, inserted: 1, updated: 1, unchanged: 1, stale: 1 })
      deepEqual(await idsAndNotes(place), [
        ['a', 'second'],
        ['b', ''],
        ['c', null],
        ['d', 'new'],
      ])
      if (versions !== null) {
        const after = (await place.versions('t')) ?? []
        equal(
          versions.filter((version) => after.includes(version)).length,
          2,
          'b and c keep their row versions (G2)',
        )
      }
    },
  )

  check('an older load replayed after a newer one changes nothing', ['G5'], async (place) => {
    await load(place, SECOND)
    const rows = await place.rows('t')
    const result = await load(place, FIRST)
    expectCounts(result, { read: 3, updated: 1, unchanged: 1, stale: 1 })
    // b alone was older in SECOND; once it is repaired, the two loads can be repeated in any order.
    const settled = await place.rows('t')
    ok(settled.length === rows.length)
    await load(place, SECOND)
    deepEqual(await place.rows('t'), settled)
  })

  check('the newest of several rows with one key stays, wherever it stands', ['G5'], async (place) => {
    const rivals: Rows = [
      ['a', '1.00', 'nine', null, '9'],
      ['a', '2.00', 'twelve', null, '12'],
      ['a', '3.00', 'seven', null, '7'],
      ['b', '1.00', 'only', null, '1'],
      ['b', '1.00', 'only', null, '1'],
    ]
    for (const rows of [rivals, [...rivals].reverse()]) {
      const result = await load(place, rows)
      equal(result.counts.duplicate, 3)
      deepEqual(await idsAndNotes(place), [
        ['a', 'twelve'],
        ['b', 'only'],
      ])
    }
  })

  check('a losing duplicate that differs is never written', ['G2', 'G5'], async (place) => {
    const rows: Rows = [
      ['a', '1.00', 'old', null, '1'],
      ['a', '2.00', 'new', null, '2'],
    ]
    await load(place, rows)
    const versions = await place.versions('t')
    const again = await load(place, rows)
    expectCounts(again, { read: 2, duplicate: 1, unchanged: 1 })
    deepEqual(await place.versions('t'), versions)
  })

  check(
    'two rows that tie with different content are refused, and nothing is written',
    ['G5'],
    async (place) => {
      await load(place, FIRST)
      const rows = await place.rows('t')
      const tie: Rows = [
        ['z', '1.00', 'this', null, '5'],
        ['z', '1.00', 'that', null, '5'],
      ]
      await rejects(load(place, tie), (error: unknown) => isRefusal(error, 'STET_TIE', ['z', 'this', 'that']))
      deepEqual(await place.rows('t'), rows)
    },
  )

  check('insert-once never changes an existing row and counts it as frozen', ['G1', 'G6'], async (place) => {
    await load(place, FIRST, INSERT_ONCE)
    const versions = await place.versions('t')
    const result = await load(place, SECOND, INSERT_ONCE)
    expectCounts(result, { read: 4, inserted: 1, unchanged: 1, frozen: 2 })
    const after = await place.versions('t')
    if (versions !== null && after !== null) ok(versions.every((version) => after.includes(version)))
  })

  check('replace-table leaves exactly the rows of the load', ['G1', 'G2', 'G6'], async (place) => {
    await load(place, FIRST, REPLACE)
    const result = await load(place, SECOND.slice(0, 3), REPLACE)
    expectCounts(result, { read: 3, updated: 2, unchanged: 1 })
    const less = await load(place, SECOND.slice(1), REPLACE)
    expectCounts(less, { read: 3, inserted: 1, unchanged: 2, deleted: 1 })
    deepEqual(
      (await idsAndNotes(place)).map(([id]) => id),
      ['b', 'c', 'd'],
    )
  })

  check('replace-table without a key compares rows as a multiset', ['G1', 'G2', 'G6'], async (place) => {
    const twice: Rows = [...FIRST.slice(0, 1), ...FIRST]
    expectCounts(await load(place, twice, REPLACE_WITHOUT_KEY), { read: 4, inserted: 4 })
    const versions = await place.versions('t')
    expectCounts(await load(place, twice, REPLACE_WITHOUT_KEY), { read: 4, unchanged: 4 })
    deepEqual(await place.versions('t'), versions)
    expectCounts(await load(place, FIRST, REPLACE_WITHOUT_KEY), { read: 3, unchanged: 3, deleted: 1 })
    equal(await place.count('t'), 3)
  })

  check(
    'a column that is ignored is no reason to update, and is written with a row that changes',
    ['G2'],
    async (place) => {
      const write: WriteStrategy = { strategy: 'upsert', key: ['id'], ignore: ['at'] }
      await load(place, FIRST, write)
      const stamped = FIRST.map(([id, amount, note, , seq]) => [
        id ?? null,
        amount ?? null,
        note ?? null,
        '2030-01-01 00:00:00+00',
        seq ?? null,
      ])
      expectCounts(await load(place, stamped, write), { read: 3, unchanged: 3 })
      ok((await place.rows('t')).every((row) => !row.includes('2030')))
      const changed = stamped.map((row, position) =>
        position === 0 ? [row[0] ?? null, '7.00', ...row.slice(2)] : row,
      )
      expectCounts(await load(place, changed, write), { read: 3, updated: 1, unchanged: 2 })
      equal((await place.rows('t')).filter((row) => row.includes('2030')).length, 1)
    },
  )

  check('NULL, empty text, quotes, newlines and unicode come back as they went in', ['G9'], async (place) => {
    const texts = [
      '',
      ' ',
      'NULL',
      '\\N',
      '\\.',
      '"',
      "'",
      ',',
      '\n',
      '\r',
      '\r\n',
      '\t',
      '\u{FEFF}x',
      '😀',
      'é',
      'e\u0301',
      '#',
      '\\',
      'a"b,c\nd',
    ]
    const rows: Rows = [
      ...texts.map((text, position) => [`k${position}`, '1.00', text, null, '1']),
      ['k-null', '1.00', null, null, '1'],
    ]
    expectCounts(await load(place, rows), { read: rows.length, inserted: rows.length })
    expectCounts(await load(place, rows), { read: rows.length, unchanged: rows.length })
  })
}
