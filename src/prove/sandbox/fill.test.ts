import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { embeddedBinaries } from '../../../test/support/postgres-binaries.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { openGround } from './fence.ts'
import { type FillContext, fill } from './fill.ts'
import { findPrograms } from './programs.ts'

let cluster: Cluster
let folder: string
let context: FillContext

beforeAll(async () => {
  cluster = await startCluster(await embeddedBinaries(), openGround())
  folder = await mkdtemp(join(tmpdir(), 'stet-fill-'))
  // As on a machine that has the server from npm and no client programs.
  const programs = { ...(await embeddedBinaries()), psql: null, pgDump: null, pgRestore: null }
  context = { cluster, programs, folder, path: '' }
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

async function seed(sql: string): Promise<string> {
  const file = join(folder, 'seed.sql')
  await writeFile(file, sql)
  return fill({ kind: 'seed', file }, context)
}

test('a seed of statements needs no psql', async () => {
  const database = await seed("create table t (v text); insert into t values ('x'), ('y')")
  await using session = await cluster.open(database)
  expect(await session.query('select v from public.t order by 1')).toEqual([{ v: 'x' }, { v: 'y' }])
})

test('a seed with COPY data is refused without psql, and not half loaded', async () => {
  await expect(seed('create table t (v text);\ncopy t from stdin;\nx\n\\.\n')).rejects.toMatchObject({
    code: 'STET_CONFIG',
    hint: expect.stringContaining('postgresql-client'),
  })
})

test('an error in the seed is named', async () => {
  await expect(seed('insert into nowhere values (1)')).rejects.toThrow('"nowhere" does not exist')
})

test('a seed that is not there is named', async () => {
  await expect(fill({ kind: 'seed', file: join(folder, 'absent.sql') }, context)).rejects.toThrow(
    'absent.sql',
  )
})

test('copying a database needs pg_dump, and says so', async () => {
  const from = { kind: 'dump', url: 'postgres://x', only: [], exclude: [] } as const
  await expect(fill(from, context)).rejects.toThrow('pg_dump')
})

test('a folder without a server is no PostgreSQL', async () => {
  await expect(findPrograms('', folder)).rejects.toThrow(`Found no PostgreSQL server in ${folder}`)
})
