import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { connectionCuts, postgresPlace, processKills } from '../support/postgres-place.ts'
import { scenariosOfSwaps } from '../support/swap-scenarios.ts'

const system = inject('systemPostgresUrl')

describe('target contract: PostgreSQL from npm', () => {
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [connectionCuts],
    scenarios: scenariosOfSwaps(),
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})

// Killing needs a process for each point; the points are those that the cuts walk one by one.
describe('target contract: PostgreSQL, killed', () => {
  const faultStride = Number(process.env.STET_FAULT_STRIDE ?? 4)
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [processKills],
    scenarios: scenariosOfSwaps(),
    faultStride,
  })
  for (const check of checks.filter(({ name }) => name.includes(processKills.what)))
    test(check.name, check.run, 300_000)
})

describe.skipIf(system === null)('target contract: PostgreSQL of the system', () => {
  if (system === null) return
  const checks = targetContract({
    create: () => postgresPlace(system),
    faults: [connectionCuts],
    scenarios: scenariosOfSwaps(),
    faultStride: 3,
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})
