import { expect, test } from 'vitest'
import type { WriteStrategy } from '../src/model/write.ts'
import { postgres } from '../src/targets/postgres/index.ts'
import { connect, freshDatabase, postgresServers } from './support/databases.ts'
import { load, sliceNamed } from './support/postgres-target.ts'

const REPLACEMENTS = 300
const SLICE = sliceNamed('2026-08-07', 'd', 'day')
const COLUMNS = { k: 'text', d: 'date', v: 'text' }
/** Two contents of the slice, of different lengths, that are loaded in turn. */
const EVEN = ['a', 'b', 'c'].map((k) => [k, '2026-08-07', 'even'])
const ODD = ['a', 'b', 'c', 'd', 'e'].map((k) => [k, '2026-08-07', 'odd'])

/** What the readers have seen, and how often: `3 even`, `5 odd`, `0`. */
type Seen = Map<string, number>

const LOOK = `select coalesce(count(*) || ' ' || string_agg(distinct v, ','), count(*)::text) as saw
  from t where d = '2026-08-07'`

/** Looks again and again until told to stop; in a transaction of its own, after `first`. */
async function readOn(url: string, isolation: string, first: string, until: AbortSignal): Promise<Seen> {
  await using reader = await connect(url)
  const seen: Seen = new Map()
  while (!until.aborted) {
    await reader.client.query(`begin isolation level ${isolation}; ${first}`)
    for (let look = 0; look < 2; look++) {
      const { rows } = await reader.client.query<{ saw: string }>(LOOK)
      const saw = rows[0]?.saw ?? ''
      seen.set(saw, (seen.get(saw) ?? 0) + 1)
    }
    await reader.client.query('commit')
  }
  return seen
}

for (const { name, url: server } of postgresServers()) {
  for (const apply of ['diff', 'swap'] as const) {
    test(`readers see the old rows or the new ones through ${REPLACEMENTS} replacements by ${apply} (G3) (${name})`, {
      timeout: 600_000,
    }, async () => {
      const url = await freshDatabase(server)
      await using db = await connect(url)
      await db.client.query(`create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
        create table t6 partition of t for values from ('2026-08-06') to ('2026-08-07');
        create table t7 partition of t for values from ('2026-08-07') to ('2026-08-08')`)
      const target = postgres({ url })
      const write: WriteStrategy = {
        strategy: 'replace-partition',
        by: 'd',
        size: 'day',
        key: ['k', 'd'],
        apply,
      }
      const replace = async (rows: string[][]) =>
        load(target, { table: 't', write, columns: COLUMNS, slice: SLICE, rows })
      await replace(EVEN)
      const stop = new AbortController()
      const reading = Promise.all([
        readOn(url, 'read committed', 'select 1', stop.signal),
        readOn(url, 'repeatable read', 'select 1', stop.signal),
      ])
      for (let n = 1; n <= REPLACEMENTS; n++) await replace(n % 2 === 0 ? EVEN : ODD)
      stop.abort()
      const [committed, repeatable] = await reading
      const wanted = ['3 even', '5 odd']
      expect([...committed.keys()].sort()).toEqual(wanted)
      // PostgreSQL's own limit: a snapshot that is older than the exchange sees none of the new partition's rows.
      const also = apply === 'swap' ? ['0'] : []
      for (const saw of repeatable.keys()) expect([...wanted, ...also]).toContain(saw)
      expect((committed.get('3 even') ?? 0) + (committed.get('5 odd') ?? 0)).toBeGreaterThan(REPLACEMENTS)
      process.stdout.write(
        `${name}, ${apply}: ${JSON.stringify({ committed: [...committed], repeatable: [...repeatable] })}\n`,
      )
    })
  }
}
