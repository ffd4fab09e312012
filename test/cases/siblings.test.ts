import { expect, inject, test } from 'vitest'
import { definePipeline, run, thaw } from '../../src/index.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import { csv } from '../../src/sources/csv/index.ts'
import { json } from '../../src/sources/json/index.ts'
import { rows } from '../../src/sources/rows/index.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { connect, freshDatabase } from '../support/databases.ts'
import { duckdbPlace } from '../support/duckdb-place.ts'
import { brief, casePipeline, eachTarget, loadCase, table, withFiles } from './harness.ts'

/** What the cases have in common with others of their kinds, in other formats, types and doors. */

const upsert: WriteStrategy = { strategy: 'upsert', key: ['id'] }

eachTarget((target, create) => {
  test('036: a document that is a string is another one than the value it spells (G2, G9)', async () => {
    await using place = await create()
    const load = (folder: string, file: string) =>
      loadCase({ place, folder, file, table: 't', write: upsert, columns: { id: 'integer', doc: 'jsonb' } })
    await withFiles(
      {
        'a.jsonl':
          '{"id":1,"doc":1}\n{"id":2,"doc":true}\n{"id":3,"doc":[1]}\n{"id":4,"doc":"x"}\n{"id":5,"doc":null}\n',
        'b.jsonl':
          '{"id":1,"doc":"1"}\n{"id":2,"doc":"true"}\n{"id":3,"doc":"[1]"}\n{"id":4,"doc":"\\u0078"}\n{"id":5,"doc":"null"}\n',
      },
      async (folder) => {
        expect(brief(await load(folder, 'a.jsonl'))).toBe('5/0/0')
        expect(brief(await load(folder, 'b.jsonl'))).toBe('0/4/1')
        expect(brief(await load(folder, 'b.jsonl'))).toBe('0/0/5')
      },
    )
    await place.execute('create view shown as select id, cast(doc as varchar) as doc from t')
    expect(await table(place, 'shown', ['id', 'doc'])).toEqual([
      ['1', '"1"'],
      ['2', '"true"'],
      ['3', '"[1]"'],
      ['4', '"x"'],
      ['5', '"null"'],
    ])
  })

  test('036: what a transform drops is read by its declared type, whatever the table has of that name', async () => {
    await using place = await create()
    await place.execute('create table t (id integer primary key, doc json, v varchar)')
    await withFiles({ 'a.jsonl': '{"id":1,"doc":"x"}\n' }, async (folder) => {
      const pipeline = definePipeline({
        name: 't',
        source: json({ files: 'a.jsonl', columns: { id: 'integer', doc: 'text' } }) as never,
        target: place.target,
        table: 't',
        write: upsert as never,
        transform: {
          row: ({ doc, ...row }: Record<string, unknown>) => ({ ...row, v: doc }),
          adds: { v: 'text' },
          drops: ['doc'],
        } as never,
      })
      await run(pipeline, { cwd: folder })
    })
    expect(await table(place, 't', ['id', 'v'])).toEqual([['1', 'x']])
  })

  test('028: a document is refused as a slice, as a number that rounds is: one value has several names (G3)', async () => {
    await using place = await create()
    for (const [type, value, slice] of [
      ['double precision', '0', '-0.0'],
      ['jsonb', '"{""a"":1}"', '{"a": 1}'],
    ] as const) {
      await withFiles({ 'a.csv': `id,v\n1,${value}\n` }, async (folder) => {
        const pipeline = definePipeline({
          name: 't',
          source: csv({ files: 'a.csv', columns: { id: 'text', v: type } }) as never,
          target: place.target,
          table: 't',
          write: { strategy: 'replace-partition', by: 'v', size: 'value' } as never,
        })
        await expect(run(pipeline, { cwd: folder, slice })).rejects.toMatchObject({ code: 'STET_CONFIG' })
      })
    }
    expect(await place.count('t')).toBe(0)
  })

  test('067: one table spelled in two ways has one record: what is frozen stays frozen (G7, G12)', async () => {
    await using place = await create()
    const spellings =
      target === 'DuckDB' ? ['"Orders"', 'orders', 'main.ORDERS'] : ['orders', 'public.Orders']
    for (const [position, spelling] of spellings.entries()) {
      const load = {
        name: 't',
        target: place.target,
        table: spelling,
        write: upsert as never,
        truth: 'snapshot',
      } as const
      await withFiles({ 'a.csv': `id,v\n1,${position}\n` }, async (folder) => {
        const source = csv({ files: 'a.csv' }) as never
        const { counts } = await run(definePipeline({ ...load, source }), { cwd: folder })
        expect(counts).toMatchObject(position === 0 ? { inserted: 1 } : { updated: 0, frozen: 1 })
      })
    }
    expect(await table(place, 'orders', ['v'])).toEqual([['0']])
  })

  test('027: a thaw counts also when a run was under way that had found the slice frozen (G12)', async () => {
    await using place = await create()
    const held: { begun?: () => void; gate?: Promise<void> } = {}
    const pipeline = (v: string) =>
      definePipeline({
        name: 't',
        source: rows({
          columns: { id: 'text', v: 'text' },
          rows: async function* () {
            yield { id: '1', v }
            held.begun?.()
            await held.gate
          },
        }),
        target: place.target,
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
        truth: 'snapshot',
      })
    await run(pipeline('first'))
    let open = () => {}
    held.gate = new Promise((resolve) => {
      open = resolve
    })
    const begun = new Promise<void>((resolve) => {
      held.begun = resolve
    })
    const slow = run(pipeline('second'))
    await begun
    const thawed = thaw(pipeline('third'), [], { by: 'somebody@here' })
    // It has to wait: the run would freeze again what was thawed under it. One that does not wait answers at once.
    const early = await Promise.race([thawed.then(() => 'thawed' as const), settled(500)])
    open()
    expect((await slow).counts).toMatchObject({ frozen: 1, updated: 0 })
    expect(early).toBe('waiting')
    expect((await thawed).slices).toEqual([{ slice: expect.anything(), thawed: true }])
    expect((await run(pipeline('third'))).counts).toMatchObject({ updated: 1 })
  })

  test('the place of a value that only the target refuses is told, however it is spelled (G9)', async () => {
    await using place = await create()
    if (target === 'DuckDB') {
      await place.execute('create table t (id varchar primary key, moment timestamptz, v integer)')
    } else {
      await place.execute(`create type mood as enum ('sad', 'ok')`)
      await place.execute('create table t (id varchar primary key, moment mood, v integer)')
    }
    const bad = target === 'DuckDB' ? '294276-12-31T23:59:59Z' : 'grey'
    const good = target === 'DuckDB' ? '2025-01-01T00:00Z' : 'ok'
    await withFiles(
      { 'in.csv': `id,moment,v\na,${good},1\nb,${bad},x\nc,${bad},1\nd,${bad},1\n` },
      async (folder) => {
        const pipeline = (maxRejects: number) =>
          definePipeline({
            name: 't',
            source: csv({ files: 'in.csv' }) as never,
            target: place.target,
            table: 't',
            write: upsert as never,
            maxRejects,
            onReject: maxRejects === 0 ? 'fail' : 'quarantine',
          })
        const error = await run(pipeline(0), { cwd: folder }).catch((failure: unknown) => failure)
        expect(String(error)).toContain(`in.csv:4 moment "${bad}"`)
        const { counts } = await run(pipeline(3), { cwd: folder })
        expect(counts).toMatchObject({ inserted: 1, rejected: 3 })
      },
    )
    const kept = await table(place, 'stet.quarantine', ['line', 'column_name'])
    // Line 3 was refused for its number before the target was asked.
    expect(kept).toEqual([
      ['3', 'v'],
      ['4', 'moment'],
      ['5', 'moment'],
    ])
  })

  test('075: a document without records is a quiet day or an empty source, as a header without rows is (G10)', async () => {
    await using place = await create()
    await withFiles(
      {
        'full.json': '[{"id":"1","v":"a"},{"id":"2","v":"b"}]',
        'none.json': '[]',
        'none.jsonl': '',
        'bare.json': '[{}]',
      },
      async (folder) => {
        const load = (file: string, into: string, write: WriteStrategy) =>
          loadCase({ place, folder, file, table: into, write })
        const deletes: readonly WriteStrategy[] = [
          { strategy: 'upsert', key: ['id'], missing: 'delete' },
          { strategy: 'replace-table', key: ['id'] },
          { strategy: 'replace-table' },
        ]
        await load('full.json', 't', upsert)
        for (const file of ['none.json', 'none.jsonl']) {
          expect(await load(file, 't', upsert)).toMatchObject({
            verdict: 'nothing read',
            counts: { read: 0 },
          })
          for (const [position, write] of deletes.entries()) {
            await load('full.json', `t${position}`, write)
            await expect(load(file, `t${position}`, write)).rejects.toMatchObject({
              code: 'STET_DELETE_GUARD',
            })
            expect(await place.count(`t${position}`)).toBe(2)
          }
          await expect(load(file, 'fresh', upsert)).rejects.toMatchObject({ code: 'STET_SOURCE' })
        }
        const emptied = await load('none.json', 't2', { strategy: 'replace-table', allowEmpty: true })
        expect(emptied.counts).toMatchObject({ deleted: 2 })
        for (const write of [upsert, { strategy: 'replace-table' } as const]) {
          await expect(load('bare.json', 't', write)).rejects.toMatchObject({ code: 'STET_COLUMNS' })
        }
      },
    )
  })

  test('039: keys that differ in case are two, also in a column that takes them for equal', async () => {
    if (target === 'PostgreSQL') return
    await using place = await create()
    await place.execute('create table t (name varchar collate nocase, v integer)')
    await withFiles({ 'a.csv': 'name,v\nAb,1\nAB,2\n', 'b.csv': 'name,v\nAb,1\nAB,3\n' }, async (folder) => {
      const load = (file: string) =>
        loadCase({ place, folder, file, table: 't', write: { strategy: 'upsert', key: ['name'] } })
      expect(brief(await load('a.csv'))).toBe('2/0/0')
      expect(brief(await load('b.csv'))).toBe('0/1/1')
      expect(brief(await load('b.csv'))).toBe('0/0/2')
    })
  })
})

test('039: names of columns in another case are the same ones to DuckDB, whose types decide', async () => {
  await using place = await duckdbPlace()
  await place.execute('create table t (ID integer, "Amount" decimal(10,2), Moment timestamp)')
  await withFiles(
    {
      'a.csv': 'id,amount,moment\n07,1.50,2025-01-01\n',
      'b.csv': 'ID,Amount,Moment\n7,1.5,2025-01-01 00:00:00\n',
      'c.csv': 'id,amount,moment\n7,1.555,2025-01-01\n',
      'd.csv': 'id,ID,amount\n7,8,1\n',
    },
    async (folder) => {
      const load = (file: string, key: string) =>
        run(
          definePipeline({
            name: 't',
            source: csv({ files: file }) as never,
            target: place.target as never,
            table: 't',
            write: { strategy: 'upsert', key: [key] } as never,
          }),
          { cwd: folder },
        )
      expect(brief(await load('a.csv', 'id'))).toBe('1/0/0')
      expect(brief(await load('a.csv', 'id'))).toBe('0/0/1')
      expect(brief(await load('b.csv', 'ID'))).toBe('0/0/1')
      await expect(load('c.csv', 'id')).rejects.toMatchObject({ code: 'STET_REJECTED' })
      await expect(load('d.csv', 'id')).rejects.toMatchObject({ code: 'STET_COLUMNS' })
    },
  )
})

function settled(milliseconds: number): Promise<'waiting'> {
  return new Promise((resolve) => setTimeout(() => resolve('waiting'), milliseconds))
}

test('018: NaN and infinities in a query of the target do not move the watermark out of reach (G4)', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  await using connection = await connect(url)
  const { client } = connection
  await client.query(
    `create table raw (id integer, n numeric); insert into raw values (1, 1.5), (2, 'NaN'), (3, 'Infinity')`,
  )
  const db = postgres({ url })
  const pipeline = definePipeline({
    name: 't',
    source: db.query('select id, n from raw'),
    target: db,
    table: 't',
    write: { strategy: 'upsert', key: ['id'] } as never,
    incremental: { cursor: 'n' } as never,
  })
  expect(brief(await run(pipeline))).toBe('3/0/0')
  const marks = await client.query('select value from stet.watermark')
  expect(marks.rows).toEqual([{ value: '1.5' }])
  await client.query('insert into raw values (4, 2.5)')
  expect((await run(pipeline)).counts).toMatchObject({ inserted: 1 })
})

test('a first load makes no table whose key every later load would refuse (G1)', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  for (const type of ['double precision', 'real', 'json', 'jsonb', 'interval']) {
    const value = type.startsWith('json') ? '[1]' : type === 'interval' ? '1 day' : '1'
    await withFiles({ 'a.csv': `id,v\n${value},1\n` }, async (folder) => {
      const pipeline = casePipeline({
        place: { target: postgres({ url }) },
        file: 'a.csv',
        table: 't',
        write: upsert,
        columns: { id: type, v: 'integer' },
      })
      await expect(run(pipeline, { cwd: folder }), type).rejects.toMatchObject({
        code: 'STET_KEY_CONSTRAINT',
      })
    })
  }
})

test('012: the constraint that is asked for is one that a partitioned table can have', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  await using connection = await connect(url)
  await connection.client.query(
    'create table t (id text not null, day date not null) partition by range (day); create table t_all partition of t default',
  )
  await withFiles({ 'a.csv': 'id,day\n1,2025-01-01\n' }, async (folder) => {
    const pipeline = casePipeline({
      place: { target: postgres({ url }) },
      file: 'a.csv',
      table: 't',
      write: upsert,
    })
    const error = await run(pipeline, { cwd: folder }).catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'STET_KEY_CONSTRAINT' })
    const statement = String((error as { hint?: string }).hint).replace('Run: ', '')
    await connection.client.query(statement)
    expect(brief(await run(pipeline, { cwd: folder }))).toBe('1/0/0')
  })
})

test('a column that every table of PostgreSQL has already is refused by name', async () => {
  const url = await freshDatabase(inject('postgresUrl'))
  await withFiles({ 'a.csv': 'id,ctid\n1,2\n' }, async (folder) => {
    const pipeline = casePipeline({
      place: { target: postgres({ url }) },
      file: 'a.csv',
      table: 't',
      write: upsert,
    })
    const error = await run(pipeline, { cwd: folder }).catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'STET_COLUMNS' })
    expect(String(error)).toContain('"ctid"')
  })
})
