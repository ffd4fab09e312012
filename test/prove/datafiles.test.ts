import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whyNoTrace } from '../../src/prove/files/trace.ts'
import { classesOf, type Proof, type ProveOptions } from '../../src/prove/prove.ts'
import { terminalReport } from '../../src/prove/report/terminal.ts'
import { openGround } from '../../src/prove/sandbox/fence.ts'
import { DEFAULT_FAIL_ON } from '../../src/prove/verdict.ts'
import { PATIENCE_MS, proveIt } from './support.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-databases-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const report = (proof: Proof) => terminalReport(proof, DEFAULT_FAIL_ON)
const classes = (proof: Proof) => [...new Set(proof.trials.flatMap((trial) => classesOf(trial)))].sort()

async function proveScript(script: string, options: Partial<ProveOptions> = {}): Promise<Proof> {
  const work = await mkdtemp(join(folder, 'work-'))
  const found = `const require = (await import('node:module')).createRequire(process.env.REQUIRE_FROM)\n`
  await writeFile(join(work, 'job.mjs'), `${found}${script}`)
  const passed = [`REQUIRE_FROM=${fileURLToPath(import.meta.url)}`]
  return proveIt({ command: ['node', 'job.mjs'], workFolder: work, passed, ...options })
}

/** Loads three orders and notes that it has, in one transaction or two. */
function sqlite(mode: 'wal' | 'delete', between: string, mark: string): string {
  return `
const db = new (require('libsql'))('app.db')
db.exec('pragma journal_mode = ${mode}; pragma synchronous = normal')
db.exec('create table if not exists orders (id int, amount int); create table if not exists done (day text primary key)')
if (db.prepare('select 1 from done').get() !== undefined) process.exit()
db.exec('begin')
db.exec('insert into orders values (1, 10), (2, 20), (3, 30)')
db.exec('${between}')
db.exec("insert into done values ('mon')${mark}")
db.exec('commit')`
}

const DUCKDB = `
const { DuckDBInstance } = require('@duckdb/node-api')
const db = await (await DuckDBInstance.create('wh.duckdb')).connect()
await db.run('create table if not exists total (id int primary key, sum int, seen timestamp)')
await db.run('insert into total values (1, 0, now()) on conflict do nothing')
await db.run('create table if not exists orders (id int primary key)')
const [[n]] = (await db.runAndReadAll('select count(*)::int from orders')).getRowsJson()
for (let id = n; id < 4; id++) {`

describe('databases in files as targets', { timeout: PATIENCE_MS }, async () => {
  const missing = await whyNoTrace(openGround(), process.env.PATH ?? '')

  test.for(['wal', 'delete'] as const)(
    'SQLite, journal %s: rows and their mark committed apart are doubled, together they are safe',
    async (mode, { skip }) => {
      skip(missing !== null, missing ?? '')
      const apart = await proveScript(sqlite(mode, 'commit; begin', ''))
      expect(apart.verdict, report(apart)).toBe('convicted')
      expect(classes(apart), report(apart)).toContain('doubled')
      expect(report(apart)).toContain('DOUBLED  3 rows in app.db:orders')
      expect(apart.counts.notReached).toBe(0)
      const together = await proveScript(sqlite(mode, '', ''))
      expect(together.verdict, report(together)).toBe('survives')
      expect(classes(together), report(together)).toEqual([])
    },
  )

  test('DuckDB: a sum added up apart from its rows is wrong after a crash, and its time is left out', async ({
    skip,
  }) => {
    skip(missing !== null, missing ?? '')
    const apart = await proveScript(`${DUCKDB}
  await db.run(\`insert into orders values (\${id})\`)
  await db.run('update total set sum = sum + 10, seen = now()')
}`)
    expect(apart.verdict, report(apart)).toBe('convicted')
    expect(apart.volatile).toEqual(['wh.duckdb:total.seen'])
    expect(report(apart)).toMatch(/wh\.duckdb:total/)
    const together = await proveScript(`${DUCKDB}
  await db.run(\`begin; insert into orders values (\${id}); update total set sum = sum + 10, seen = now(); commit\`)
}`)
    expect(together.verdict, report(together)).toBe('survives')
  })

  test('a file of rows is shown by its rows, and columns that vary do not hide that they are doubled', async () => {
    const proof = await proveScript(`
const fs = require('node:fs')
fs.appendFileSync('out.csv', \`a,1,\${Date.now()}\\nb,2,\${Date.now()}\\n\`)`)
    expect(proof.volatile).toEqual(['out.csv.column 3'])
    expect(proof.verdict, report(proof)).toBe('convicted')
    expect(report(proof)).toContain('DOUBLED  2 rows in out.csv')
    expect(report(proof)).toMatch(/a +1 +\(varies\) +1 +2/)
  })

  test('a database file from elsewhere is copied into the folder of the command, and never written', async () => {
    const path = join(await mkdtemp(join(folder, 'home-')), 'shop.db')
    const before = new Database(path)
    before.exec('pragma journal_mode = wal; create table sums (n int); insert into sums values (1)')
    const job = "const db = new (require('libsql'))('shop.db'); db.exec('update sums set n = n * 2')"
    const proof = await proveScript(job, { databaseFiles: [path] })
    expect(proof.verdict, report(proof)).toBe('convicted')
    expect(report(proof)).toContain('shop.db:sums')
    expect(before.prepare('select n from sums').all()).toEqual([{ n: 1 }])
    before.close()
  })
})
