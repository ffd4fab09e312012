import { expect, test } from 'vitest'
import { freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { bench } from '../../../test/support/postgres-bench.ts'
import { contractFor, type Load, load, sliceNamed } from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import type { Slice } from '../../model/slice.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { postgres } from './index.ts'

const DAYS = { strategy: 'replace-partition', by: 'd', size: 'day', key: ['k'] } as const
const COLUMNS = { k: 'text', d: 'date', v: 'text' }
const SEVENTH = sliceNamed('2026-08-07', 'd', 'day')
const EIGHTH = sliceNamed('2026-08-08', 'd', 'day')

/** Values of the table's column that a slice takes in, by the server. */
async function inScope(url: string, columns: Load['columns'], slice: Slice): Promise<unknown[]> {
  await using local = await openLocalEngine()
  const write: WriteStrategy = { strategy: 'replace-partition', by: slice.by, size: 'value', key: ['k'] }
  await using session = await postgres({ url }).open({
    table: 't',
    write,
    local,
    mode: 'plan',
    lockTimeoutMs: 1_000,
    leaseTimeoutMs: 15_000,
    signal: new AbortController().signal,
    notice: () => undefined,
  })
  const contract = contractFor({ table: 't', write, columns, rows: [] }, await session.describe())
  await session.prepare(contract)
  await session.begin()
  const { table } = await session.rowsInScope(contract, { kind: 'slice', slice })
  const rows = await local.rows(`select c0::varchar as k from ${table} order by 1`)
  return rows.map(({ k }) => k)
}

for (const { name, url } of postgresServers()) {
  test(`a table that is made has no partitions, and \`auto\` says that it exchanges none (${name})`, async () => {
    const notices: string[] = []
    await load(postgres({ url: await freshDatabase(url) }), {
      table: 't',
      write: { ...DAYS, apply: 'auto' },
      columns: COLUMNS,
      rows: [['a', '2026-08-07', 'x']],
      slice: SEVENTH,
      notice: (message) => notices.push(message),
    })
    expect(notices).toEqual([
      "public.t is made without partitions, so apply: 'auto' writes rows and exchanges none",
    ])
  })

  test(`a slice begins with its first moment and ends before the next one's, in each type of time (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, d date, w timestamp, i timestamptz);
       insert into t values
         ('before', '2026-08-06', '2026-08-06 23:59:59.999999', '2026-08-06 14:59:59.999999+00'),
         ('first', '2026-08-07', '2026-08-07 00:00:00', '2026-08-06 15:00:00+00'),
         ('last', '2026-08-07', '2026-08-07 23:59:59.999999', '2026-08-07 14:59:59.999999+00'),
         ('after', '2026-08-08', '2026-08-08 00:00:00', '2026-08-07 15:00:00+00'),
         ('none', null, null, null), ('never', 'infinity', 'infinity', 'infinity')`,
    )
    const columns = { k: 'text', d: 'date', w: 'timestamp', i: 'timestamptz' }
    for (const by of ['d', 'w', 'i']) {
      const slice = sliceNamed('2026-08-07', by, 'day', 'Asia/Seoul')
      expect(await inScope(b.url, columns, slice)).toEqual(['first', 'last'])
    }
  })

  test(`a range of numbers is half-open, also where the next one is more than the type holds (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, s smallint, n numeric);
       insert into t values ('a', 31999, 31999.99), ('b', 32000, 32000), ('c', 32767, 32999.5), ('d', null, 33000)`,
    )
    const columns = { k: 'text', s: 'smallint', n: 'numeric' }
    for (const by of ['s', 'n']) {
      const slice = sliceNamed('32000', by, { range: 1000 })
      expect(await inScope(b.url, columns, slice)).toEqual(['b', 'c'])
    }
  })

  test(`a value is one text: another spelling that the column takes for equal belongs to another slice (${name})`, async () => {
    await using b = await bench(
      url,
      `create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
       create table t (k text primary key, c text, l text collate blind);
       insert into t values ('a', 'KR', 'KR'), ('b', 'kr', 'kr'), ('c', '', ''), ('d', null, null), ('e', 'it''s', 'it''s')`,
    )
    const columns = { k: 'text', c: 'text', l: 'text' }
    for (const by of ['c', 'l']) {
      const of = (value: string) => sliceNamed(value, by, 'value')
      expect(await inScope(b.url, columns, of('KR'))).toEqual(['a'])
      expect(await inScope(b.url, columns, of(''))).toEqual(['c'])
      expect(await inScope(b.url, columns, of("it's"))).toEqual(['e'])
    }
  })

  test(`a slice is replaced by its difference; the rest of the table is not touched, nor are equal rows (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, d date, v text);
       insert into t values ('a', '2026-08-06', '1'), ('b', '2026-08-07', '1'), ('c', '2026-08-07', '1'),
                            ('e', '2026-08-07', '1'), ('f', '2026-08-08', '1'), ('g', null, '1')`,
    )
    const versions = () =>
      b.rows(`select k, xmin::text, ctid::text from t where k in ('a', 'b', 'f', 'g') order by 1`)
    const before = await versions()
    const request = { table: 't', write: DAYS, columns: COLUMNS, slice: SEVENTH } as const
    const rows = [
      ['b', '2026-08-07', '1'],
      ['c', '2026-08-07', '2'],
      ['h', '2026-08-07', '1'],
    ]
    expect(await load(b.target, { ...request, rows })).toMatchObject({ inserted: 1, updated: 1, deleted: 1 })
    expect(await versions()).toEqual(before)
    expect(await b.rows('select k, d::text, v from t order by 1')).toEqual([
      ['a', '2026-08-06', '1'],
      ['b', '2026-08-07', '1'],
      ['c', '2026-08-07', '2'],
      ['f', '2026-08-08', '1'],
      ['g', null, '1'],
      ['h', '2026-08-07', '1'],
    ])
    expect(await load(b.target, { ...request, rows })).toMatchObject({ inserted: 0, updated: 0, deleted: 0 })
    // What replaces follows the load, also where the table has a greater order value.
    const newest = { ...DAYS, newest: 'v' } as const
    const older = [['c', '2026-08-07', '0']]
    expect(await load(b.target, { ...request, write: newest, rows: older })).toMatchObject({
      updated: 1,
      stale: 0,
      deleted: 2,
    })
  })

  test(`without a key a slice is a multiset, and only its own rows go (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (v text, d date);
       insert into t values ('x', '2026-08-07'), ('x', '2026-08-07'), ('y', '2026-08-07'), ('x', '2026-08-08')`,
    )
    const write = { strategy: 'replace-partition', by: 'd', size: 'day' } as const
    const applied = await load(b.target, {
      table: 't',
      write,
      columns: { v: 'text', d: 'date' },
      slice: SEVENTH,
      rows: [
        ['y', '2026-08-07'],
        ['z', '2026-08-07'],
      ],
    })
    expect(applied).toMatchObject({ inserted: 1, deleted: 2 })
    expect(await b.rows('select v, d::text from t order by 2, 1')).toEqual([
      ['y', '2026-08-07'],
      ['z', '2026-08-07'],
      ['x', '2026-08-08'],
    ])
  })

  test(`a row that is to go and has left the slice meanwhile stays where it is (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, d date, v text);
       insert into t values ('a', '2026-08-07', '1'), ('b', '2026-08-07', '1')`,
    )
    // The load does not have the column that is cut by, so that only the slice's own condition can notice.
    const applied = await load(b.target, {
      table: 't',
      write: DAYS,
      columns: { k: 'text', v: 'text' },
      slice: SEVENTH,
      rows: [['a', '2']],
      beforeApply: async () => void (await b.run(`update t set d = '2026-08-09' where k = 'b'`)),
    })
    expect(applied).toMatchObject({ updated: 1, deleted: 0 })
    expect(await b.rows('select k, d::text, v from t order by 1')).toEqual([
      ['a', '2026-08-07', '2'],
      ['b', '2026-08-09', '1'],
    ])
  })

  for (const { how, setup } of [
    { how: 'a table', setup: 'create table t (k text primary key, d date, v text)' },
    {
      how: 'a partitioned table',
      setup: `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
              create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');
              create table t_8 partition of t for values from ('2026-08-08') to ('2026-08-09')`,
    },
  ]) {
    test(`a key that another slice of ${how} has refuses the load, by name, and nothing is written (${name})`, async () => {
      await using b = await bench(
        url,
        `${setup}; insert into t values ('a', '2026-08-07', '1'), ('gone', '2026-08-08', '1')`,
      )
      const request = { table: 't', write: DAYS, columns: COLUMNS, slice: EIGHTH } as const
      const rows = [
        ['a', '2026-08-08', '2'],
        ['b', '2026-08-08', '2'],
      ]
      for (const frozen of [false, true]) {
        await expect(load(b.target, { ...request, rows, frozen })).rejects.toMatchObject({
          code: 'STET_KEY_CONSTRAINT',
          message: expect.stringMatching(/t has the key a outside of slice 2026-08-08: its d is 2026-08-07$/),
          hint: expect.stringContaining('load the slice first that it has left'),
        })
      }
      expect(await b.rows('select k, d::text, v from t order by 1')).toEqual([
        ['a', '2026-08-07', '1'],
        ['gone', '2026-08-08', '1'],
      ])
      // As the hint says: the slice that the row has left comes first.
      expect(await load(b.target, { ...request, slice: SEVENTH, rows: [] })).toMatchObject({ deleted: 1 })
      expect(await load(b.target, { ...request, rows })).toMatchObject({ inserted: 2, deleted: 1 })
    })
  }

  test(`where the slice is part of the key, a key may be in each slice, and only its partition is visited (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
       create table t_7 partition of t for values from ('2026-08-07') to ('2026-08-08');
       create table t_8 partition of t for values from ('2026-08-08') to ('2026-08-09');
       insert into t values ('a', '2026-08-07', '1'), ('a', '2026-08-08', '1'), ('b', '2026-08-08', '1')`,
    )
    const visited: unknown[][] = []
    const applied = await load(b.target, {
      table: 't',
      write: { ...DAYS, key: ['k', 'd'] },
      columns: COLUMNS,
      slice: EIGHTH,
      rows: [['a', '2026-08-08', '2']],
      beforeCommit: async () => {
        visited.push(
          ...(await b.rows(
            `select distinct relation::regclass::text from pg_locks
              where relation in ('t_7'::regclass, 't_8'::regclass) and mode in ('AccessShareLock', 'RowShareLock')`,
          )),
        )
      },
    })
    expect(applied).toMatchObject({ updated: 1, deleted: 1, inserted: 0 })
    expect(visited).toEqual([['t_8']])
    expect(await b.rows('select k, d::text, v from t order by 2, 1')).toEqual([
      ['a', '2026-08-07', '1'],
      ['a', '2026-08-08', '2'],
    ])
  })

  for (const { how, write, slice } of [
    { how: 'an upsert', write: { strategy: 'upsert', key: ['k'], missing: 'mark' }, slice: undefined },
    { how: 'a slice', write: { ...DAYS, missing: 'mark' }, slice: SEVENTH },
  ] as const) {
    test(`${how} marks what is missing, once, and takes the mark off what comes back (${name})`, async () => {
      await using b = await bench(url, '')
      const request = {
        table: 't',
        write,
        columns: COLUMNS,
        ...(slice === undefined ? {} : { slice }),
      } as const
      const both = [
        ['a', '2026-08-07', '1'],
        ['b', '2026-08-07', '1'],
      ]
      const keep = { updatedAt: 'changed', gone: 'deleted_at' }
      expect(await load(b.target, { ...request, rows: both, keep })).toMatchObject({ inserted: 2 })
      const state = () =>
        b.rows(
          'select k, v, deleted_at is not null, deleted_at is null or deleted_at = changed, changed::text, xmin::text from t order by 1',
        )
      const first = await state()
      expect(first.map((row) => row[2])).toEqual([false, false])
      const one = both.slice(0, 1)
      expect(await load(b.target, { ...request, rows: one })).toMatchObject({
        marked: 1,
        updated: 0,
        deleted: 0,
      })
      const marked = await state()
      expect(marked.map((row) => row.slice(0, 4))).toEqual([
        ['a', '1', false, true],
        ['b', '1', true, true],
      ])
      expect(marked[0]).toEqual(first[0])
      expect(marked[1]?.[4]).not.toEqual(first[1]?.[4])
      expect(await load(b.target, { ...request, rows: one })).toMatchObject({ marked: 0, updated: 0 })
      expect(await state()).toEqual(marked)
      expect(await load(b.target, { ...request, rows: both })).toMatchObject({
        inserted: 0,
        updated: 1,
        restored: 1,
        marked: 0,
      })
      const back = await state()
      expect(back.map((row) => row.slice(0, 4))).toEqual([
        ['a', '1', false, true],
        ['b', '1', false, true],
      ])
      expect(back[0]).toEqual(first[0])
      expect(await load(b.target, { ...request, rows: both })).toMatchObject({ updated: 0, restored: 0 })
    })
  }

  test(`a table of nothing but its key is marked and restored; a row refreshed or marked meanwhile is not marked (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (k text primary key, deleted_at timestamptz); create table u (k text primary key, v text, deleted_at timestamptz);
       insert into t values ('a', null), ('b', null); insert into u values ('a', '1', null), ('b', '1', null)`,
    )
    const request = {
      table: 't',
      columns: { k: 'text' },
      write: { strategy: 'upsert', key: ['k'], missing: 'mark' },
      keep: { gone: 'deleted_at' },
    } as const
    expect(await load(b.target, { ...request, rows: [['a']] })).toMatchObject({ marked: 1 })
    expect(await load(b.target, { ...request, rows: [['a'], ['b']] })).toMatchObject({
      updated: 1,
      restored: 1,
    })
    expect(await b.rows('select k, deleted_at from t order by 1')).toEqual([
      ['a', null],
      ['b', null],
    ])
    const refreshed = await load(b.target, {
      ...request,
      table: 'u',
      columns: { k: 'text', v: 'text' },
      rows: [],
      beforeApply: async () =>
        void (await b.run(
          `update u set v = '2' where k = 'a'; update u set deleted_at = '2020-01-01' where k = 'b'`,
        )),
    })
    expect(refreshed).toMatchObject({ marked: 0 })
    expect(await b.rows(`select k, v, deleted_at = '2020-01-01' from u order by 1`)).toEqual([
      ['a', '2', null],
      ['b', '1', true],
    ])
  })

  test(`a new key that another writer has put there and marked meanwhile is restored, a newer mark stays (${name})`, async () => {
    await using b = await bench(url, 'create table t (k text primary key, v bigint, deleted_at timestamptz)')
    const applied = await load(b.target, {
      table: 't',
      columns: { k: 'text', v: 'bigint' },
      write: { strategy: 'upsert', key: ['k'], newest: 'v', missing: 'mark' },
      keep: { gone: 'deleted_at' },
      rows: [
        ['equal', '2'],
        ['newer', '2'],
        ['older', '2'],
      ],
      beforeApply: async () =>
        void (await b.run(
          `insert into t values ('equal', 2, now()), ('newer', 3, now()), ('older', 1, now())`,
        )),
    })
    expect(applied).toMatchObject({ inserted: 0, updated: 2, restored: 2, stale: 1, unchanged: 0 })
    expect(await b.rows('select k, v, deleted_at is null from t order by 1')).toEqual([
      ['equal', '2', true],
      ['newer', '3', false],
      ['older', '2', true],
    ])
  })

  test(`rows without a key are marked by their place (${name})`, async () => {
    await using b = await bench(
      url,
      `create table t (v text, d date, deleted_at timestamptz);
       insert into t values ('x', '2026-08-07'), ('x', '2026-08-07'), ('x', '2026-08-08')`,
    )
    const applied = await load(b.target, {
      table: 't',
      write: { strategy: 'replace-partition', by: 'd', size: 'day', missing: 'mark' },
      columns: { v: 'text', d: 'date' },
      keep: { gone: 'deleted_at' },
      slice: SEVENTH,
      rows: [],
    })
    expect(applied).toMatchObject({ marked: 2 })
    expect(await b.rows('select d::text, deleted_at is null from t order by 1')).toEqual([
      ['2026-08-07', false],
      ['2026-08-07', false],
      ['2026-08-08', true],
    ])
  })

  for (const { how, setup } of [
    { how: 'a unique index', setup: 'create table t (k text primary key, d date, v text)' },
    {
      how: 'a table lock',
      setup: `create table t (k text, d date, v text, primary key (k, d)) partition by range (d);
              create table t_8 partition of t for values from ('2026-08-07') to ('2026-08-09')`,
    },
  ]) {
    test(`G12: in a frozen slice new keys come in, and one that is there meanwhile stays as it is, by ${how} (${name})`, async () => {
      await using b = await bench(url, `${setup}; insert into t values ('a', '2026-08-07', 'then')`)
      for (const write of [DAYS, { strategy: 'upsert', key: ['k'] }] as const) {
        const meanwhile = `meanwhile ${write.strategy}`
        const applied = await load(b.target, {
          table: 't',
          write,
          columns: COLUMNS,
          ...(write.strategy === 'upsert' ? {} : { slice: SEVENTH }),
          frozen: true,
          rows: [
            ['a', '2026-08-07', 'now'],
            [meanwhile, '2026-08-07', 'now'],
            [`new ${write.strategy}`, '2026-08-07', 'now'],
          ],
          beforeApply: async () =>
            void (await b.run(`insert into t values ('${meanwhile}', '2026-08-07', 'theirs')`)),
        })
        expect(applied).toMatchObject({ inserted: 1, updated: 0, frozen: 1, deleted: 0 })
      }
      expect(await b.rows('select k, v from t order by 1')).toEqual([
        ['a', 'then'],
        ['meanwhile replace-partition', 'theirs'],
        ['meanwhile upsert', 'theirs'],
        ['new replace-partition', 'now'],
        ['new upsert', 'now'],
      ])
    })
  }

  test(`a plan shows what would take rows away, within the slice (${name})`, async () => {
    await using b = await bench(
      url,
      'create table t (k text primary key, d date, v text, deleted_at timestamptz)',
    )
    const statements = async (write: WriteStrategy, slice: Slice | null) => {
      await using local = await openLocalEngine()
      await using session = await b.target.open({
        table: 't',
        write,
        local,
        mode: 'plan',
        lockTimeoutMs: 1_000,
        leaseTimeoutMs: 15_000,
        signal: new AbortController().signal,
        notice: () => undefined,
      })
      const request = { table: 't', write, columns: COLUMNS, rows: [], keep: { gone: 'deleted_at' } }
      const contract = contractFor(request, await session.describe())
      await session.prepare(contract)
      await session.begin()
      await session.rowsInScope(contract, slice === null ? { kind: 'table' } : { kind: 'slice', slice })
      return session.statements().join(';\n')
    }
    const within = `t."d" >= '2026-08-07'::date and t."d" < '2026-08-08'::date`
    const replaced = await statements(DAYS, SEVENTH)
    expect(replaced).toMatch(/delete from public\.t/)
    expect(replaced.split(within)).toHaveLength(4)
    const marked = await statements({ ...DAYS, missing: 'mark' }, SEVENTH)
    expect(marked).not.toMatch(/delete from/)
    expect(marked).toMatch(/set "deleted_at" = now\(\)/)
    expect(await statements({ strategy: 'upsert', key: ['k'], missing: 'delete' }, null)).toMatch(
      /delete from/,
    )
    expect(await statements({ strategy: 'upsert', key: ['k'] }, null)).not.toMatch(/delete from|= now\(\)/)
  })
  for (const type of ['json', 'jsonb', 'real', 'double precision', 'xml']) {
    for (const has of ['a table', 'no table yet']) {
      test(`slices by the value of ${type} are refused, with the reason (${has}, ${name})`, async () => {
        await using b = await bench(url, has === 'a table' ? `create table t (k text, b ${type})` : '')
        const write = { strategy: 'replace-partition', by: 'b', size: 'value' } as const
        const slice = sliceNamed('1', 'b', 'value')
        await expect(
          load(b.target, { table: 't', write, columns: { k: 'text', b: type }, slice, rows: [] }),
        ).rejects.toMatchObject({
          code: 'STET_CONFIG',
          message: expect.stringMatching(
            new RegExp(`value of "b": ${type}: (one value|it holds|its values)`),
          ),
        })
      })
    }
  }
}
