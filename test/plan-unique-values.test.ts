import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, freshDatabase } from './support/databases.ts'
import { byHand } from './support/duckdb-session.ts'
import { runCli } from './support/run-cli.ts'

const TABLES = [
  'create table item (sku varchar(9) primary key, barcode varchar(9) unique, name varchar(9))',
  `insert into item values ('A1', '111', 'apple'), ('B2', '222', 'beer'), ('C3', null, 'cider')`,
  'create table pair (a varchar(9) unique, b varchar(9))',
  `insert into pair values ('1', 'x'), ('2', 'y')`,
]

const BY_SKU = ['--table', 'item', '--key', 'sku']
const WHOLE = [...BY_SKU, '--strategy', 'replace-table']
const KEYLESS = ['--table', 'pair', '--strategy', 'replace-table']

interface Case {
  readonly what: string
  readonly rows: string
  readonly how: readonly string[]
  /** What the plan says, where a run is refused; null where it is not. */
  readonly obstacle: RegExp | null
  readonly onDuckDB?: null
}

const CASES: readonly Case[] = [
  {
    what: 'a value that another row of the table has',
    rows: 'sku,barcode\nD4,111\nE5,555\n',
    how: BY_SKU,
    obstacle:
      /^1 row of this load has a value .* such as barcode=111, which the row sku=A1 of the table has: a run is refused \(STET_CONSTRAINT\)$/,
  },
  {
    what: 'a value that a changed row would take from another one',
    rows: 'sku,barcode\nA1,222\n',
    how: BY_SKU,
    obstacle: /barcode=222, which the row sku=B2 of the table has/,
  },
  {
    what: 'a value that comes twice in the load',
    rows: 'sku,barcode\nD4,444\nE5,444\n',
    how: BY_SKU,
    obstacle: /^2 rows of this load have barcode=444, which .* lets in once: a run is refused/,
  },
  {
    what: 'a value that its row gives up in the same load',
    rows: 'sku,barcode\nA1,999\nD4,111\n',
    how: BY_SKU,
    obstacle: null,
  },
  {
    what: 'a value whose row is deleted by the same load',
    rows: 'sku,barcode,name\nD4,111,dates\nB2,222,beer\nC3,,cider\n',
    how: WHOLE,
    obstacle: null,
  },
  {
    what: 'values that change places, where the database looks row by row',
    rows: 'sku,barcode\nA1,222\nB2,111\n',
    how: BY_SKU,
    obstacle:
      /this load takes it from there, and a run is refused \(STET_CONSTRAINT\) where it comes to the other row first$/,
    onDuckDB: null,
  },
  { what: 'NULL more than once', rows: 'sku,barcode\nD4,\nE5,\n', how: BY_SKU, obstacle: null },
  {
    what: 'a value of a table without a key, which an equal row keeps',
    rows: 'a,b\n1,x\n1,z\n',
    how: KEYLESS,
    obstacle: /a=1, which another row of the table has: a run is refused/,
  },
  { what: 'a row without a key in place of another', rows: 'a,b\n1,z\n2,y\n', how: KEYLESS, obstacle: null },
]

let cwd: string
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stet-unique-'))
})
afterAll(() => rm(cwd, { recursive: true, force: true }))

/** Whether the run does what the plan says of it. */
async function planAndRun(into: string, { rows, how }: Case) {
  await writeFile(join(cwd, 'rows.csv'), rows)
  const load = ['load', 'rows.csv', '--into', into, ...how, '--json']
  const planned = await runCli([...load, '--plan'], { cwd })
  expect(planned.status).toBe(0)
  const { obstacle, notices } = planned.document() as { obstacle: string | null; notices: string[] }
  expect(notices.filter((notice) => notice === obstacle)).toHaveLength(obstacle === null ? 0 : 1)
  return { obstacle, status: (await runCli(load, { cwd })).status }
}

describe('a plan knows of a second unique rule what a run will find', () => {
  for (const found of CASES) {
    test(`PostgreSQL: ${found.what}`, async () => {
      const url = await freshDatabase()
      await using db = await connect(url)
      for (const sql of TABLES) await db.client.query(sql)
      expect(await planAndRun(url, found)).toEqual({
        obstacle: found.obstacle === null ? null : expect.stringMatching(found.obstacle),
        status: found.obstacle === null ? 0 : 3,
      })
    })

    test(`DuckDB: ${found.what}`, async () => {
      const file = join(cwd, `u${CASES.indexOf(found)}.duckdb`)
      await byHand(file, ...TABLES)
      const obstacle = found.onDuckDB === undefined ? found.obstacle : found.onDuckDB
      expect(await planAndRun(file, found)).toEqual({
        obstacle: obstacle === null ? null : expect.stringMatching(obstacle),
        status: obstacle === null ? 0 : 3,
      })
    })
  }

  test('PostgreSQL: what an expression or a condition lets in is left to the run, and said', async () => {
    const url = await freshDatabase()
    await using db = await connect(url)
    for (const sql of TABLES) await db.client.query(sql)
    await db.client.query(
      'create unique index low on item (lower(name)); create unique index "no" on item (name) where false',
    )
    await writeFile(join(cwd, 'rows.csv'), 'sku,name\nD4,Apple\n')
    const planned = await runCli(['load', 'rows.csv', '--into', url, ...BY_SKU, '--plan', '--json'], { cwd })
    expect(planned.document()).toMatchObject({
      obstacle: null,
      notices: ['low', 'no'].map(
        (name) =>
          `Whether unique index "${name}" takes the rows that would be written, only the run can tell`,
      ),
    })
  })
})
