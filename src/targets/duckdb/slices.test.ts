import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  differenceOf,
  openTestSession,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import type { Contract } from '../../model/columns.ts'
import type { Slice, SliceBounds } from '../../model/slice.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { duckdb } from './index.ts'

const BY_DAY = { strategy: 'replace-partition', by: 'day', size: 'day', key: ['id'] } as const
const CONTRACT = contractOf({ id: 'integer', day: 'date', note: 'text' }, ['id'])
const MARKS = contractOf({ id: 'integer', note: 'text' }, ['id'], {
  keep: { updatedAt: 'updated_at', gone: 'deleted_at' },
})
const SEOUL: SliceBounds = {
  kind: 'time',
  from: { wall: '2026-08-07 00:00:00', instant: '2026-08-06 15:00:00+00' },
  to: { wall: '2026-08-08 00:00:00', instant: '2026-08-07 15:00:00+00' },
}
const DAY: Slice = { name: '2026-08-07', by: 'day', bounds: SEOUL }
const IN_DAY = { scope: { kind: 'slice', slice: DAY }, load: { slice: DAY, frozen: false } } as const

/** Which of the values of a column are in the slice. */
async function inScope(
  native: string,
  type: string,
  bounds: SliceBounds,
  values: readonly string[],
  asText: readonly string[] = [],
): Promise<unknown[]> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    `create table t(id integer, v ${native})`,
    `insert into t values ${values.map((value, id) => `(${id}, ${value})`).join(', ')}`,
  )
  const write: WriteStrategy = { strategy: 'replace-partition', by: 'v', size: 'day', key: ['id'] }
  await using opened = await openTestSession(duckdb({ file }), 't', write, { mode: 'plan' })
  const contract = contractOf({ id: 'integer', v: type }, ['id'], { asText })
  await opened.session.describe()
  await opened.session.prepare(contract)
  const scope = await opened.session.rowsInScope(contract, {
    kind: 'slice',
    slice: { name: 's', by: 'v', bounds },
  })
  const rows = await opened.local.rows(`select c0 from ${scope.table} order by c0`)
  expect(scope.rows).toBe(rows.length)
  return rows.map((row) => row.c0)
}

test.each([
  ['date', 'date', SEOUL, [`'2026-08-06'`, `'2026-08-07'`, `'2026-08-08'`, 'null']],
  [
    'timestamp',
    'timestamp',
    SEOUL,
    [`'2026-08-06 23:59:59.999999'`, `'2026-08-07 00:00:00'`, `'2026-08-08 00:00:00'`, `'infinity'`],
  ],
  [
    'timestamptz',
    'timestamptz',
    SEOUL,
    [`'2026-08-07 14:59:59.999999+00'`, `'2026-08-07 00:00:00+09'`, `'2026-08-08 00:00:00+09'`, 'null'],
  ],
  [
    'smallint',
    'smallint',
    { kind: 'range', from: '32000', to: '33000' },
    ['31999', '32000', '-32000', 'null'],
  ],
  [
    'decimal(9,2)',
    'numeric(9,2)',
    { kind: 'range', from: '-1000', to: '0' },
    ['-1000.01', '-1000', '0', 'null'],
  ],
  ['varchar', 'text', { kind: 'value', value: `it's` }, [`'It''s'`, `'it''s'`, `'it''s '`, 'null']],
] as const)(
  'a slice of a %s column holds its first value and not the first of the next (G3)',
  async (native, type, bounds, values) => {
    const last = native === 'timestamptz' ? [0, 1] : [1]
    expect(await inScope(native, type, bounds, values)).toEqual(last)
  },
)

test('a slice is found by the values of a column that compares as text, dates before year 1 among them', async () => {
  const values = [`'2026-08-06'`, `'2026-08-07'`, `'2026-08-08'`, `'0044-03-15 (BC)'`]
  expect(await inScope('date', 'date', SEOUL, values, ['v'])).toEqual([1])
})

test('a slice is replaced, and rows outside it are as they were, also those that compare as text (G3)', async () => {
  for (const asText of [[], ['day']]) {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'x.duckdb')
    await byHand(
      file,
      'create table t(id integer, day date, note varchar)',
      `insert into t values (1, '2026-08-06', 'a'), (2, '2026-08-07', 'b'), (3, '2026-08-07', 'c')`,
    )
    const contract = contractOf({ id: 'integer', day: 'date', note: 'text' }, ['id'], { asText })
    const day = asText.length === 0 ? `date '2026-08-07'` : `'2026-08-07'`
    const rows = [
      `('delete', 2, ${day}, 'b', null, null)`,
      `('update', 3, ${day}, 'new', null, null)`,
      `('insert', 4, ${day}, 'd', null, null)`,
    ]
    const applied = await writeByHand(duckdb({ file }), 't', BY_DAY, contract, rows, IN_DAY)
    expect(applied).toMatchObject({ inserted: 1, updated: 1, deleted: 1 })
    expect(await byHand(file, 'select id, note from t order by id')).toEqual([
      ['1', 'a'],
      ['3', 'new'],
      ['4', 'd'],
    ])
  }
})

test.each([
  ['delete', `('delete', 1, date '2026-08-06', 'a', null, null)`],
  ['update', `('update', 1, date '2026-08-07', 'b', null, null)`],
  ['mark', `('mark', 1, date '2026-08-06', 'a', null, null)`],
])('a %s that reaches a row outside the slice is not done, whoever asked for it', async (_, row) => {
  for (const more of ['', ', extra integer']) {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'x.duckdb')
    await byHand(
      file,
      `create table t(id integer, day date, note varchar, deleted_at timestamptz${more})`,
      `insert into t(id, day, note) values (1, '2026-08-06', 'a')`,
    )
    const contract: Contract = { ...CONTRACT, keep: { ...CONTRACT.keep, gone: 'deleted_at' } }
    await expect(writeByHand(duckdb({ file }), 't', BY_DAY, contract, [row], IN_DAY)).rejects.toMatchObject({
      code: 'STET_COUNTS',
    })
    expect(await byHand(file, 'select id, day::varchar, note, deleted_at from t')).toEqual([
      ['1', '2026-08-06', 'a', null],
    ])
  }
})

test('the slice that was looked at last holds also where the run does not name it again', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    'create table t(id integer, day date, note varchar)',
    `insert into t values (1, '2026-08-06', 'a')`,
  )
  const rows = [`('delete', 1, date '2026-08-06', 'a', null, null)`]
  await expect(
    writeByHand(duckdb({ file }), 't', BY_DAY, CONTRACT, rows, { scope: IN_DAY.scope }),
  ).rejects.toMatchObject({ code: 'STET_COUNTS' })
  await expect(writeByHand(duckdb({ file }), 't', BY_DAY, CONTRACT, rows)).rejects.toMatchObject({
    code: 'STET_INTERNAL',
  })
})

test.each(['id integer', 'id integer primary key'])(
  'a key of the load that a row outside the slice has is refused by name, and nothing is written (G1): %s',
  async (id) => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'x.duckdb')
    await byHand(
      file,
      `create table t(${id}, day date, note varchar)`,
      `insert into t values (1, '2026-08-06', 'a'), (2, '2026-08-07', 'b'), (3, null, 'c')`,
    )
    const write = (key: number) =>
      writeByHand(
        duckdb({ file }),
        't',
        BY_DAY,
        CONTRACT,
        [
          `('delete', 2, date '2026-08-07', 'b', null, null)`,
          `('insert', ${key}, date '2026-08-07', 'x', null, null)`,
        ],
        IN_DAY,
      )
    await expect(write(1)).rejects.toMatchObject({
      code: 'STET_KEY_CONSTRAINT',
      message: expect.stringContaining('the key id=1 outside the slice, in a row with day=2026-08-06'),
      hint: expect.stringContaining('put day into the key'),
    })
    await expect(write(3)).rejects.toMatchObject({
      code: 'STET_KEY_CONSTRAINT',
      message: expect.stringContaining('day=NULL'),
    })
    expect(await byHand(file, 'select id, note from t order by id')).toEqual([
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'c'],
    ])
    expect(await write(4)).toMatchObject({ inserted: 1, deleted: 1 })
  },
)

test('a key of which the slice is a part may be in other slices too', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ id: 'integer', day: 'date', note: 'text' }, ['id', 'day'])
  const write: WriteStrategy = { ...BY_DAY, key: ['id', 'day'] }
  await byHand(
    file,
    'create table t(id integer, day date, note varchar)',
    `insert into t values (1, '2026-08-06', 'a')`,
  )
  const rows = [`('insert', 1, date '2026-08-07', 'b', null, null)`]
  expect(await writeByHand(duckdb({ file }), 't', write, contract, rows, IN_DAY)).toMatchObject({
    inserted: 1,
  })
})

test('without a key a slice is replaced by its rows’ places', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const target = duckdb({ file })
  const contract = contractOf({ day: 'date', note: 'text' }, [])
  const write: WriteStrategy = { strategy: 'replace-partition', by: 'day', size: 'day' }
  await byHand(
    file,
    'create table t(day date, note varchar)',
    `insert into t values ('2026-08-06', 'a'), ('2026-08-07', 'a'), ('2026-08-07', 'a')`,
  )
  await using opened = await openTestSession(target, 't', write)
  const { local, session } = opened
  await session.acquire(startOf())
  await session.describe()
  await session.prepare(contract)
  await session.begin()
  const scope = await session.rowsInScope(contract, IN_DAY.scope)
  expect(scope.rows).toBe(2)
  const [row] = await local.rows(`select row_id from ${scope.table} limit 1`)
  const rows = [
    `('delete', date '2026-08-07', 'a', null, '${String(row?.row_id)}')`,
    `('insert', date '2026-08-07', 'b', null, null)`,
  ]
  const difference = await differenceOf(local, contract, rows)
  const load = { ...IN_DAY.load, rows: difference.table, live: 2 }
  expect(await session.apply(contract, difference, load)).toMatchObject({ deleted: 1, inserted: 1 })
})

test('a row that is gone is marked once, a reader can tell, and coming back it is an update that is restored', async () => {
  for (const extra of ['', ', extra integer']) {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'x.duckdb')
    const target = duckdb({ file })
    const write: WriteStrategy = { strategy: 'upsert', key: ['id'], missing: 'mark' }
    await byHand(
      file,
      `create table t(id integer, note varchar, updated_at timestamptz, deleted_at timestamptz${extra})`,
      `insert into t(id, note) values (1, 'a'), (2, 'b'), (3, 'c')`,
    )
    const marked = await writeByHand(target, 't', write, MARKS, [
      `('mark', 1, 'a', null, null)`,
      `('mark', 2, 'b', null, null)`,
    ])
    expect(marked).toMatchObject({ marked: 2, updated: 0, deleted: 0, restored: 0 })
    const state = `select id, note, deleted_at is not null, updated_at is not null, deleted_at = updated_at from t order by id`
    expect(await byHand(file, state)).toEqual([
      ['1', 'a', 'true', 'true', 'true'],
      ['2', 'b', 'true', 'true', 'true'],
      ['3', 'c', 'false', 'false', null],
    ])
    await expect(
      writeByHand(target, 't', write, MARKS, [`('mark', 1, 'a', null, null)`]),
    ).rejects.toMatchObject({ code: 'STET_COUNTS' })
    await expect(
      writeByHand(target, 't', write, MARKS, [`('mark', 3, 'not as pulled', null, null)`]),
    ).rejects.toMatchObject({ code: 'STET_COUNTS' })
    const restored = await writeByHand(target, 't', write, MARKS, [
      `('update', 1, 'a', null, null)`,
      `('update', 3, 'new', null, null)`,
    ])
    expect(restored).toMatchObject({ updated: 2, restored: 1, marked: 0 })
    expect(await byHand(file, 'select id, note, deleted_at is not null from t order by id')).toEqual([
      ['1', 'a', 'false'],
      ['2', 'b', 'true'],
      ['3', 'new', 'false'],
    ])
  }
})

test('rows in scope say whether they are gone, in every kind of scope', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract: Contract = { ...CONTRACT, keep: { ...CONTRACT.keep, gone: 'deleted_at' } }
  await byHand(
    file,
    'create table t(id integer, day date, note varchar, deleted_at timestamptz)',
    `insert into t values (1, '2026-08-07', 'a', null), (2, '2026-08-07', 'b', now())`,
  )
  await using opened = await openTestSession(duckdb({ file }), 't', BY_DAY, { mode: 'plan' })
  const { local, session } = opened
  await session.describe()
  await local.run('create table keys as select unnest([1, 2]) as c0')
  for (const scope of [
    { kind: 'table' },
    { kind: 'keys', keys: 'keys', count: 2 },
    { kind: 'slice', slice: DAY },
  ] as const) {
    const { table } = await session.rowsInScope(contract, scope)
    expect(await local.rows(`select c0, is_gone from ${table} order by c0`)).toEqual([
      { c0: 1, is_gone: false },
      { c0: 2, is_gone: true },
    ])
  }
  await using other = await openTestSession(duckdb({ file: join(folder.path, 'y.duckdb') }), 't', BY_DAY)
  await other.session.acquire(startOf())
  await other.session.describe()
  const { table } = await other.session.rowsInScope(contract, { kind: 'slice', slice: DAY })
  expect(await other.local.rows(`select is_gone from ${table}`)).toEqual([])
})

test('the mark’s column is made with the table, known by its comment, and refused where it cannot mark', async () => {
  await using folder = await temporaryFolder()
  const target = duckdb({ file: join(folder.path, 'x.duckdb') })
  const write: WriteStrategy = { strategy: 'upsert', key: ['id'], missing: 'mark' }
  await writeByHand(target, 't', write, MARKS, [`('insert', 1, 'a', null, null)`])
  const prepare = async (table: string) => {
    await using opened = await openTestSession(target, table, write, { mode: 'plan' })
    const found = await opened.session.describe()
    await opened.session.prepare(MARKS)
    return found?.columns.map(({ name, native, kept }) => [name, native, kept])
  }
  expect(await prepare('t')).toEqual([
    ['id', 'INTEGER', undefined],
    ['note', 'VARCHAR', undefined],
    ['updated_at', 'TIMESTAMP WITH TIME ZONE', 'updatedAt'],
    ['deleted_at', 'TIMESTAMP WITH TIME ZONE', 'gone'],
  ])
  await byHand(
    join(folder.path, 'x.duckdb'),
    'create table without(id integer, note varchar, updated_at timestamptz)',
    'create table other(id integer, note varchar, updated_at timestamptz, deleted_at boolean)',
    `create table strict(id integer, note varchar, updated_at timestamptz, deleted_at timestamp not null default '2000-01-01')`,
  )
  await expect(prepare('without')).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    details: { statements: ['alter table without add column deleted_at TIMESTAMP WITH TIME ZONE'] },
  })
  await expect(prepare('other')).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    message: 'Column deleted_at of other is BOOLEAN; keep.gone needs TIMESTAMP WITH TIME ZONE',
  })
  await expect(prepare('strict')).rejects.toMatchObject({
    code: 'STET_COLUMNS',
    hint: 'Run: alter table strict alter column deleted_at drop not null',
  })
})

test('rows of a frozen slice are never changed, whatever the difference says; new ones come in (G12)', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    'create table t(id integer, day date, note varchar)',
    `insert into t values (1, '2026-08-07', 'a')`,
  )
  const frozen = { ...IN_DAY, load: { slice: DAY, frozen: true } }
  const write = (row: string) => writeByHand(duckdb({ file }), 't', BY_DAY, CONTRACT, [row], frozen)
  await expect(write(`('update', 1, date '2026-08-07', 'b', null, null)`)).rejects.toMatchObject({
    code: 'STET_INTERNAL',
  })
  await expect(write(`('delete', 1, date '2026-08-07', 'a', null, null)`)).rejects.toMatchObject({
    code: 'STET_INTERNAL',
  })
  expect(await write(`('insert', 2, date '2026-08-07', 'b', null, null)`)).toMatchObject({ inserted: 1 })
  expect(await byHand(file, 'select id, note from t order by id')).toEqual([
    ['1', 'a'],
    ['2', 'b'],
  ])
})

test('a plan shows the statements of the slice, with what becomes of missing rows', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  await byHand(
    file,
    'create table t(id integer, day date, note varchar, deleted_at timestamptz, extra integer)',
  )
  const contract: Contract = { ...CONTRACT, keep: { ...CONTRACT.keep, gone: 'deleted_at' } }
  const shown = async (write: WriteStrategy) => {
    await using opened = await openTestSession(duckdb({ file }), 't', write, { mode: 'plan' })
    await opened.session.describe()
    await opened.session.prepare(contract)
    await opened.session.rowsInScope(contract, IN_DAY.scope)
    return opened.session.statements()
  }
  const condition = `"day" >= '2026-08-07'::DATE and stet_t."day" < '2026-08-08'::DATE`
  const kinds = (statements: readonly string[]) =>
    statements.map((sql) => [/op = '(\w+)'/.exec(sql)?.[1], sql.includes(condition)])
  expect(kinds(await shown(BY_DAY))).toEqual([
    ['delete', true],
    ['update', true],
    ['insert', false],
  ])
  expect(kinds(await shown({ ...BY_DAY, missing: 'mark' }))).toEqual([
    ['mark', true],
    ['update', true],
    ['insert', false],
  ])
  expect(kinds(await shown({ strategy: 'upsert', key: ['id'], missing: 'delete' }))[0]).toEqual([
    'delete',
    true,
  ])
  expect(kinds(await shown({ strategy: 'upsert', key: ['id'] }))[0]).toEqual(['update', true])
})
