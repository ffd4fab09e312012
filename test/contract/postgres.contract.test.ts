import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { connectionCuts, postgresPlace } from '../support/postgres-place.ts'
import { scenariosOfSwaps } from '../support/swap-scenarios.ts'

describe('target contract: PostgreSQL from npm', () => {
  const checks = targetContract({
    create: () => postgresPlace(inject('postgresUrl')),
    faults: [connectionCuts],
    scenarios: scenariosOfSwaps(),
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})
