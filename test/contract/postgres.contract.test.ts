import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { connectionCuts, postgresPlace, processKills } from '../support/postgres-place.ts'

const system = inject('systemPostgresUrl')

describe('target contract: PostgreSQL from npm', () => {
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [connectionCuts],
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})

// Killing needs a process for each point; the points are those that the cuts walk one by one.
describe('target contract: PostgreSQL, killed', () => {
  const faultStride = Number(process.env.STET_FAULT_STRIDE ?? 4)
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [processKills],
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
    faultStride: 3,
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})
