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

describe('a plan says what it does not work out', () => {
  const RULED = [
    'create table kind (id bigint primary key)',
    'insert into kind values (1)',
    'create table part (id bigint primary key, kind bigint references kind (id), weight bigint check (weight > 0))',
    'insert into part values (1, 1, 5)',
  ]
  const load = (into: string, table = 'part') =>
    ['load', 'parts.csv', '--into', into, '--table', table, '--key', 'id', '--plan', '--json'] as const

  test('PostgreSQL: checks and foreign keys, where the difference meets them', async () => {
    const url = await freshDatabase()
    await using db = await connect(url)
    for (const sql of RULED) await db.client.query(sql)
    await writeFile(join(cwd, 'parts.csv'), 'id,kind,weight\n2,9,-1\n')
    const noticesOf = async (...args: string[]) =>
      ((await runCli(args, { cwd })).document() as { notices: string[] }).notices
    expect(await noticesOf(...load(url))).toEqual([
      'A plan does not evaluate check constraint part_weight_check, foreign key part_kind_fkey: whether they take the change, only the run can tell',
    ])
    await writeFile(join(cwd, 'parts.csv'), 'id,kind,weight\n1,1,5\n')
    expect(await noticesOf(...load(url))).toEqual([])
    await writeFile(join(cwd, 'kinds.csv'), 'id\n2\n')
    const replace = ['load', 'kinds.csv', '--table', 'kind', '--key', 'id', '--strategy', 'replace-table']
    expect(await noticesOf(...replace, '--allow-deletes', '--into', url, '--plan', '--json')).toEqual([
      'A plan does not evaluate foreign key part_kind_fkey of part: whether it takes the change, only the run can tell',
    ])
  })

  test('DuckDB: checks and foreign keys', async () => {
    const file = join(cwd, 'ruled.duckdb')
    await byHand(file, ...RULED)
    await writeFile(join(cwd, 'parts.csv'), 'id,kind,weight\n2,9,-1\n')
    expect((await runCli([...load(file)], { cwd })).document()).toMatchObject({
      notices: [
        expect.stringMatching(/^A plan does not evaluate FOREIGN KEY .*, CHECK.*: whether they take/),
      ],
    })
  })
})

describe('PostgreSQL: rights that are missing', () => {
  /** What plan and run say to a user with some rights. */
  async function asUser(table: string, ...setup: readonly string[]) {
    const url = await freshDatabase()
    await using db = await connect(url)
    const database = new URL(url).pathname.slice(1)
    const user = `clerk_${database}`
    await db.client.query(`create role ${user} login; grant create on database ${database} to ${user}`)
    await db.client.query('create schema sales; create table sales.part (id bigint primary key, v text)')
    for (const sql of setup) await db.client.query(`${sql} to ${user}`)
    await writeFile(join(cwd, 'rows.csv'), 'id,v\n1,x\n')
    const as = new URL(url)
    as.username = user
    const args = ['load', 'rows.csv', '--into', as.href, '--table', table, '--key', 'id', '--json']
    const planned = await runCli([...args, '--plan'], { cwd })
    const ran = await runCli(args, { cwd })
    const { error } = ran.document() as { error?: { code: string; hint?: string } }
    const { obstacle } = planned.document() as { obstacle?: string | null }
    const clean = (text: string | null | undefined) => text?.replaceAll(user, 'clerk') ?? null
    return { plan: planned.status, obstacle: clean(obstacle), run: error?.code, hint: clean(error?.hint) }
  }
  const refused = (grant: string) => ({
    plan: 0,
    obstacle: `The user of the target lacks rights that a run needs: it is refused (STET_PRIVILEGE) until an owner has run: ${grant}`,
    run: 'STET_PRIVILEGE',
    hint: `Run once as an owner: ${grant}`,
  })

  test('on the schema: neither goes on, and both say the grant', async () => {
    const grant = 'Run once as an owner: grant usage on schema sales to clerk'
    expect(await asUser('sales.part')).toMatchObject({ plan: 2, run: 'STET_PRIVILEGE', hint: grant })
  })

  test('to read the table', async () => {
    const said = await asUser('sales.part', 'grant usage on schema sales')
    const hint = 'Run once as an owner: grant select, insert, update on sales.part to clerk'
    expect(said).toMatchObject({ plan: 2, run: 'STET_PRIVILEGE', hint })
  })

  test('to write the table: the plan foretells it', async () => {
    const setup = ['grant usage on schema sales', 'grant select, insert on sales.part']
    expect(await asUser('sales.part', ...setup)).toEqual(refused('grant update on sales.part to clerk'))
  })

  test('to make the table: the plan foretells it', async () => {
    expect(await asUser('sales.gear', 'grant usage on schema sales')).toEqual(
      refused('grant create on schema sales to clerk'),
    )
  })

  test('to record runs: the plan foretells it', async () => {
    const url = await freshDatabase()
    await using db = await connect(url)
    const user = `reader_${new URL(url).pathname.slice(1)}`
    await db.client.query(`create role ${user} login; create table part (id bigint primary key, v text)`)
    await db.client.query(`grant select, insert, update on part to ${user}`)
    await writeFile(join(cwd, 'rows.csv'), 'id,v\n1,x\n')
    const as = new URL(url)
    as.username = user
    const args = ['load', 'rows.csv', '--into', as.href, '--table', 'part', '--key', 'id', '--json']
    expect((await runCli([...args, '--plan'], { cwd })).document()).toMatchObject({
      obstacle: expect.stringContaining('may not make or use schema "stet"'),
    })
    expect((await runCli(args, { cwd })).document()).toMatchObject({ error: { code: 'STET_PRIVILEGE' } })
  })

  test('none, where columns are granted one by one', async () => {
    const setup = [
      'grant usage on schema sales',
      'grant select, insert (id, v), update (id, v) on sales.part',
    ]
    expect(await asUser('sales.part', ...setup)).toMatchObject({ plan: 0, obstacle: null, run: undefined })
  })
})
