import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StetError } from '../errors.ts'
import type { RunCounts } from '../model/run.ts'
import type { Difference } from '../model/target.ts'
import { checkEquation, refuseDangerousDeletes, refuseRejects } from './guards.ts'

const TERMS = ['rejected', 'duplicate', 'inserted', 'updated', 'unchanged', 'stale', 'frozen'] as const

/** Counts that add up. */
const trueCounts = fc
  .record({
    ...Object.fromEntries(TERMS.map((term) => [term, fc.nat(1_000_000)])),
    filtered: fc.nat(1000),
    added: fc.nat(1000),
    deleted: fc.nat(1000),
  } as Record<(typeof TERMS)[number] | 'filtered' | 'added' | 'deleted', fc.Arbitrary<number>>)
  .map((terms): RunCounts => {
    const afterTransform = TERMS.reduce((sum, term) => sum + terms[term], 0)
    return { ...terms, afterTransform, read: afterTransform + terms.filtered - terms.added }
  })

describe('every row is accounted for (G6)', () => {
  test('counts that add up pass', () => {
    fc.assert(fc.property(trueCounts, (counts) => checkEquation(counts)))
  })

  test('a miscount in any term is caught', () => {
    const planted = fc.tuple(
      trueCounts,
      fc.constantFrom(...TERMS, 'read', 'filtered', 'added', 'afterTransform'),
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
  const difference = (deletes: number): Difference => ({ table: 'd', inserts: 0, updates: 0, deletes })
  const whole = { read: 5, rejected: 0, afterTransform: 5 }

  test('an empty extract deletes nothing unless that is allowed by name', () => {
    const nothing = { read: 0, rejected: 0, afterTransform: 0 }
    const refusal = expect.objectContaining({ code: 'STET_DELETE_GUARD' })
    expect(() => refuseDangerousDeletes({ strategy: 'replace-table' }, difference(4), nothing, 't')).toThrow(
      refusal,
    )
    expect(() =>
      refuseDangerousDeletes({ strategy: 'replace-table', allowEmpty: true }, difference(4), nothing, 't'),
    ).not.toThrow()
    expect(() =>
      refuseDangerousDeletes({ strategy: 'replace-table' }, difference(0), nothing, 't'),
    ).not.toThrow()
  })

  test('an extract with rejects deletes nothing, also where rejects are allowed', () => {
    const partly = { ...whole, rejected: 1 }
    expect(() => refuseDangerousDeletes({ strategy: 'replace-table' }, difference(1), partly, 't')).toThrow(
      '1 rows were rejected',
    )
    expect(() =>
      refuseDangerousDeletes({ strategy: 'replace-table' }, difference(1), whole, 't'),
    ).not.toThrow()
  })
})
