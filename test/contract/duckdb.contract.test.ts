import { describe, test } from 'vitest'
import { targetContract } from '../../src/testing/index.ts'
import { duckdbKills, duckdbPlace } from '../support/duckdb-place.ts'

const alone = 'a DuckDB file has one writing process, and it waits its turn: nobody can come in between'

describe('target contract: DuckDB', () => {
  const checks = targetContract({
    create: duckdbPlace,
    faults: [duckdbKills],
    skip: {
      'a newer row that another writer puts between comparison and commit stays': alone,
      'a row that another writer inserts between comparison and commit is met, not doubled': alone,
      'a watermark that a person sets back while a run reads stays where the person put it': alone,
      'a row that another writer refreshes is not deleted on the strength of an older look': alone,
    },
    faultStride: Number(process.env.STET_FAULT_STRIDE ?? 10),
  })
  for (const check of checks) {
    if (check.skip === undefined) test(check.name, check.run, 300_000)
    else test.skip(`${check.name} (${check.skip})`)
  }
})
