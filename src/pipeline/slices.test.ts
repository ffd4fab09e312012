import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StetError } from '../errors.ts'
import type { Slicing } from '../model/slice.ts'
import { hasEnded, microsecondsOf, sliceAt, sliceOf, slicesBetween } from './slices.ts'

const by = 'event_at'
const seoul: Slicing = { by, size: 'day', zone: 'Asia/Seoul' }
const newYork = (size: 'hour' | 'day' | 'month'): Slicing => ({ by, size, zone: 'America/New_York' })

/** Length in hours. */
function hours(slicing: Slicing, name: string): number {
  const { bounds } = sliceOf(slicing, name)
  if (bounds.kind !== 'time') throw new Error('not of time')
  const at = (text: string) => Date.parse(text.replace(' ', 'T').replace('+00', 'Z'))
  return (at(bounds.to.instant) - at(bounds.from.instant)) / 3_600_000
}

describe('a slice of time (G3)', () => {
  test('begins and ends at midnight of its zone', () => {
    expect(sliceOf(seoul, '2026-08-07')).toEqual({
      name: '2026-08-07',
      by,
      bounds: {
        kind: 'time',
        from: { wall: '2026-08-07 00:00:00', instant: '2026-08-06 15:00:00+00' },
        to: { wall: '2026-08-08 00:00:00', instant: '2026-08-07 15:00:00+00' },
      },
    })
  })

  test('a day has 23 hours when clocks go forward and 25 when they go back', () => {
    expect(hours(newYork('day'), '2026-03-08')).toBe(23)
    expect(hours(newYork('day'), '2026-11-01')).toBe(25)
    expect(hours(newYork('day'), '2026-11-02')).toBe(24)
    expect(hours(newYork('month'), '2026-03')).toBe(31 * 24 - 1)
  })

  test('a day that begins at one o’clock, because midnight was skipped, begins there', () => {
    const { bounds } = sliceOf({ by, size: 'day', zone: 'America/Sao_Paulo' }, '2018-11-04')
    expect(bounds).toMatchObject({
      // A column without a zone knows of no skipped midnight.
      from: { wall: '2018-11-04 00:00:00', instant: '2018-11-04 03:00:00+00' },
    })
  })

  test('of two equal hours each has a name of its own', () => {
    const names = slicesBetween(newYork('hour'), '2026-11-01T00', '2026-11-01T02').map(({ name }) => name)
    expect(names).toEqual(['2026-11-01T00', '2026-11-01T01', '2026-11-01T01-05:00', '2026-11-01T02'])
    for (const name of names) expect(sliceOf(newYork('hour'), name).name).toBe(name)
  })

  test('an hour that the clock skips is refused', () => {
    expect(() => sliceOf(newYork('hour'), '2026-03-08T02')).toThrow('There is no hour 2026-03-08T02')
    const names = slicesBetween(newYork('hour'), '2026-03-08T01', '2026-03-08T03').map(({ name }) => name)
    expect(names).toEqual(['2026-03-08T01', '2026-03-08T03'])
  })

  const zones = fc.constantFrom('UTC', 'Asia/Seoul', 'America/New_York', 'Africa/Cairo', 'Asia/Kathmandu')

  test('a moment of a day whose midnight comes twice is in the slice that it names', () => {
    // The clock of St. John's went from 00:01 back to 23:01 of the day before.
    for (const size of ['day', 'month'] as const) {
      const slicing = { by, size, zone: 'America/St_Johns' } as const
      const { name, bounds } = sliceAt(slicing, '2009-11-01T02:45:00Z')
      expect(name).toBe(size === 'day' ? '2009-11-01' : '2009-11')
      expect(bounds).toMatchObject({ from: { instant: '2009-11-01 02:30:00+00' } })
    }
  })

  const sizes = fc.constantFrom('hour', 'day', 'month')
  const moments = fc.date({ min: new Date('2000-01-01'), max: new Date('2035-01-01'), noInvalidDate: true })

  test('every moment is in exactly the slice that it names, and slices leave no gap', () => {
    fc.assert(
      fc.property(zones, sizes, moments, (zone, size, moment) => {
        const slicing = { by, size, zone } as const
        const slice = sliceAt(slicing, moment.toISOString())
        const { bounds } = slice
        if (bounds.kind !== 'time') throw new Error('not of time')
        const at = (text: string) => Date.parse(text.replace(' ', 'T').replace('+00', 'Z'))
        expect(at(bounds.from.instant)).toBeLessThanOrEqual(moment.getTime())
        expect(at(bounds.to.instant)).toBeGreaterThan(moment.getTime())
        expect(sliceOf(slicing, slice.name)).toEqual(slice)
        const following = sliceAt(slicing, new Date(at(bounds.to.instant)).toISOString())
        expect(following.bounds).toMatchObject({ from: bounds.to })
      }),
    )
  })

  test('a day that was skipped, and hours where the clock moves by half of one, are refused', () => {
    expect(() => sliceOf({ by, size: 'day', zone: 'Pacific/Apia' }, '2011-12-30')).toThrow('There is no day')
    const hours: Slicing = { by, size: 'hour', zone: 'Australia/Lord_Howe' }
    expect(() => slicesBetween(hours, '2026-04-05T00', '2026-04-05T03')).toThrow('the middle of an hour')
  })

  test('hours are refused where the clock moves in the middle of one, and only there', () => {
    // At 02:45 the clock of the Chatham Islands is put forward to 03:45.
    const chatham: Slicing = { by, size: 'hour', zone: 'Pacific/Chatham' }
    expect(sliceAt(chatham, '2026-09-26T13:10:00Z').name).toBe('2026-09-27T01')
    for (const moment of ['2026-09-26T13:30:00Z', '2026-09-26T14:05:00Z']) {
      expect(() => sliceAt(chatham, moment)).toThrow('the middle of an hour')
    }
    expect(() => sliceOf(chatham, '2026-09-27T02')).toThrow('the middle of an hour')
    expect(sliceAt(chatham, '2026-09-26T14:20:00Z').name).toBe('2026-09-27T04')
  })

  test('an hour with another offset than its zone has then is the same moment, or no hour', () => {
    const utc: Slicing = { by, size: 'hour', zone: 'UTC' }
    expect(sliceOf(utc, '2026-08-07T13+02:00').name).toBe('2026-08-07T11')
    expect(() => sliceOf(utc, '2026-08-07T13+05:30')).toThrow('is no hour of UTC')
  })

  test('walls of slices leave no gap and do not overlap, whatever the clock does', () => {
    const walls = slicesBetween(newYork('hour'), '2026-11-01T00', '2026-11-01T02').map(({ bounds }) =>
      bounds.kind === 'time' ? `${bounds.from.wall.slice(11, 13)}-${bounds.to.wall.slice(11, 13)}` : '',
    )
    expect(walls).toEqual(['00-01', '01-02', '02-02', '02-03'])
    const cairo = sliceOf({ by, size: 'day', zone: 'Africa/Cairo' }, '2026-04-23').bounds
    expect(cairo).toMatchObject({ to: { wall: '2026-04-24 00:00:00' } })
  })

  test.each(['a\0b', 'x'.repeat(201)])('a value that cannot be a name is refused', (name) => {
    expect(() => sliceOf({ by, size: 'value', zone: 'UTC' }, name)).toThrow('cannot name a slice')
  })

  test('from and to are both included, and in order', () => {
    expect(slicesBetween(seoul, '2026-02-27', '2026-03-01').map(({ name }) => name)).toEqual([
      '2026-02-27',
      '2026-02-28',
      '2026-03-01',
    ])
    expect(() => slicesBetween(seoul, '2026-03-01', '2026-02-27')).toThrow('is before the first')
    expect(() => slicesBetween(newYork('hour'), '2000-01-01T00', '2026-01-01T00')).toThrow('more than 20,000')
  })

  test('has ended when the next one has begun', () => {
    const slice = sliceOf(seoul, '2026-08-07')
    expect(hasEnded(slice, new Date('2026-08-07T14:59:59Z'))).toBe(false)
    expect(hasEnded(slice, new Date('2026-08-07T15:00:00Z'))).toBe(true)
    const last = slicesBetween({ by, size: 'day', zone: 'UTC' }, '9999-12-30', '9999-12-31')
    expect(last.map((day) => hasEnded(day, new Date('2026-08-07T15:00:00Z')))).toEqual([false, false])
  })

  test.each(['2026-8-7', '07.08.2026', '2026-02-30', '', 'yesterday', '2026-08'])(
    '%j names no day',
    (name) => {
      expect(() => sliceOf(seoul, name)).toThrow(StetError)
    },
  )
})

describe('a slice of a range', () => {
  const slicing: Slicing = { by: 'customer_no', size: { range: 1000 }, zone: 'UTC' }

  test('is half-open, and named by its first number', () => {
    expect(sliceOf(slicing, '1000').bounds).toEqual({ kind: 'range', from: '1000', to: '2000' })
    expect(sliceOf(slicing, '-1000').bounds).toEqual({ kind: 'range', from: '-1000', to: '0' })
    expect(slicesBetween(slicing, '-1000', '1000').map(({ name }) => name)).toEqual(['-1000', '0', '1000'])
  })

  test('is exact as far as whole numbers of 64 bits go, and further', () => {
    expect(sliceOf(slicing, '9223372036854775000').bounds).toEqual({
      kind: 'range',
      from: '9223372036854775000',
      to: '9223372036854776000',
    })
    const names = slicesBetween(slicing, '-9223372036854776000', '-9223372036854774000')
    expect(names.map(({ name }) => name)).toEqual([
      '-9223372036854776000',
      '-9223372036854775000',
      '-9223372036854774000',
    ])
    expect(() => sliceOf(slicing, '9007199254740993')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('--slice 9007199254740000') }),
    )
    expect(sliceOf(slicing, '-0').name).toBe('0')
    expect(() => slicesBetween(slicing, '0', '9223372036854775000')).toThrow('more than 20,000')
  })

  test('a number in the middle of one is refused with the slice that it is in', () => {
    expect(() => sliceOf(slicing, '1400')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('--slice 1000') }),
    )
    expect(() => sliceOf(slicing, '-1')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('--slice -1000') }),
    )
    expect(() => sliceOf(slicing, '1e3')).toThrow(StetError)
  })
})

describe('a logical time', () => {
  test('without an offset is refused: it would be another moment in every zone', () => {
    expect(() => sliceAt(seoul, '2026-08-07T00:00:00')).toThrow('as a moment')
    expect(sliceAt(seoul, '2026-08-06 15:00:00+00:00').name).toBe('2026-08-07')
  })

  test('names no slice of values', () => {
    expect(() => sliceAt({ by, size: 'value', zone: 'UTC' }, '2026-08-07T00:00:00Z')).toThrow('not of time')
  })
})

test.each([
  ['2h', 7_200_000_000n],
  ['90 minutes', 5_400_000_000n],
  ['PT2H', 7_200_000_000n],
  ['P1DT1S', 86_401_000_000n],
  ['3d', 259_200_000_000n],
  ['250ms', 250_000n],
  ['0s', 0n],
])('%s is a length of time', (text, micros) => {
  expect(microsecondsOf(text, 'grace')).toBe(micros)
})

test.each(['', '2', '2 fortnights', '-2h', 'P1M', '1y', 'two hours'])('%j is none', (text) => {
  expect(() => microsecondsOf(text, 'grace')).toThrow(StetError)
})
