import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  openTestSession,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import { lookAtFile } from './file.ts'
import { duckdb } from './index.ts'

const UPSERT = { strategy: 'upsert', key: ['id'] } as const
const CONTRACT = contractOf({ id: 'text' }, ['id'])

/** What a run and a plan say to a file, and whether it is then as it was. */
async function refusalOf(file: string): Promise<unknown[]> {
  const refusals: unknown[] = []
  for (const mode of ['plan', 'run'] as const) {
    try {
      await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, {
        mode,
        lockTimeoutMs: 1_000,
      })
      if (mode === 'run') await opened.session.acquire(startOf())
    } catch (error) {
      refusals.push(error)
    }
  }
  return refusals
}

test.each([
  ['a small CSV file', 'orders.csv', 'id,amount\n1,2.50\n'],
  ['an empty file', 'empty.duckdb', ''],
  ['a file shorter than a header', 'short.duckdb', 'DUCK'],
  ['a file of another database', 'other.sqlite', `SQLite format 3\0${'x'.repeat(20_000)}`],
])('%s is refused by name and left as it was', async (_, name, content) => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, name)
  await writeFile(file, content)
  const refusals = await refusalOf(file)
  expect(refusals).toHaveLength(2)
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining(`${name}: it is not a DuckDB database`),
    })
  }
  expect(await readFile(file, 'utf8')).toBe(content)
  expect(await readdir(folder.path)).toEqual([name])
})

test('a folder, a file in a folder that is not there, and a database in memory are refused by name', async () => {
  await using folder = await temporaryFolder()
  for (const refusal of await refusalOf(folder.path)) {
    expect(refusal).toMatchObject({ code: 'STET_CONFIG', message: expect.stringContaining('a folder') })
  }
  for (const refusal of await refusalOf(join(folder.path, 'no', 'x.duckdb'))) {
    expect(refusal).toMatchObject({ code: 'STET_CONFIG', hint: `Run: mkdir -p ${join(folder.path, 'no')}` })
  }
  for (const refusal of await refusalOf(':memory:')) expect(refusal).toMatchObject({ code: 'STET_CONFIG' })
  expect(await readdir(folder.path)).toEqual([])
})

test('a file that a newer DuckDB has written is refused as one', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  const bytes = await readFile(file)
  bytes.writeBigUInt64LE(999n, 12)
  bytes.writeBigUInt64LE(headerChecksum(bytes), 0)
  await writeFile(file, bytes)
  const refusals = await refusalOf(file)
  expect(refusals).toHaveLength(2)
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining('another age'),
    })
  }
})

test('a damaged file is refused by name', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(file, 'create table t(id varchar)')
  const bytes = await readFile(file)
  await writeFile(file, bytes.subarray(0, 9_000))
  for (const refusal of await refusalOf(file)) {
    expect(refusal).toMatchObject({ code: 'STET_CONFIG', message: expect.stringContaining('x.duckdb') })
  }
})

test('opening and planning write nothing: no file is made, an existing one stays as it was', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  {
    await using plan = await openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan' })
    expect(await plan.session.describe()).toBeNull()
    await plan.session.prepare(CONTRACT)
    await plan.session.begin()
    await using run = await openTestSession(duckdb({ file }), 't', UPSERT)
    expect(run.notices).toEqual([])
  }
  expect(await readdir(folder.path)).toEqual([])
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('insert', 'a', null, null)`])
  const before = await readFile(file)
  {
    await using plan = await openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan' })
    await plan.session.describe()
    await plan.session.prepare(CONTRACT)
    await plan.session.begin()
    expect((await plan.session.rowsInScope(CONTRACT, { kind: 'table' })).rows).toBe(1)
  }
  expect((await readFile(file)).equals(before)).toBe(true)
  expect(await readdir(folder.path)).toEqual(['x.duckdb'])
})

test('a file is one file by whatever path it is named', async () => {
  await using folder = await temporaryFolder()
  await mkdir(join(folder.path, 'real'))
  await symlink(join(folder.path, 'real'), join(folder.path, 'link'))
  const direct = join(folder.path, 'real', 'x.duckdb')
  const linked = join(folder.path, 'link', 'x.duckdb')
  await using first = await openTestSession(duckdb({ file: linked }), 't', UPSERT)
  await first.session.acquire(startOf())
  await using second = await openTestSession(duckdb({ file: direct }), 't', UPSERT, { lockTimeoutMs: 50 })
  await expect(second.session.acquire(startOf())).rejects.toMatchObject({ code: 'STET_LOCKED' })
})

test('the file stays small over thirty unchanged reruns', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const rows = Array.from({ length: 1_000 }, (_, position) => `('insert', 'k${position}', null, null)`)
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, rows)
  await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('insert', 'last', null, null)`])
  const before = (await stat(file)).size
  for (let rerun = 0; rerun < 30; rerun++) {
    await writeByHand(duckdb({ file }), 't', UPSERT, CONTRACT, [`('none', null::varchar, null, null)`])
  }
  expect((await stat(file)).size - before).toBeLessThan(512 * 1024)
  expect(await readdir(folder.path)).toEqual(['x.duckdb'])
})

test('what stands at a path is told apart', async () => {
  await using folder = await temporaryFolder()
  expect(await lookAtFile(join(folder.path, 'x'), 'x')).toBe('missing')
  await writeFile(join(folder.path, 'x'), '')
  expect(await lookAtFile(join(folder.path, 'x'), 'x')).toBe('empty')
  await byHand(join(folder.path, 'y'), 'select 1')
  expect(await lookAtFile(join(folder.path, 'y'), 'y')).toBe('file')
})

/** DuckDB's checksum over the rest of the first block, so that a changed header is not taken for a damaged one. */
function headerChecksum(bytes: Buffer): bigint {
  const mask = (1n << 64n) - 1n
  let checksum = 5381n
  for (let offset = 8; offset < 4096; offset += 8)
    checksum ^= (bytes.readBigUInt64LE(offset) * 0xbf58476d1ce4e5b9n) & mask
  return checksum
}
