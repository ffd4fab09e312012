import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
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
