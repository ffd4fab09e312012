import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { connectionCuts, postgresPlace } from '../support/postgres-place.ts'
import { scenariosOfSwaps } from '../support/swap-scenarios.ts'

const system = inject('systemPostgresUrl')

describe.skipIf(system === null)('target contract: PostgreSQL of the system', () => {
  if (system === null) return
  const checks = targetContract({
    create: () => postgresPlace(system),
    faults: [connectionCuts],
    scenarios: scenariosOfSwaps(),
    faultStride: Number(process.env.STET_FAULT_STRIDE ?? 15),
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})
