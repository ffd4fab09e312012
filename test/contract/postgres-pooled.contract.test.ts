import { afterAll, describe, inject, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { type Bouncer, hasBouncer, startBouncer } from '../support/bouncer.ts'
import { connectionCuts, postgresPlace } from '../support/postgres-place.ts'

// Between Stet and the server stands a pooler that gives each transaction another connection, so that whatever a session
// keeps (a lock, a setting, a statement's name) is lost or in somebody else's hands.
describe.skipIf(!hasBouncer())('target contract: PostgreSQL behind PgBouncer (it needs pgbouncer)', () => {
  let started: Promise<Bouncer> | undefined
  const bouncer = () =>
    (started ??= startBouncer({ port: Number(new URL(inject('postgresUrl')).port), poolSize: 4 }))
  afterAll(async () => (await started)?.[Symbol.asyncDispose]())
  const checks = targetContract({
    create: async () => postgresPlace(inject('postgresUrl'), (await bouncer()).port),
    faults: [connectionCuts],
    faultStride: Number(process.env.STET_FAULT_STRIDE ?? 20),
  })
  for (const check of checks) test(check.name, check.run, 300_000)
})
