import { expect, test } from 'vitest'
import { memoryLimitFor } from './backfill.ts'

test('the memory limit is divided among the jobs, also the one that nobody has named', () => {
  expect(memoryLimitFor('2GB', 4)).toBe('0.5GB')
  expect(memoryLimitFor('1.5GiB', 2)).toBe('0.75GiB')
  expect(memoryLimitFor('2GB', 1)).toBe('2GB')
  expect(memoryLimitFor(undefined, 1)).toBeUndefined()
  const [one, two] = [2, 4].map((jobs) =>
    Number(/^(\d+)MiB$/.exec(memoryLimitFor(undefined, jobs) ?? '')?.[1]),
  )
  expect(one).toBeGreaterThan(0)
  expect(Math.abs((one ?? 0) - 2 * (two ?? 0))).toBeLessThanOrEqual(1)
})
