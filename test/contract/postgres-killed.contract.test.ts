import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { postgresPlace, processKills } from '../support/postgres-place.ts'
import { scenariosOfSwaps } from '../support/swap-scenarios.ts'

// Killing needs a process for each point; the points are those that the cuts walk one by one.
describe('target contract: PostgreSQL, killed', () => {
  const faultStride = Number(process.env.STET_FAULT_STRIDE ?? 16)
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [processKills],
    scenarios: scenariosOfSwaps(),
    faultStride,
  })
  for (const check of checks.filter(({ name }) => name.includes(processKills.what)))
    test(check.name, check.run, 300_000)
})
