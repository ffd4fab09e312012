import { describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { postgresRemotePlace, remoteCuts, remoteKills } from '../support/postgres-remote-place.ts'

const system = inject('systemPostgresUrl')

const SKIP = {
  'a stream that breaks midway commits no short table':
    'there is no stream: the difference is found in the server and never sent',
}

/** Of the messages that change state, so many are passed over between two cuts; more of them than a load that is sent has. */
const FAULT_STRIDE = Number(process.env.STET_FAULT_STRIDE ?? 10)

describe('remote compare, held to the target contract: PostgreSQL from npm', () => {
  const checks = targetContract({
    create: () => postgresRemotePlace(inject('postgresUrl')),
    faults: [remoteCuts],
    faultStride: FAULT_STRIDE,
    skip: SKIP,
  })
  for (const check of checks) test.skipIf(check.skip !== undefined)(check.name, check.run, 300_000)
})

describe('remote compare: PostgreSQL from npm, killed', () => {
  const checks = targetContract({
    create: () => postgresRemotePlace(inject('postgresUrl')),
    faults: [remoteKills],
    faultStride: FAULT_STRIDE * 4,
  })
  for (const check of checks.filter(({ name }) => name.includes(remoteKills.what)))
    test(check.name, check.run, 300_000)
})

describe.skipIf(system === null)(
  'remote compare, held to the target contract: PostgreSQL of the system',
  () => {
    if (system === null) return
    const checks = targetContract({
      create: () => postgresRemotePlace(system),
      faults: [remoteCuts],
      faultStride: FAULT_STRIDE * 2,
      skip: SKIP,
    })
    for (const check of checks) test.skipIf(check.skip !== undefined)(check.name, check.run, 300_000)
  },
)
