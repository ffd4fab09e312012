import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Progress } from '../../model/progress.ts'
import type { OpenSource, SourceContext } from '../../model/source.ts'
import { loadDriver } from './driver.ts'
import { describeQuery } from './fields.ts'
import { postgres } from './index.ts'
import { pullRows } from './pull.ts'
import { openSession } from './session.ts'

let engine: LocalEngine

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())

function contextOf(overrides: Partial<SourceContext> = {}): SourceContext {
  return {
    local: engine,
    cwd: '/',
    signal: new AbortController().signal,
    progress: () => undefined,
    ...overrides,
  }
}

async function valuesOf(open: OpenSource, wanted = open.fields.map(({ name }) => name)) {
  const [part] = open.parts
  if (part === undefined) throw new Error('no part')
  const result = await engine.duckdb.runAndReadAll(part.select(wanted))
  return result.getRows()
}

async function read(url: string, query: string) {
  await using open = await postgres({ url, query }).open(contextOf())
  return await valuesOf(open)
}

/** Nothing of a read may stay behind: no table, no file. */
async function expectNothingLeft() {
  expect(await engine.count(`select count(*) from duckdb_tables()`)).toBe(0)
  expect((await readdir(engine.directory)).filter((name) => name.endsWith('.csv'))).toEqual([])
}

describe.each(postgresServers())('a query at $name', ({ url: server }) => {
  let url: string

  beforeAll(async () => {
    url = await freshDatabase(server)
  })

  test('gives every value as the text that the server prints, with its type', async () => {
    await using db = await connect(url)
    await db.client.query(`create type mood as enum ('well', 'ill')`)
    const columns = [
      ['smallint', '-32768'],
      ['bigint', '9223372036854775807'],
      ['numeric', '12345678901234567890.123456789012345678901234567890'],
      ['numeric(12,2)', '1.50'],
      ['numeric', 'NaN'],
      ['real', '0.1'],
      ['double precision', '1e-320'],
      ['double precision', '-0'],
      ['double precision', 'NaN'],
      ['double precision', '-Infinity'],
      ['boolean', 'true'],
      ['boolean', 'false'],
      ['date', '0044-03-15 BC'],
      ['date', 'infinity'],
      ['timestamp', '12000-01-02 03:04:05.123456'],
      ['timestamptz', '2024-06-01 10:00:00.5+00'],
      ['time', '24:00:00'],
      ['interval', '1 mon -2 days +03:00:00'],
      ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
      ['json', '{"b":1,  "a":1.0}'],
      ['jsonb', '{"a": 1.0, "b": 1}'],
      ['bytea', '\\xff006162'],
      ['text[]', '{a,"b c",NULL,""}'],
      ['char(5)', 'ab   '],
      ['varchar(10)', 'ab '],
      ['inet', '10.0.0.1'],
      ['int4range', '[1,5)'],
      ['money', '$1,234.50'],
    ] as const
    const values = columns.map(([type, text], i) => `'${text}'::${type} as "v${i}"`)
    await using open = await postgres({
      url,
      query: `select ${values.join(', ')}, 'well'::mood as mood, 'x'::name as name`,
    }).open(contextOf())
    expect(await valuesOf(open)).toEqual([[...columns.map(([, text]) => text), 'well', 'x']])
    // An enum is the source database's own, and `name` would cut: both go on as text.
    expect(open.fields.map(({ type }) => type && formatColumnType(type))).toEqual([
      ...columns.map(([type]) => type),
      'text',
      'text',
    ])
  })

  test('keeps apart NULL, an empty string, and what CSV readers stumble over', async () => {
    const hard = ['\ufefflead', '', '\\.', '\\N', '\r', '\n', '\r\n', '"', 'a"b"c', 'a,b', ' x ', '#', 'NULL']
    await using db = await connect(url)
    await db.client.query('create table hard (n int, v text)')
    for (const [i, text] of hard.entries())
      await db.client.query('insert into hard values ($1, $2)', [i, text])
    await db.client.query(`insert into hard values (${hard.length}, null)`)
    const expected = [...hard, null].map((v) => v && Buffer.from(v, 'utf8').toString('hex').toUpperCase())
    for (const select of ['v', 'v, n', 'n, v']) {
      await using open = await postgres({ url, query: `select ${select} from hard order by n` }).open(
        contextOf(),
      )
      // In hex, because the driver takes a byte order mark off every text that it hands out.
      const bytes = await engine.duckdb.runAndReadAll(`select hex(c0) from (${open.parts[0]?.select(['v'])})`)
      expect(bytes.getRows().flat()).toEqual(expected)
    }
  })

  test('may give rows of nothing but NULL, and no rows at all', async () => {
    expect(await read(url, 'select null::text as a from generate_series(1, 3)')).toEqual([
      [null],
      [null],
      [null],
    ])
    expect(await read(url, 'select null::int as a from generate_series(1, 3)')).toEqual([
      [null],
      [null],
      [null],
    ])
    expect(await read(url, 'select null::int as a, null::text as b')).toEqual([[null, null]])
    expect(await read(url, 'select 1 as a where false')).toEqual([])
  })

  test('may give values far over 2 MB', async () => {
    const rows = await read(
      url,
      `select n, case when n = 2 then repeat(E'a"\\n', 3000000) else 'short' end as v from generate_series(1, 3) n`,
    )
    expect(rows).toEqual([
      ['1', 'short'],
      ['2', 'a"\n'.repeat(3_000_000)],
      ['3', 'short'],
    ])
  })

  test('is whole and in order when it is read by way of many files', async () => {
    await using session = await openSession(await loadDriver(), url, new AbortController().signal)
    const query = `select n, case n % 3 when 0 then null when 1 then '' else E'line\\n"' || n end as v
                     from generate_series(1, 200000) n`
    const fields = await describeQuery(session, query)
    const steps: Progress[] = []
    const table = await pullRows({
      session,
      local: engine,
      query,
      fields,
      signal: new AbortController().signal,
      progress: (step) => steps.push(step),
      fileBytes: 100_000,
    })
    const wrong = await engine.count(
      `select count(*)
         from (select row_number() over () as n, f0, f1 from ${table})
        where f0 <> n::varchar
           or f1 is distinct from case n % 3 when 0 then null when 1 then '' else 'line' || chr(10) || '"' || n end`,
    )
    expect(wrong).toBe(0)
    expect(await engine.count(`select count(*) from ${table}`)).toBe(200_000)
    expect(steps.at(-1)).toMatchObject({ phase: 'reading', rows: 200_000 })
    await engine.run(`drop table ${table}`)
    await expectNothingLeft()
  })

  test('keeps values that look like CSV themselves, in files of many megabytes', async () => {
    // Long enough for DuckDB to share the file out among threads, each of which has to find a record's beginning.
    const value = `repeat(n || E',x\\n"",1,"' || n || E'"\\n', 1 + n * 7919 % 400)`
    const expected = `repeat(n || ',x' || chr(10) || '"",1,"' || n || '"' || chr(10), 1 + n * 7919 % 400)`
    await using open = await postgres({
      url,
      query: `select n, ${value} as v from generate_series(1, 20000) n`,
    }).open(contextOf())
    const wrong = await engine.count(
      `select count(*)
         from (${open.parts[0]?.select(['n', 'v'])}) as q
        where c1 is distinct from (select ${expected} from (select c0::bigint as n))`,
    )
    expect(wrong).toBe(0)
    expect(await engine.count(`select count(*) from (${open.parts[0]?.select(['n'])})`)).toBe(20_000)
  })

  test('sees one moment of the database, and may end in a comment or a semicolon', async () => {
    expect(await read(url, 'select 1 as a -- the only one')).toEqual([['1']])
    expect(await read(url, 'with q as (values (1), (2)) select * from q as t(a) order by a desc ; ')).toEqual(
      [['2'], ['1']],
    )
    expect(await read(url, 'values (1)')).toEqual([['1']])
    expect(
      await read(
        url,
        `select current_setting('transaction_isolation') as a, current_setting('transaction_read_only') as b`,
      ),
    ).toEqual([['repeatable read', 'on']])
  })

  test('is read alike whatever the role has set (LOCAL-COMPARE rule 7)', async () => {
    await using db = await connect(url)
    await db.client.query('drop role if exists odd')
    await db.client.query('create role odd login')
    for (const setting of [
      `datestyle = 'SQL, DMY'`,
      `intervalstyle = 'iso_8601'`,
      `timezone = 'Asia/Tokyo'`,
      `extra_float_digits = -10`,
      `bytea_output = 'escape'`,
      `client_encoding = 'LATIN1'`,
      `statement_timeout = '50ms'`,
    ])
      await db.client.query(`alter role odd set ${setting}`)
    const odd = new URL(url)
    odd.username = 'odd'
    expect(
      await read(
        odd.href,
        `select '2024-02-01'::date as a, '1 mon'::interval as b, '2024-02-01 10:00+00'::timestamptz as c,
                0.1::float8 as d, '\\xff61'::bytea as e, 'é€' as f, pg_sleep(0.1)::text as g`,
      ),
    ).toEqual([['2024-02-01', '1 mon', '2024-02-01 10:00:00+00', '0.1', '\\xff61', 'é€', '']])
  })

  test('fails where row-level security would hide rows (G10)', async () => {
    await using db = await connect(url)
    await db.client.query('drop role if exists tenant')
    await db.client.query(`
      create table secured (n int);
      insert into secured values (1), (2);
      alter table secured enable row level security;
      create policy half on secured using (n = 1);
      create role tenant login;
      grant select on secured to tenant`)
    const tenant = new URL(url)
    tenant.username = 'tenant'
    await expect(read(tenant.href, 'select * from secured')).rejects.toMatchObject({
      code: 'STET_PRIVILEGE',
      hint: expect.stringContaining('BYPASSRLS'),
    })
    await db.client.query('drop table secured; drop role tenant')
  })

  test('is refused when its columns are none, or two of one name', async () => {
    await expect(read(url, 'select from pg_class')).rejects.toMatchObject({
      code: 'STET_COLUMNS',
      message: 'Cannot read the query: it gives no columns',
    })
    await expect(read(url, 'select 1 as a, 2 as b, 3 as a')).rejects.toMatchObject({
      code: 'STET_COLUMNS',
      message: 'Cannot read the query: it gives two columns "a"',
    })
    expect(await read(url, 'select 1 as a, 2 as "A"')).toEqual([['1', '2']])
  })

  test.each([
    ['a syntax error', 'selct 1', '42601'],
    ['a table that is not there', 'select * from nowhere', '42P01'],
    ['two statements', 'select 1 as a; select 2', '42601'],
    ['a bracket that closes ours', 'select 1) as q; drop table hard; select * from (select 1', '42601'],
    ['a statement that writes', `select nextval('s')`, '25006'],
  ])('is refused for %s', async (_, query, sqlstate) => {
    await using db = await connect(url)
    await db.client.query('create sequence if not exists s')
    await expect(read(url, query)).rejects.toMatchObject({ code: 'STET_SOURCE', details: { sqlstate } })
    await expectNothingLeft()
  })

  test('that fails at row 700,000 gives no rows, not a short table', async () => {
    await expect(
      read(url, 'select n, 1 / (700000 - n) as v from generate_series(1, 1000000) n'),
    ).rejects.toMatchObject({ code: 'STET_SOURCE', message: 'Cannot read the query: division by zero' })
    await expectNothingLeft()
  })

  test('of which fewer rows arrive than the server counts gives none', async () => {
    await using session = await openSession(await loadDriver(), url, new AbortController().signal)
    const query = 'select n from generate_series(1, 3) n'
    const fields = await describeQuery(session, query)
    const cut = (sql: string) => {
      const whole = session.copyTo(sql)
      const short = whole.map((chunk: Buffer) => chunk.subarray(0, 4))
      return Object.defineProperty(short, 'rowCount', { get: () => whole.rowCount })
    }
    await expect(
      pullRows({
        ...contextOf(),
        session: { ...session, copyTo: cut as typeof session.copyTo },
        query,
        fields,
      }),
    ).rejects.toThrow('PostgreSQL counts 3 rows, 2 came, 2 were read')
    await expectNothingLeft()
  })

  test('whose backend is killed gives no rows, and may be tried again', async () => {
    await using db = await connect(url)
    let killed: Promise<unknown> | undefined
    const progress = ({ rows = 0 }: Progress) => {
      if (rows > 100_000)
        killed ??= db.client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where query like 'copy (select %killed%'`,
        )
    }
    const source = postgres({ url, query: 'select n as killed from generate_series(1, 30000000) n' })
    await expect(source.open(contextOf({ progress }))).rejects.toMatchObject({
      code: 'STET_CONNECTION',
      retryable: true,
    })
    await killed
    await expectNothingLeft()
  })

  test('ends at the server when the signal fires', async () => {
    await using db = await connect(url)
    const states = async () => {
      const { rows } = await db.client.query<{ wait_event: string | null }>(
        `select wait_event from pg_stat_activity where query like '%aborted%' and pid <> pg_backend_pid()`,
      )
      return rows.map((row) => row.wait_event)
    }
    const stop = new AbortController()
    // Some rows, then silence: the server writes nothing that could show it that its client is gone.
    const query = `select case when n > 30000 then pg_sleep(600)::text end as aborted from generate_series(1, 40000) n`
    const opening = postgres({ url, query }).open(contextOf({ signal: stop.signal }))
    const outcome = expect(opening).rejects.toThrow('stopped by hand')
    await expect.poll(states).toEqual(['PgSleep'])
    stop.abort(new Error('stopped by hand'))
    await outcome
    await expect.poll(states).toEqual([])
    await expectNothingLeft()
  })

  test('that waits for a lock ends when the signal fires', async () => {
    await using db = await connect(url)
    await db.client.query('create table if not exists locked (n int)')
    await db.client.query('begin; lock table locked')
    const stop = new AbortController()
    const opening = postgres({ url, query: 'select n from locked' }).open(contextOf({ signal: stop.signal }))
    const outcome = expect(opening).rejects.toThrow('stopped by hand')
    await using watcher = await connect(url)
    await expect
      .poll(async () => (await watcher.client.query('select 1 from pg_locks where not granted')).rowCount)
      .toBe(1)
    stop.abort(new Error('stopped by hand'))
    await outcome
    await db.client.query('rollback')
  })

  test('says where a row stands by its number', async () => {
    await using open = await postgres({
      url,
      query: `select n, null::text as v from generate_series(1, 5) n`,
    }).open(contextOf())
    expect(await open.parts[0]?.locate([2, 5])).toEqual([
      { line: 2, raw: '{"n":"2","v":null}' },
      { line: 5, raw: '{"n":"5","v":null}' },
    ])
    expect(await valuesOf(open, ['v', 'n', 'n'])).toHaveLength(5)
  })
})

describe('a server', () => {
  test('that does not answer is worth another try', async () => {
    await expect(read('postgres://u:geheim@127.0.0.1:1/d', 'select 1')).rejects.toMatchObject({
      code: 'STET_CONNECTION',
      retryable: true,
    })
  })

  test('without the database named is not', async () => {
    const [server] = postgresServers()
    const url = new URL(server?.url ?? '')
    url.pathname = '/nowhere'
    await expect(read(url.href, 'select 1')).rejects.toMatchObject({ code: 'STET_CONFIG', retryable: false })
  })

  test.each([
    'postgres://u:geheim@127.0.0.1:1/d',
    'postgres://u:geheim@[bad/d',
    'postgres://u:geheim@127.0.0.1:99999/d',
    'postgres://u:ge heim#geheim@host.invalid/d?x=%',
  ])('never has its password shown: %s', async (url) => {
    const source = postgres({ url, query: 'select 1' })
    expect(source.description).not.toMatch(/heim|u:/)
    const error: unknown = await source.open(contextOf()).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'StetError' })
    const { inspect } = await import('node:util')
    expect(inspect(error, { depth: 10 })).not.toContain('heim')
  })

  test('without its driver installed is asked for by name', async () => {
    const missing = 'a-package-that-nobody-has'
    await expect(loadDriver(() => import(missing))).rejects.toMatchObject({
      code: 'STET_DRIVER_MISSING',
      hint: 'Run: npm install pg pg-copy-streams',
    })
  })
})
