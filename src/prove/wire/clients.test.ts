import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { hasBouncer, startBouncer } from '../../../test/support/bouncer.ts'
import { connect, freshDatabase } from '../../../test/support/databases.ts'
import { framer, message } from './frames.ts'
import { startProxy, type WireProxy } from './proxy.ts'

const run = promisify(execFile)
const lacks = (module: string) => spawnSync('python', ['-c', `import ${module}`]).status !== 0

async function proxyTo(database: string): Promise<WireProxy> {
  const { hostname, port, pathname } = new URL(database)
  return startProxy({
    upstream: { host: hostname, port: Number(port) },
    database: pathname.slice(1),
    user: 'postgres',
  })
}

async function countOf(database: string): Promise<number> {
  await using db = await connect(database)
  return (await db.client.query('select 1 from t')).rowCount ?? 0
}

async function tableIn(): Promise<string> {
  const database = await freshDatabase(inject('postgresUrl'))
  await using db = await connect(database)
  await db.client.query('create table t (a int, b text)')
  return database
}

const PYTHON = {
  psycopg2: `
import io, sys, psycopg2, psycopg2.extras
db = psycopg2.connect(sys.argv[1]); cursor = db.cursor()
psycopg2.extras.execute_values(cursor, "insert into t values %s", [(n, "x") for n in range(500)]); db.commit()
cursor.copy_expert("copy t from stdin", io.StringIO("1\\tx\\n2\\ty\\n")); db.commit()`,
  psycopg: `
import sys, psycopg
with psycopg.connect(sys.argv[1]) as db:
    with db.pipeline():
        for n in range(200): db.execute("insert into t values (%s, %s)", (n, "x"))
    with db.cursor().copy("copy t from stdin") as copy:
        for n in range(302): copy.write_row((n, "x"))`,
  asyncpg: `
import asyncio, sys, asyncpg
async def main():
    db = await asyncpg.connect(sys.argv[1], ssl="require")
    await db.copy_records_to_table("t", records=[(n, "x") for n in range(452)])
    await db.executemany("insert into t values ($1, $2)", [(n, "x") for n in range(50)])
    await db.close()
asyncio.run(main())`,
}

for (const [module, script] of Object.entries(PYTHON)) {
  test.skipIf(lacks(module))(`${module} works unchanged (it needs python with ${module})`, async () => {
    const database = await tableIn()
    await using proxy = await proxyTo(database)
    await run('python', ['-c', script, proxy.url])
    expect(await countOf(database)).toBe(502)
    expect(proxy.units().filter((unit) => unit.answer === null)).toEqual([])
  })
}

const PGBENCH = '/usr/lib/postgresql/15/bin/pgbench'

test.skipIf(!existsSync(PGBENCH)).each(['simple', 'extended', 'prepared'])(
  'pgbench works unchanged, protocol %s (it needs Debian 15)',
  async (protocol) => {
    const database = await tableIn()
    await using proxy = await proxyTo(database)
    const place = ['-h', '127.0.0.1', '-p', String(proxy.port), '-U', 'postgres', 'any']
    await run(PGBENCH, ['-q', '-i', '-s', '1', ...place])
    const { stdout } = await run(PGBENCH, ['-n', '-M', protocol, '-c', '3', '-j', '2', '-t', '20', ...place])
    expect(stdout).toContain('number of transactions actually processed: 60/60')
    await using db = await connect(database)
    expect((await db.client.query('select count(*)::int as n from pgbench_history')).rows).toEqual([
      { n: 60 },
    ])
    const commits = proxy.units().filter((unit) => unit.label === 'end' && unit.answer?.status === 'I')
    expect(commits.length).toBe(60)
  },
)

test.skipIf(!hasBouncer())(
  'PgBouncer between client and proxy pools its transactions, and a lost answer reaches the client (it needs pgbouncer)',
  async () => {
    const database = await tableIn()
    await using proxy = await proxyTo(database)
    await using bouncer = await startBouncer({ port: proxy.port, poolSize: 1 })
    const clients = [0, 1, 2].map(
      () => new pg.Client({ host: '127.0.0.1', port: bouncer.port, user: 'postgres', database: 'any' }),
    )
    for (const client of clients) client.on('error', () => undefined)
    for (const client of clients) await client.connect()
    for (const client of clients) {
      await client.query('begin')
      await client.query('insert into t values ($1, $2)', [1, 'x'])
      await client.query('commit')
    }
    expect(await countOf(database)).toBe(3)
    // One pooled connection has served all three.
    expect(
      new Set(
        proxy
          .units()
          .filter(({ label }) => label === 'commit')
          .map((unit) => unit.connection),
      ).size,
    ).toBe(1)
    const [client] = clients
    const armed = proxy.arm({ cut: 'after', at: (unit) => unit.label.startsWith('insert') })
    await expect(client?.query("insert into t values (2, 'y')")).rejects.toThrow()
    await armed.fired
    expect(await countOf(database)).toBe(4)
    await Promise.allSettled(clients.map((one) => one.end()))
  },
)

const POSTGRES_JS = `
import postgres from 'postgres'
const sql = postgres(process.env.URL, { max: 2, onnotice: () => undefined })
await Promise.all(Array.from({ length: 200 }, (_, n) => sql\`insert into t values (\${n}, 'x')\`))
await sql.begin(async (tx) => { for (let n = 0; n < 100; n++) await tx\`insert into t values (\${n}, 'y')\` })
await sql\`insert into t \${sql(Array.from({ length: 200 }, (_, n) => ({ a: n, b: 'z' })))}\`
const copy = await sql\`copy t from stdin\`.writable()
await new Promise((resolve, reject) => copy.on('error', reject).on('finish', resolve).end('1\\tx\\n2\\ty\\n'))
let read = 0
await sql\`select * from t\`.cursor(100, (rows) => { read += rows.length })
if (read !== 502) throw new Error('read ' + read)
await sql.end()`

/** Not a dependency: its licence is none of those used here. `npm install --no-save postgres` brings it for this test. */
const hasPostgresJs = existsSync(new URL('../../../node_modules/postgres/package.json', import.meta.url))

test.skipIf(!hasPostgresJs)('postgres.js works unchanged, pipelined (it needs postgres)', async () => {
  const database = await tableIn()
  await using proxy = await proxyTo(database)
  const here = fileURLToPath(new URL('.', import.meta.url))
  await run('node', ['--input-type=module', '-e', POSTGRES_JS], {
    cwd: here,
    env: { ...process.env, URL: proxy.url },
  })
  expect(await countOf(database)).toBe(502)
  expect(proxy.units().filter((unit) => unit.answer === null)).toEqual([])
})

/** What drivers with an extended COPY send: the first Sync is swallowed by the copy mode, the second one answered. */
test.each([
  ['a Sync before the data', [message('S')]],
  ['a Flush before the data', [message('H')]],
])('an extended COPY is one unit: %s', async (_, early) => {
  const database = await tableIn()
  await using proxy = await proxyTo(database)
  const socket = connectSocket(proxy.port, '127.0.0.1')
  const frame = framer('ZGE')
  const seen: string[] = []
  let wake: () => void = () => undefined
  socket.on('data', (chunk: Buffer) => {
    for (const piece of frame(chunk)) if (piece.type !== '') seen.push(piece.type)
    wake()
  })
  const waitFor = async (types: string) => {
    while (seen.join('') !== types) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const startup = Buffer.from('\0\0\0\0\0\x03\0\0user\0postgres\0\0', 'latin1')
  startup.writeUInt32BE(startup.length)
  socket.write(startup)
  await waitFor('Z')
  const zero16 = Buffer.alloc(2)
  const parse = message('P', '', 'copy t from stdin', zero16)
  const bind = message('B', '', '', Buffer.alloc(6))
  const execute = message('E', '', Buffer.alloc(4))
  socket.write(Buffer.concat([parse, bind, execute, ...early]))
  await waitFor('ZG')
  socket.write(Buffer.concat([message('d', Buffer.from('1\tx\n')), message('c'), message('S')]))
  await waitFor('ZGZ')
  socket.write(message('Q', 'insert into t values (2)'))
  await waitFor('ZGZZ')
  expect(proxy.units().map(({ label, answer }) => [label, answer?.tags, answer?.status])).toEqual([
    ['copy t from stdin', ['COPY 1'], 'I'],
    ['insert into t values (?)', ['INSERT 0 1'], 'I'],
  ])
  socket.end(message('X'))
  await once(socket, 'close')
  expect(await countOf(database)).toBe(2)
})
