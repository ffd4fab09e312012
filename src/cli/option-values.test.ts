import { expect, test } from 'vitest'
import {
  collect,
  parseCount,
  parseDuration,
  parseMemory,
  parseNameOrNone,
  parseTab,
} from './option-values.ts'

test('a duration needs its unit', () => {
  expect(['250ms', '30s', '1.5s', '5min', '1h'].map(parseDuration)).toEqual([
    250, 30_000, 1500, 300_000, 3_600_000,
  ])
  for (const text of ['30', '', 's', '-1s', '1e3s']) expect(() => parseDuration(text)).toThrow('with a unit')
})

test('a count is a whole number', () => {
  expect(['0', '20'].map(parseCount)).toEqual([0, 20])
  for (const text of ['-1', '1.5', '1e3', '', '9007199254740993']) expect(() => parseCount(text)).toThrow()
})

test('a size goes to the engine in its own words', () => {
  expect(['2GB', '512MiB', '1.5GB'].map(parseMemory)).toEqual(['2GB', '512MiB', '1.5GB'])
  for (const text of ['2', '2G', "1GB'; select 1", '80%'])
    expect(() => parseMemory(text)).toThrow('with a unit')
})

test('a column can be switched off by none', () => {
  expect(parseNameOrNone('changed_at')).toBe('changed_at')
  expect(parseNameOrNone('none')).toBe(false)
  expect(() => parseNameOrNone('')).toThrow()
})

test('a tab may be written as people write it', () => {
  expect([parseTab('\\t'), parseTab(';')]).toEqual(['\t', ';'])
})

test('a repeated option keeps all its values', () => {
  expect(collect('b', collect('a', undefined))).toEqual(['a', 'b'])
})
