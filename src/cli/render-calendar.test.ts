import { expect, test } from 'vitest'
import type { SliceCalendar, SliceStatus } from '../pipeline/calendar.ts'
import { sliceOfPartition } from './orchestrator.ts'
import { renderCalendar } from './render-calendar.ts'
import { colorsFor } from './text.ts'

const PLAIN = colorsFor(false)

function calendarOf(
  size: SliceCalendar['slicing']['size'],
  states: readonly (readonly [slice: string, state: SliceStatus['state']])[],
): SliceCalendar {
  return {
    slicing: { by: 'at', size, zone: 'UTC' },
    slices: states.map(([slice, state]) => ({
      slice,
      state,
      runId: null,
      startedAt: null,
      error: null,
      loadedAt: state === 'missing' ? null : '2026-05-01T10:00:00.000000Z',
      rows: state === 'missing' ? null : 1200,
    })),
    others: [],
  }
}

test('hours stand in the row of their day, one that comes twice at its end', () => {
  const text = renderCalendar(
    'clicks',
    calendarOf('hour', [
      ['2026-11-01T00', 'loaded'],
      ['2026-11-01T01', 'frozen'],
      ['2026-11-01T01-05:00', 'running'],
      ['2026-11-01T03', 'missing'],
    ]),
    PLAIN,
  )
  expect(text).toContain('              0     6     12    18\n  2026-11-01  LZ .  T01-05:00 R\n')
})

test('months stand in the row of their year', () => {
  const text = renderCalendar(
    'sales',
    calendarOf('month', [
      ['2026-02', 'loaded'],
      ['2026-03', 'empty'],
    ]),
    PLAIN,
  )
  expect(text).toContain('        01  02  03  04  05  06  07  08  09  10  11  12\n  2026       L   e\n')
})

test('values and ranges are a list, and a name cannot act on the terminal', () => {
  const text = renderCalendar(
    'shops',
    calendarOf('value', [
      ['KR\u001b[2J', 'loaded'],
      ['JP', 'missing'],
    ]),
    PLAIN,
  )
  expect(text).toContain('  L  KR\\x1b[2J  1,200  2026-05-01 10:00:00\n  .  JP\n')
})

test('colours come beside the letters', () => {
  const text = renderCalendar('sales', calendarOf('day', [['2026-05-01', 'loaded']]), colorsFor(true))
  expect(text).toContain(' 1\u001b[32mL\u001b[39m')
})

test.each([
  ['2026-05-01-13:00', 'hour', '2026-05-01T13'],
  // So Dagster tells the second of two equal hours from the first.
  ['2026-11-01-01:00-0500', 'hour', '2026-11-01T01-05:00'],
  ['2026-10-25-02:00+0100', 'hour', '2026-10-25T02+01:00'],
  ['2026-05-01', 'month', '2026-05'],
  ['2026-05-01', 'day', '2026-05-01'],
  ['KR', 'value', 'KR'],
] as const)("Dagster's key %s as a slice of size %s is %s", (key, size, slice) => {
  expect(sliceOfPartition(key, { by: 'at', size, zone: 'UTC' })).toBe(slice)
})
