import { expect, test } from 'vitest'
import type { Slice } from '../../model/slice.ts'
import { withSlice } from './slice-in-path.ts'

const named = (name: string): Slice => ({ name, by: 'x', bounds: { kind: 'value', value: name } })

test.each(['2026-08-07', 'US$$', "$'", '$`', '$&', '2026-11-01T01-05:00'])(
  'the name %s is put into the path as it is',
  (name) => {
    expect(withSlice(['in/{slice}/a-{slice}.csv'], named(name))).toEqual([`in/${name}/a-${name}.csv`])
  },
)

test.each(['../x', 'a/b', 'a\\b', '..', '*', 'a?', '[a]', '{a,b}', 'a\0b'])(
  'the name %j would be a path or a pattern, and is refused',
  (name) => {
    expect(() => withSlice(['{slice}.csv'], named(name))).toThrow(
      expect.objectContaining({ code: 'STET_CONFIG' }),
    )
  },
)

test('a path that asks for a slice needs one, and any other does not', () => {
  expect(() => withSlice(['{slice}.csv'], undefined)).toThrow(expect.objectContaining({ code: 'STET_USAGE' }))
  expect(withSlice(['a.csv'], undefined)).toEqual(['a.csv'])
})
