import { execFile, spawnSync } from 'node:child_process'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import copy from 'pg-copy-streams'
import { describe, expect, test, vi } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { type ProxyOptions, startProxy, type WireProxy } from './proxy.ts'

const run = promisify(execFile)
const hasPsql = spawnSync('psql', ['--version']).status === 0

interface Bench extends AsyncDisposable {
  readonly proxy: WireProxy
  /** Past the proxy. */
  readonly direct: pg.Client
  count(): Promise<number>
}

/** A database with an empty table `t (id int, v text)` behind a proxy. */
async function bench(server: string, options: Partial<ProxyOptions> = {}): Promise<Bench> {
  const url = new URL(await freshDatabase(server))
  const direct = await connect(url.href)
  await direct.client.query('create table t (id int, v text)')
  const proxy = await startProxy({
    upstream: { host: url.hostname, port: Number(url.port) },
    database: url.pathname.slice(1),
    ...options,
  })
  return {
    proxy,
    direct: direct.client,
    count: async () => {
      const { rows } = await direct.client.query<{ n: string }>('select count(*) as n from t')
      return Number(rows[0]?.n)
    },
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]()
      await direct[Symbol.asyncDispose]()
    },
  }
}

describe.each(postgresServers())('$name', ({ url }) => {
  test('simple and extended statements arrive, and are recorded by their shape', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    await db.client.query("insert into t values (1, 'a')")
    await db.client.query('insert into t values ($1, $2)', [2, 'b'])
    await db.client.query({ name: 'named', text: 'insert into t values ($1)', values: [3] })
    await db.client.query({ name: 'named', text: 'insert into t values ($1)', values: [4] })
    await expect(db.client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    expect(await b.count()).toBe(4)
    // The server sends an error on its own, ahead of the end of the answer: the client may know before the unit is whole.
    await vi.waitUntil(() => b.proxy.units().at(-1)?.answer)
    expect(b.proxy.units().map(({ label, occurrence, answer }) => [label, occurrence, answer])).toEqual([
      ['insert into t values (?)', 1, { status: 'I', error: null, tags: ['INSERT 0 1'] }],
      ['insert into t values (?)', 2, { status: 'I', error: null, tags: ['INSERT 0 1'] }],
      ['insert into t values (?)', 3, { status: 'I', error: null, tags: ['INSERT 0 1'] }],
      ['insert into t values (?)', 4, { status: 'I', error: null, tags: ['INSERT 0 1'] }],
      ['select ? / ?', 1, { status: 'I', error: '22012', tags: [] }],
    ])
  })

  test('the signature of a statement includes its transaction', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    for (const sql of ['begin', 'insert into t values (1)', 'commit', 'insert into t values (2)']) {
      await db.client.query(sql)
    }
    const [, inside, commit, alone] = b.proxy.units()
    expect(inside?.label).toBe(alone?.label)
    expect(inside?.signature).not.toBe(alone?.signature)
    expect([inside?.transaction, commit?.transaction, alone?.transaction]).toEqual([1, 1, 4])
  })

  test('COPY in and out pass; the point of a COPY is its end', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const rows = Array.from({ length: 5000 }, (_, n) => `${n}\tx\n`)
    await pipeline(Readable.from(rows), db.client.query(copy.from('copy t from stdin')))
    expect(await text(db.client.query(copy.to('copy (select * from t order by id) to stdout')))).toBe(
      rows.join(''),
    )
    expect(b.proxy.units().map(({ answer }) => answer?.tags)).toEqual([['COPY 5000'], ['COPY 5000']])

    b.proxy.arm({ cut: 'before', at: (unit) => unit.label === 'copy t from stdin' })
    await expect(
      pipeline(Readable.from(rows), db.client.query(copy.from('copy t from stdin'))),
    ).rejects.toThrow()
    expect(await b.count()).toBe(5000)
  })

  test('a COPY whose answer is lost has happened', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const armed = b.proxy.arm({ cut: 'after', at: 1 })
    const loading = pipeline(Readable.from(['1\tx\n']), db.client.query(copy.from('copy t from stdin')))
    await expect(loading).rejects.toThrow()
    expect((await armed.fired).answer?.tags).toEqual(['COPY 1'])
    expect(await b.count()).toBe(1)
  })

  test('a COPY can be failed with any code', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    b.proxy.arm({ error: '40001', at: 1 })
    const loading = pipeline(Readable.from(['1\tx\n']), db.client.query(copy.from('copy t from stdin')))
    await expect(loading).rejects.toMatchObject({ code: '40001' })
    await db.client.query('insert into t values (2)')
    expect(await b.count()).toBe(1)
  })

  test('a connection cut before COMMIT leaves nothing', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    b.proxy.arm({ cut: 'before', at: (unit) => unit.label === 'commit' })
    await db.client.query('begin')
    await db.client.query('insert into t values (1)')
    await expect(db.client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/)
    expect(await b.count()).toBe(0)
  })

  test('a connection cut after COMMIT leaves the rows and a client that does not know', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const armed = b.proxy.arm({ cut: 'after', at: (unit) => unit.label === 'commit' })
    await db.client.query('begin')
    await db.client.query('insert into t values (1)')
    await expect(db.client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/)
    expect((await armed.fired).answer).toEqual({ status: 'I', error: null, tags: ['COMMIT'] })
    expect(await b.count()).toBe(1)
    await using again = await connect(b.proxy.url)
    expect((await again.client.query('select id from t')).rows).toEqual([{ id: 1 }])
  })

  test('an extended statement is cut the same way', async () => {
    await using b = await bench(url)
    for (const [cut, left] of [
      ['before', 0],
      ['after', 1],
    ] as const) {
      await using db = await connect(b.proxy.url)
      b.proxy.arm({ cut, at: 1 })
      await expect(db.client.query('insert into t values ($1)', [1])).rejects.toThrow()
      expect(await b.count()).toBe(left)
    }
  })

  test('a held statement waits before the server, a held answer behind it', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const before = b.proxy.arm({ hold: 'before', at: 1 })
    const first = db.client.query('insert into t values (1)')
    await before.fired
    expect(await b.count()).toBe(0)
    before.release()
    await first
    const after = b.proxy.arm({ hold: 'after', at: 1 })
    let isHeard = false
    const second = db.client
      .query<{ id: number }>('insert into t values (2) returning id')
      .then(({ rows }) => {
        isHeard = true
        return rows
      })
    await after.fired
    expect(await b.count()).toBe(2)
    expect(isHeard).toBe(false)
    after.release()
    expect(await second).toEqual([{ id: 2 }])
  })

  test.each(['40001', '40P01'])('error %s leaves the transaction as the server would', async (code) => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    b.proxy.arm({ error: code, at: (unit) => unit.label.startsWith('insert') })
    await db.client.query('begin')
    await expect(db.client.query('insert into t values ($1)', [1])).rejects.toMatchObject({ code })
    await expect(db.client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
    await db.client.query('rollback')

    b.proxy.arm({ error: code, at: (unit) => unit.label === 'commit' })
    await db.client.query('begin')
    await db.client.query('insert into t values (1)')
    await expect(db.client.query('commit')).rejects.toMatchObject({ code })
    await db.client.query('insert into t values (2)')
    expect((await b.direct.query('select id from t')).rows).toEqual([{ id: 2 }])
  })

  test('an error that ends the session ends it', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    b.proxy.arm({ error: '57P01', at: 2 })
    await db.client.query('begin')
    await expect(db.client.query('insert into t values (1)')).rejects.toMatchObject({ code: '57P01' })
    await expect(db.client.query('select 1')).rejects.toThrow()
    expect(await b.count()).toBe(0)
  })

  test('a connection is refused before it can say anything, and only that one', async () => {
    await using b = await bench(url)
    const refused = b.proxy.refuse(2, '53300')
    await using first = await connect(b.proxy.url)
    await expect(connect(b.proxy.url)).rejects.toMatchObject({ code: '53300' })
    await refused
    await using third = await connect(b.proxy.url)
    await first.client.query('insert into t values (1)')
    await third.client.query('insert into t values (2)')
    expect(await b.count()).toBe(2)
    expect(b.proxy.units().map((unit) => unit.connection)).toEqual([1, 3])
  })

  test('a pool of clients shares the proxy', async () => {
    await using b = await bench(url)
    const pool = new pg.Pool({ connectionString: b.proxy.url, max: 5 })
    await Promise.all(
      Array.from({ length: 50 }, (_, n) => pool.query('insert into t select $1, pg_backend_pid()', [n])),
    )
    await pool.end()
    expect(await b.count()).toBe(50)
    expect(b.proxy.units().length).toBe(50)
  })

  test('a cancel request reaches its statement', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const { rows } = await db.client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const sleeping = expect(db.client.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57014' })
    const isSleeping =
      "select 1 from pg_stat_activity where pid = $1 and state = 'active' and query like '%pg_sleep%'"
    while ((await b.direct.query(isSleeping, [rows[0]?.pid])).rowCount === 0);
    const { processID, secretKey } = db.client as unknown as { processID: number; secretKey: number }
    const other = new pg.Client(b.proxy.url) as unknown as {
      connection: {
        connect(port: number, host: string): void
        on(event: string, run: () => void): void
        cancel(processID: number, secretKey: number): void
      }
    }
    other.connection.on('connect', () => other.connection.cancel(processID, secretKey))
    other.connection.on('error', () => undefined)
    other.connection.connect(b.proxy.port, '127.0.0.1')
    await sleeping
  })

  test('a parameter of 30 MB passes both ways', async () => {
    await using b = await bench(url)
    await using db = await connect(b.proxy.url)
    const big = 'x'.repeat(30 * 1024 * 1024)
    const { rows } = await db.client.query<{ v: string }>('insert into t values (1, $1) returning v', [big])
    expect(rows[0]?.v.length).toBe(big.length)
    const { rows: found } = await b.direct.query<{ n: number }>('select length(v) as n from t')
    expect(found).toEqual([{ n: big.length }])
  })

  test('a client that insists on TLS gets it', async () => {
    await using b = await bench(url)
    const client = new pg.Client({ connectionString: b.proxy.url, ssl: { rejectUnauthorized: false } })
    client.on('error', () => undefined)
    await client.connect()
    await client.query('insert into t values (1)')
    b.proxy.arm({ cut: 'after', at: 1 })
    await expect(client.query('insert into t values (2)')).rejects.toThrow()
    expect(await b.count()).toBe(2)
  })

  test('a planted fault changes a statement, simple or extended', async () => {
    await using b = await bench(url, { rewrite: (sql) => sql.replace('values', 'values (0),') })
    await using db = await connect(b.proxy.url)
    await db.client.query('insert into t values (1)')
    await db.client.query('insert into t values ($1)', [2])
    expect(await b.count()).toBe(4)
  })

  test('an observer sees each answer before the client does', async () => {
    const order: string[] = []
    await using b = await bench(url, {
      onAnswer: async (unit) => {
        await new Promise((resolve) => setImmediate(resolve))
        order.push(`observed ${unit.answer?.status}`)
      },
    })
    await using db = await connect(b.proxy.url)
    await db.client.query('begin')
    order.push('client')
    await db.client.query('commit')
    order.push('client')
    expect(order).toEqual(['observed T', 'client', 'observed I', 'client'])
  })

  test.skipIf(!hasPsql)(
    'psql: script, COPY from its input, TLS required, exit status after a cut',
    async () => {
      await using b = await bench(url)
      const psql = (sslmode: string, input: string, ...args: string[]) => {
        const env = { ...process.env, PGSSLMODE: sslmode }
        const running = run('psql', ['-Xqv', 'ON_ERROR_STOP=1', ...args, b.proxy.url], { env })
        running.child.stdin?.end(input)
        return running
      }
      await psql('disable', 'begin;\ninsert into t values (1);\ncommit;\ncopy t from stdin;\n2\tx\n\\.\n')
      await psql('require', 'insert into t values (3);')
      await psql('prefer', '', '-1', '-c', 'insert into t values (4)', '-c', 'insert into t values (5)')
      expect(await b.count()).toBe(5)
      b.proxy.arm({ cut: 'after', at: 1 })
      await expect(psql('disable', 'insert into t values (6);')).rejects.toMatchObject({ code: 2 })
      expect(await b.count()).toBe(6)
      b.proxy.arm({ error: '40001', at: (unit) => unit.label === 'commit' })
      await expect(psql('disable', 'begin;\ninsert into t values (7);\ncommit;')).rejects.toMatchObject({
        code: 3,
      })
      expect(await b.count()).toBe(6)
    },
  )
})

test('disposing resets what is open and frees the port', async () => {
  const [server] = postgresServers()
  const b = await bench(server?.url ?? '')
  const db = await connect(b.proxy.url)
  const port = b.proxy.port
  await b.proxy[Symbol.asyncDispose]()
  await expect(db.client.query('select 1')).rejects.toThrow()
  await expect(connect(`postgres://postgres@127.0.0.1:${port}/x`)).rejects.toThrow('ECONNREFUSED')
  await b[Symbol.asyncDispose]()
})
