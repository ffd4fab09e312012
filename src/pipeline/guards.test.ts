import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StetError } from '../errors.ts'
import type { Difference } from '../model/comparison.ts'
import type { RunCounts } from '../model/run.ts'
import { checkEquation, refuseDangerousDeletes, refuseRejects } from './guards.ts'

const TERMS = ['rejected', 'duplicate', 'inserted', 'updated', 'unchanged', 'stale', 'frozen'] as const

/** Counts that add up. */
const trueCounts = fc
  .record({
    ...Object.fromEntries(TERMS.map((term) => [term, fc.nat(1_000_000)])),
    filtered: fc.nat(1000),
    added: fc.nat(1000),
    outside: fc.nat(1000),
    deleted: fc.nat(1000),
    marked: fc.nat(1000),
    restored: fc.nat(1000),
    missing: fc.nat(1000),
  } as Record<Exclude<keyof RunCounts, 'read' | 'afterTransform'>, fc.Arbitrary<number>>)
  .map((terms): RunCounts => {
    const afterTransform = TERMS.reduce((sum, term) => sum + terms[term], 0)
    return { ...terms, afterTransform, read: afterTransform + terms.outside + terms.filtered - terms.added }
  })

describe('every row is accounted for (G6)', () => {
  test('counts that add up pass', () => {
    fc.assert(fc.property(trueCounts, (counts) => checkEquation(counts)))
  })

  test('a miscount in any term is caught', () => {
    const planted = fc.tuple(
      trueCounts,
      fc.constantFrom(...TERMS, 'read', 'outside', 'filtered', 'added', 'afterTransform'),
      fc.integer({ min: -3, max: 3 }).filter((by) => by !== 0),
    )
    fc.assert(
      fc.property(planted, ([counts, term, by]) => {
        expect(() => checkEquation({ ...counts, [term]: counts[term as keyof RunCounts] + by })).toThrow(
          StetError,
        )
      }),
    )
  })
})

describe('rejects (G9)', () => {
  const reject = {
    file: 'a.csv',
    line: 3,
    column: 'amount',
    value: '1.005',
    reason: 'has 3 decimals, numeric(12,2) keeps 2',
  }

  test('none is allowed unless the pipeline says so', () => {
    expect(() => refuseRejects(0, [], 0)).not.toThrow()
    expect(() => refuseRejects(1, [reject], 1)).not.toThrow()
    expect(() => refuseRejects(2, [reject], 1)).toThrow(expect.objectContaining({ code: 'STET_REJECTED' }))
  })

  test('the error names file, line, column, value and reason', () => {
    expect(() => refuseRejects(1, [reject], 0)).toThrow(
      'a.csv:3 amount "1.005" has 3 decimals, numeric(12,2) keeps 2',
    )
  })
})

describe('deletes on the strength of an extract (G10)', () => {
  const refusal = expect.objectContaining({ code: 'STET_DELETE_GUARD' })
  const whole = { read: 5, rejected: 0, afterTransform: 5 }
  const nothing = { read: 0, rejected: 0, afterTransform: 0 }
  const attempt = (
    change: Partial<Difference>,
    counts: typeof whole,
    more: { live?: number; empty?: boolean; deletes?: boolean; isKeyless?: boolean } = {},
  ) => {
    const { live = 1000, empty = false, deletes = false, isKeyless = false } = more
    const difference = { table: 'd', inserts: 0, updates: 0, deletes: 0, marks: 0, ...change }
    return () =>
      refuseDangerousDeletes(difference, counts, { live, allowed: { empty, deletes }, table: 't', isKeyless })
  }

  test('an empty extract deletes and marks nothing unless that is allowed by name', () => {
    expect(attempt({ deletes: 4 }, nothing)).toThrow(refusal)
    expect(attempt({ marks: 4 }, nothing)).toThrow('would be marked as gone')
    // The other permission is about short extracts, not about empty ones.
    expect(attempt({ deletes: 4 }, nothing, { deletes: true })).toThrow(refusal)
    expect(attempt({ deletes: 4 }, nothing, { empty: true })).not.toThrow()
    expect(attempt({}, nothing)).not.toThrow()
  })

  test('an extract with rejects deletes nothing, whatever is allowed', () => {
    const partly = { ...whole, rejected: 1 }
    expect(attempt({ deletes: 1 }, partly, { empty: true, deletes: true })).toThrow('1 row was rejected')
    expect(attempt({ deletes: 1 }, whole)).not.toThrow()
  })

  test('more than a tenth of the live rows and more than 100 are refused, either alone is not', () => {
    expect(attempt({ deletes: 101 }, whole, { live: 1009 })).toThrow(
      '101 rows of t would be deleted, of 1,009',
    )
    expect(attempt({ marks: 101 }, whole, { live: 1009 })).toThrow(refusal)
    expect(attempt({ deletes: 101 }, whole, { live: 1010 })).not.toThrow()
    expect(attempt({ deletes: 100 }, whole, { live: 100 })).not.toThrow()
    expect(attempt({ deletes: 101 }, whole, { live: 101, deletes: true })).not.toThrow()
  })

  test('without a key a changed row is no missing one', () => {
    const changed = { inserts: 900, deletes: 1000 }
    expect(attempt(changed, whole, { isKeyless: true })).not.toThrow()
    expect(attempt(changed, whole)).toThrow(refusal)
    expect(attempt({ inserts: 800, deletes: 1000 }, whole, { isKeyless: true })).toThrow(refusal)
  })
})
