// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pieces of source text, placeholders included
import type { PlantedFault } from './plant.ts'

const POSTGRES = 'test/contract/postgres.contract.test.ts'
const REMOTE = 'test/contract/postgres-remote.contract.test.ts'
const DUCKDB = 'test/contract/duckdb.contract.test.ts'

/** Faults of the kinds that have doubled or lost data elsewhere; each must make the tests fail that are named. */
export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'no comparison',
    file: 'local/compare.ts',
    find: 'case when t.hit is null then ${VERDICT.insert}',
    replace: 'case when t.hit is null then ${VERDICT.insert} when true then ${VERDICT.update}',
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm the same rows again touch nothing',
  },
  {
    name: 'no order guard in the comparison',
    file: 'local/compare.ts',
    find: "newest === undefined || !rules.newestWins\n      ? 'false'",
    replace: "newest === undefined || rules.newestWins\n      ? 'false'",
    test: DUCKDB,
    caughtBy: 'a changed row is updated, a new one inserted, an older one left alone',
  },
  {
    name: 'no order guard in the write',
    file: 'targets/postgres/sql.ts',
    find: "if (newest === undefined || write.strategy !== 'upsert') return null",
    replace: "if (newest === undefined || write.strategy !== 'no such') return null",
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm a newer row that another writer puts between comparison and commit stays',
  },
  {
    name: 'another writer between comparison and commit is not looked for',
    file: 'targets/postgres/removal-sql.ts',
    find: 'return [place, ...owned, ...same].join',
    replace: 'return [place, ...owned].join',
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm a row that another writer refreshes is not deleted',
  },
  {
    name: 'record outside the transaction',
    file: 'targets/postgres/session.ts',
    find: 'const transaction = await finishRun(connection, record)',
    replace: "await connection.query('commit'); const transaction = await finishRun(connection, record)",
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm upsert, on an empty target: the connection cut anywhere',
  },
  {
    name: 'staging that outlives the attempt',
    file: 'targets/postgres/write-sql.ts',
    find: 'return `create temp table stet_existing',
    replace:
      'return `create table if not exists public.stet_stage (n bigint);\ncreate temp table stet_existing',
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm upsert, on a loaded target: the connection cut anywhere',
  },
  {
    name: 'no lease',
    file: 'targets/postgres/record/lease.ts',
    find: 'if (!free && !stale) return',
    replace: 'if (!free && !stale && name.slice === undefined) return',
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm several starts of one run at once end as one after the other',
  },
  {
    name: 'counts by remainder',
    file: 'pipeline/account.ts',
    find: 'unchanged: comparison.unchanged + applied.unchanged,\n    stale: comparison.stale + applied.stale,',
    replace:
      'unchanged: afterTransform - rejected - duplicate - applied.inserted - applied.updated,\n    stale: 0,',
    test: DUCKDB,
    caughtBy: 'a changed row is updated, a new one inserted, an older one left alone',
  },
  {
    name: 'a lost answer without looking for the attempt',
    file: 'targets/postgres/outcome.ts',
    find: "if (outcome === 'committed') return",
    replace: "if (outcome === 'committed' && attemptId === '') return",
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm upsert, on an empty target: the connection cut anywhere',
  },
  {
    name: 'comparison before dedupe',
    file: 'local/newest.ts',
    find: 'delete from ${table} where rowid in (${losers})',
    replace: 'delete from ${table} where rowid in (${losers}) and false',
    test: DUCKDB,
    caughtBy: 'a losing duplicate that differs is never written',
  },
  {
    name: 'comparison before dedupe, in the server',
    file: 'targets/postgres/remote/rows.ts',
    find: 'where v.rid = s.ctid and v.place > 1`',
    replace: 'where v.rid = s.ctid and v.place > 1 and false`',
    test: REMOTE,
    caughtBy: 'PostgreSQL from npm a losing duplicate that differs is never written',
  },
  {
    name: 'no order guard in the comparison in the server',
    file: 'targets/postgres/remote/compare-sql.ts',
    find: "when ${isStale} then 'stale'",
    replace: "when ${isStale} and false then 'stale'",
    test: REMOTE,
    caughtBy: 'PostgreSQL from npm a changed row is updated, a new one inserted, an older one left alone',
  },
  {
    name: 'a source that dies midway while the bulk stream ends cleanly',
    file: 'targets/postgres/push.ts',
    find: 'Promise.all([written, read])',
    replace: 'read',
    also: [
      {
        file: 'targets/postgres/apply.ts',
        find: 'requireSent(inserted, difference.inserts)',
        replace: 'requireSent(inserted, inserted)',
      },
      {
        file: 'pipeline/run.ts',
        find: 'checkEquation(counts)',
        replace: 'void checkEquation',
      },
    ],
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm a stream that breaks midway commits no short table',
  },
  {
    name: 'a failed DuckDB transaction whose COMMIT says nothing',
    file: 'targets/duckdb/session.ts',
    find: 'if ((await statusAtEnd(writer, catalogOf(file), record.attemptId)) !== record.status) {',
    replace:
      'if (failure !== null && (await statusAtEnd(writer, catalogOf(file), record.attemptId)) !== record.status) {',
    test: 'src/targets/duckdb/record.test.ts',
    caughtBy: '',
  },
  {
    name: 'a slice that also takes the first moment of the next one',
    file: 'local/slice.ts',
    find: '${order} < ${end(to)}, false)`\n}',
    replace: '${order} <= ${end(to)}, false)`\n}',
    test: DUCKDB,
    caughtBy: 'windows are half-open, in the zone that is named',
  },
  {
    name: 'a slice whose bounds nobody minds, neither when it is compared nor when it is written',
    file: 'pipeline/local-workplace.ts',
    find: 'if (replaced !== null) return',
    replace: "if (replaced !== null && replaced.name === '') return",
    also: [
      {
        file: 'targets/postgres/removal-sql.ts',
        find: 'return [place, ...owned, ...same].join',
        replace: 'return [place, ...same].join',
      },
    ],
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm a slice is replaced, and nothing else is touched',
  },
  {
    name: 'a watermark that goes to the greatest value there is, the clock or no',
    file: 'pipeline/keep-window.ts',
    find: 'window.to === null ? null : `${order} <=',
    replace: 'window.to !== null || window.to === null ? null : `${order} <=',
    test: DUCKDB,
    caughtBy: 'a row dated 2099 neither is read nor moves the watermark',
  },
  {
    name: 'a watermark that a backfill moves',
    file: 'pipeline/window.ts',
    find: 'moves: asked === undefined && slice === null,',
    replace: 'moves: true,',
    test: DUCKDB,
    caughtBy: 'a run that fails, a rerun and a backfill leave the watermark where it is',
  },
  {
    name: 'a watermark in a commit before the rows',
    file: 'targets/postgres/session.ts',
    find: 'const work = { connection, local, difference, notice }',
    replace:
      "await connection.query(`update stet.watermark set value = '6'; commit; begin`); const work = { connection, local, difference, notice }",
    test: POSTGRES,
    caughtBy: 'PostgreSQL from npm upsert by a cursor: the connection cut anywhere',
  },
  {
    name: 'a frozen slice that follows its source',
    file: 'pipeline/difference.ts',
    find: "if (frozen) return { existing: 'frozen'",
    replace: "if (frozen) return { existing: 'update'",
    test: DUCKDB,
    caughtBy: 'a frozen slice keeps what its first run wrote',
  },
  {
    name: 'a short extract that wipes the table',
    file: 'pipeline/guards.ts',
    find: 'net <= live * DELETES_SHARE) return',
    replace: 'net <= live) return',
    test: DUCKDB,
    caughtBy: 'a short extract takes away no more than a tenth',
  },
  {
    name: 'a swap that does not look whether somebody has written since',
    file: 'targets/postgres/swap.ts',
    find: 'if (now?.state !== state) throw refuse',
    replace: 'if (now?.state === state && state === "") throw refuse',
    test: 'test/postgres-swap.test.ts',
    caughtBy: 'what another transaction writes while the partition is built is not overwritten',
  },
]
