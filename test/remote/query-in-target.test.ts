import { connect as connectSocket, createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { StetError } from '../../src/errors.ts'
import { contractOf } from '../../src/pipeline/contract.ts'
import { definePipeline } from '../../src/pipeline/define.ts'
import { plan } from '../../src/pipeline/plan.ts'
import { run } from '../../src/pipeline/run.ts'
import type { DefinedPipeline, Pipeline } from '../../src/pipeline/types.ts'
import { identify, readCatalog } from '../../src/targets/postgres/catalog.ts'
import { openConnection } from '../../src/targets/postgres/connection.ts'
import { loadDriver } from '../../src/targets/postgres/driver.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { remoteCompare } from '../../src/targets/postgres/remote/index.ts'
import { connect, freshDatabase, postgresServers } from '../support/databases.ts'

/** A way to the server on which the bytes are counted, in both directions. */
async function countingRelay(
  url: string,
): Promise<AsyncDisposable & { readonly url: string; bytes(): number }> {
  const upstream = new URL(url)
  let bytes = 0
  const server = createServer((client) => {
    const socket = connectSocket(Number(upstream.port), upstream.hostname)
    for (const side of [client, socket]) {
      side.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      side.on('error', () => undefined)
    }
    client.pipe(socket)
    socket.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const relayed = new URL(url)
  relayed.host = `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  return {
    url: relayed.href,
    bytes: () => bytes,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
      }),
  }
}

function pipelineOf(url: string, query: string, more: Partial<Pipeline> = {}): DefinedPipeline {
  const db = postgres({ url })
  return definePipeline({
    name: 'own',
    source: db.query(query),
    target: db,
    table: 't',
    write: { strategy: 'upsert', key: ['id'] },
    ...more,
  } as Pipeline)
}

async function refusal(attempt: Promise<unknown> | (() => unknown)): Promise<StetError> {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt)
  } catch (error) {
    if (error instanceof StetError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe.each(postgresServers())('a query in the target: $name', ({ url: server }) => {
  test('no row leaves the server: 50,000 unchanged rows cost some kilobytes (G2)', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(
      `create schema raw; create table raw.orders as
       select n::text as id, n * 1.25 as amount, repeat('x', 100) as note from generate_series(1, 50000) as n`,
    )
    await using relay = await countingRelay(url)
    const pipeline = pipelineOf(relay.url, 'select * from raw.orders')
    expect((await run(pipeline)).counts).toMatchObject({ read: 50_000, inserted: 50_000 })
    const before = relay.bytes()
    expect((await run(pipeline)).counts).toMatchObject({ read: 50_000, unchanged: 50_000, inserted: 0 })
    expect(relay.bytes() - before).toBeLessThan(60_000)
  })

  test('a first load has the types of the query, and one of another type is read exactly or rejected (G9)', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(`create type mood as enum ('calm', 'wild')`)
    await run(
      pipelineOf(
        url,
        `select 1::bigint as id, 1.5::numeric(12,2) as amount, 'calm'::mood as mood, array[1, 2] as list, now() as at`,
        { keep: { updatedAt: false, contentHash: false } },
      ),
    )
    const types = await place.client.query<{ type: string }>(
      `select format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum`,
    )
    expect(types.rows.map(({ type }) => type)).toEqual([
      'bigint',
      'numeric(12,2)',
      'mood',
      'integer[]',
      'timestamp with time zone',
    ])

    await place.client.query(
      `create table narrow (id integer primary key, amount numeric(12,2), code varchar(3), at timestamp(0), small smallint,
                            day date, mood mood, doc json)`,
    )
    const rows = [
      `(1::bigint, 1.50::numeric, 'abc'::text, '2024-01-01 10:00:00'::timestamp, 7::bigint, '2024-01-01'::timestamp, 'calm', '{"b":1,"a":2}'::jsonb)`,
      `(2, 1.005, 'abc', null, 7, null, 'calm', null)`,
      `(3, 1e10, 'abc', null, 7, null, 'calm', null)`,
      `(4, 1, 'abcd', null, 7, null, 'calm', null)`,
      `(5, 1, 'abc', '2024-01-01 10:00:00.5', 7, null, 'calm', null)`,
      `(6, 1, 'abc', null, 32768, null, 'calm', null)`,
      `(7, 1, 'abc', null, 7, '2024-01-01 10:00', 'calm', null)`,
      `(8, 1, 'abc', null, 7, null, 'angry', null)`,
      `(2147483648, 1, 'abc', null, 7, null, 'wild', null)`,
    ]
    const query = `select * from (values ${rows.join(', ')}) as v (id, amount, code, at, small, day, mood, doc)`
    const error = await refusal(run(pipelineOf(url, query, { table: 'narrow' })))
    expect(error.code).toBe('STET_REJECTED')
    for (const part of [
      '8 rows were rejected',
      'amount "1.005" has 3 decimals, numeric(12,2) keeps 2',
      'amount "10000000000" is out of range of numeric(12,2)',
      'code "abcd" is longer than varchar(3)',
      'at "2024-01-01 10:00:00.5" has 1 fraction digit',
      'small "32768" is out of range of smallint',
      'day "2024-01-01 10:00:00" has a time of day',
      'mood "angry" is none that mood can hold',
      'id "2147483648" is out of range of integer',
    ]) {
      expect(error.message).toContain(part)
    }
    const allowed = await run(pipelineOf(url, query, { table: 'narrow', maxRejects: 8 }))
    expect(allowed.counts).toMatchObject({ read: 9, rejected: 8, inserted: 1 })
    const again = await run(pipelineOf(url, query, { table: 'narrow', maxRejects: 8 }))
    expect(again.counts).toMatchObject({ read: 9, rejected: 8, unchanged: 1 })
  })

  test('values that the target takes for equal are no change, and others are one, however alike', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(`create extension citext`)
    await place.client.query(
      `create table t (id integer primary key, name citext, doc jsonb, ratio double precision, span interval, free numeric)`,
    )
    const of = (values: string) =>
      pipelineOf(url, `select * from (values (1, ${values})) as v (id, name, doc, ratio, span, free)`)
    await run(of(`'abc'::citext, '{"a": 1.0}'::jsonb, 0::float8, '1 mon'::interval, 1.50`))
    const counts = async (values: string) => {
      const { unchanged, updated } = (await run(of(values))).counts
      return { unchanged, updated }
    }
    // Spelled otherwise, the same value.
    expect(await counts(`'abc'::citext, '{"a": 1}'::jsonb, '-0'::float8, '1 mon'::interval, 1.5`)).toEqual({
      unchanged: 1,
      updated: 0,
    })
    expect(await counts(`'ABC'::citext, '{"a": 1}'::jsonb, 0::float8, '1 mon'::interval, 1.5`)).toEqual({
      unchanged: 0,
      updated: 1,
    })
    expect(await counts(`'ABC'::citext, '{"a": 1}'::jsonb, 0::float8, '30 days'::interval, 1.5`)).toEqual({
      unchanged: 0,
      updated: 1,
    })
  })

  test('the query may only read, is one statement, and leaves nothing in the session', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(`
      create table audit (id integer);
      create function noting() returns integer language sql as 'insert into audit values (1) returning id'`)
    const writing = await refusal(run(pipelineOf(url, 'select noting() as id')))
    expect(writing.code).toBe('STET_SOURCE')
    expect(writing.message).toContain('read-only transaction')
    expect((await place.client.query('select * from audit')).rows).toEqual([])

    const two = await refusal(run(pipelineOf(url, 'select 1 as id) as q; drop table audit; --')))
    expect(two.code).toBe('STET_SOURCE')
    const twins = await refusal(run(pipelineOf(url, 'select 1 as id, 2 as id')))
    expect(twins.code).toBe('STET_COLUMNS')
    const missing = await refusal(run(pipelineOf(url, 'select id from nowhere')))
    expect(missing.message).toContain('relation "nowhere" does not exist')
    const broken = await refusal(
      run(pipelineOf(url, 'select 1 / (id - 1) as id from generate_series(1, 2) as id')),
    )
    expect(broken.code).toBe('STET_SOURCE')
    expect(await place.client.query(`select to_regclass('audit') is not null as there`)).toMatchObject({
      rows: [{ there: true }],
    })

    // A semicolon at the end, and a comment, are no second statement.
    expect((await run(pipelineOf(url, 'select 1 as id ; '))).counts.inserted).toBe(1)
    expect((await run(pipelineOf(url, 'select 1 as id -- one'))).counts.unchanged).toBe(1)
  })

  test('a session that goes on, as behind a pooler, keeps nothing of it', async () => {
    const url = await freshDatabase(server)
    await using connection = await openConnection(await loadDriver(), { connectionString: url })
    await connection.query('create table dated (id integer primary key, day date)')
    const identity = await identify(connection, { schema: null, table: 'dated' })
    const table = await readCatalog(connection, identity, { counting: false })
    const write = { strategy: 'upsert', key: ['id'] } as const
    const remote = remoteCompare({
      connection,
      identity,
      write,
      table: () => table,
      doing: (_, work) => work(),
      openTransaction: async () => void (await connection.query('begin')),
      undo: async () => void (await connection.query('rollback')),
    })
    const query = `select 1 as id, '2024-01-01'::text as day`
    await remote.fields(query)
    const types = [
      { name: 'id', type: { kind: 'integer' }, origin: 'target' },
      { name: 'day', type: { kind: 'date' }, origin: 'target' },
    ] as const
    const contract = contractOf(types, write, undefined, null, () => undefined)
    const keep = { updatedAt: null, contentHash: null, gone: null }
    const rules = {
      nullKeys: 'reject',
      normalizeKey: undefined,
      keepRejects: undefined,
      narrowing: { window: null, slice: null },
    } as const
    expect(await remote.land(query, { ...contract, keep }, rules)).toMatchObject({ read: 1, rejected: 0 })
    expect(await remote.keepNewest()).toBe(0)
    const compared = await remote.compare(
      { existing: 'update', newestWins: true, missing: 'keep', frozen: false },
      { slice: null, countsLive: true },
    )
    expect(compared.difference.inserts).toBe(1)
    await connection.query('commit')
    const left = await connection.query(`
      select proname as name from pg_proc where proname like 'stet%'
       union all
      select relname from pg_class where relname like 'stet%'
       union all
      select name from pg_settings where name = 'work_mem' and source = 'session'`)
    expect(left).toEqual([])
  })

  test('what a cursor has passed is not asked for, and the watermark moves with the rows (G4)', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(`
      create table raw (id integer, at timestamptz);
      insert into raw values (1, now() - interval '3 days'), (2, now() - interval '2 days'), (3, now() + interval '1 year')`)
    const pipeline = pipelineOf(url, 'select id, at from raw', {
      incremental: { cursor: 'at', grace: '1h' },
    } as Partial<Pipeline>)
    expect((await run(pipeline)).counts).toMatchObject({ read: 2, outside: 0, inserted: 2 })
    await place.client.query(`insert into raw values (4, now() - interval '1 day')`)
    const second = await run(pipeline)
    expect(second.counts).toMatchObject({ read: 2, outside: 0, unchanged: 1, inserted: 1 })
    const { rows } = await place.client
      .query<{ value: string; at: string }>(`set timezone = 'UTC'; select 1`)
      .then(() => place.client.query(`select value, (select max(at)::text from t) as at from stet.watermark`))
    expect(rows[0]?.value).toBe(rows[0]?.at)
    const wrong = await refusal(run(pipeline, { window: { from: 'soon', to: null } }))
    expect(wrong.code).toBe('STET_USAGE')
  })

  test('a plan shows the change, writes nothing, and prints no COPY', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(
      `create table t (id integer primary key, note text); insert into t values (1, 'old'), (2, 'same')`,
    )
    const planned = await plan(
      pipelineOf(url, `select * from (values (1, 'new'), (2, 'same'), (3, 'more')) as v (id, note)`),
    )
    expect(planned.counts).toMatchObject({ inserted: 1, updated: 1, unchanged: 1 })
    expect(planned.rows).toEqual({ before: 2, after: 3 })
    expect(planned.samples).toEqual([
      { op: 'update', key: { id: '1' }, changes: [{ column: 'note', from: 'old', to: 'new' }] },
      { op: 'insert', key: { id: '3' }, changes: [{ column: 'note', from: null, to: 'more' }] },
    ])
    const statements = planned.statements.join('\n')
    expect(statements).not.toMatch(/copy .* from stdin/)
    expect(statements).toContain('stet_stage')
    expect((await place.client.query('select note from t where id = 1')).rows).toEqual([{ note: 'old' }])
    expect((await place.client.query(`select to_regnamespace('stet') as record`)).rows).toEqual([
      { record: null },
    ])
  })

  test('what cannot be done inside the server is refused by name', async () => {
    const url = await freshDatabase(server)
    const transform = await refusal(() =>
      pipelineOf(url, 'select 1 as id', { transform: { row: (row) => row } }),
    )
    expect(transform.message).toContain('never leave it')
    const other = postgres({ url: await freshDatabase(server) })
    const elsewhere = await refusal(() => pipelineOf(url, 'select 1 as id', { target: other }))
    expect(elsewhere.message).toContain('another target')
    const swap = await refusal(() =>
      pipelineOf(url, 'select 1 as id', {
        write: { strategy: 'replace-partition', by: 'id', size: 'value', apply: 'swap' },
      }),
    )
    expect(swap.message).toContain('write.apply is "swap"')
  })
})
