import { expect, test } from 'vitest'
import { countOf, formatBytes, formatDuration, formatMoment, groupDigits } from './words.ts'

test('counts are grouped and agree with their noun', () => {
  expect([0, 1, 999, 1000, 1_234_567].map(groupDigits)).toEqual(['0', '1', '999', '1,000', '1,234,567'])
  expect([countOf(1, 'row'), countOf(1001, 'row')]).toEqual(['1 row', '1,001 rows'])
})

test('sizes never show four digits', () => {
  expect([0, 999, 1000, 99_949, 99_950, 999_499, 999_500, 115_000_000].map(formatBytes)).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '99.9 kB',
    '100 kB',
    '999 kB',
    '1.0 MB',
    '115 MB',
  ])
})

test('durations go over into the next unit without 60 seconds or 1000 ms', () => {
  expect([0, 999, 999.6, 59_949, 59_950, 125_000, 3_599_600, 3_720_000].map(formatDuration)).toEqual([
    '0 ms',
    '999 ms',
    '1.0 s',
    '59.9 s',
    '1 min 00 s',
    '2 min 05 s',
    '1 h 00 min',
    '1 h 02 min',
  ])
})

test('a moment of the run log loses its fraction and nothing else', () => {
  expect(formatMoment('2026-03-02T09:14:05.123456Z')).toBe('2026-03-02 09:14:05')
  expect(formatMoment('unknown')).toBe('unknown')
})
