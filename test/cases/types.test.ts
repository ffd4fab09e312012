import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { definePipeline, run } from '../../src/index.ts'
import type { Columns } from '../../src/model/columns.ts'
import { literalRows } from '../../src/testing/index.ts'
import { brief, type CasePlace, caseFolder, eachTarget, loadCase, table } from './harness.ts'

eachTarget((target, create) => {
  const loader = (place: CasePlace, name: string, key: string, columns?: Columns) => (file: string) =>
    loadCase({
      place,
      folder: caseFolder(name),
      file,
      table: 't',
      write: { strategy: 'upsert', key: [key] },
      columns,
    })

  if (target === 'PostgreSQL') {
    test('028: integers past 2^53, long decimals and JSON numbers keep every digit (G9)', async () => {
      const name = '028-integers-past-2-53-and-exact-decimals'
      await using place = await create()
      await place.execute('create table t (id bigint primary key, amount numeric, doc jsonb)')
      const load = loader(place, name, 'id')
      expect(brief(await load('rows.jsonl'))).toBe('5/0/0')
      await place.execute(
        `create view shown as select id::text, amount::text, (doc->>'n')::numeric as n from t`,
      )
      expect(await table(place, 'shown', ['id', 'amount'])).toEqual([
        ['-9223372036854775808', '294733346389144765940638005275322203805'],
        ['7', '1.10'],
        ['9007199254740992', '0.1'],
        ['9007199254740993', '12345678901234567890.12345'],
        ['9223372036854775807', '-0.000000000000000001'],
      ])
      await place.execute(
        `do $$ begin assert (select doc->>'n' from t where id = 9007199254740992) = '9007199254740993'; end $$`,
      )
      await place.execute(
        `do $$ begin assert (select (doc->>'n')::numeric from t where id = 9007199254740993) = 1e400; end $$`,
      )
      expect(brief(await load('rows.jsonl'))).toBe('0/0/5')
      expect(brief(await load('rows_scale.jsonl'))).toBe('0/0/5')
      expect(brief(await load('rows_diff.jsonl'))).toBe('0/1/4')
    })
  } else {
    test('028: what DuckDB cannot hold is refused by name, and nothing is rounded (G9)', async () => {
      const name = '028-integers-past-2-53-and-exact-decimals'
      await using place = await create()
      const bare = loader(place, name, 'id', { id: 'bigint', amount: 'numeric', doc: 'json' })
      await expect(bare('rows.jsonl')).rejects.toMatchObject({ code: 'STET_CONFIG' })
      const narrow = loader(place, name, 'id', { id: 'bigint', amount: 'numeric(38,18)', doc: 'json' })
      await expect(narrow('rows.jsonl')).rejects.toMatchObject({ code: 'STET_REJECTED' })
      expect(await place.count('t')).toBe(0)
      const text = loader(place, name, 'id', { id: 'bigint', amount: 'text', doc: 'json' })
      expect(brief(await text('rows.jsonl'))).toBe('5/0/0')
      expect(brief(await text('rows.jsonl'))).toBe('0/0/5')
    })
  }

  test('030: the same instant with another offset is no change, a microsecond is (G2)', async () => {
    const name = '030-same-instant-written-with-another-offset'
    await using place = await create()
    const load = loader(place, name, 'id', { id: 'text', at: 'timestamptz' })
    expect(brief(await load('utc.csv'))).toBe('4/0/0')
    if (place.name === 'PostgreSQL') {
      await place.execute(
        `do $$ begin execute format('alter database %I set timezone to ''Asia/Tokyo''', current_database()); end $$`,
      )
    }
    expect(brief(await load('offsets.csv'))).toBe('0/0/4')
    expect(brief(await load('moved.csv'))).toBe('0/1/3')
    const error = await load('bad.csv').catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'STET_REJECTED', exitStatus: 4 })
    expect(String(error)).toContain('bad.csv:3')
    expect(await place.count('t')).toBe(4)
  })

  test('031: NaN and infinities stay what they are, and a rerun sees no change (G2, G9)', async () => {
    const name = '031-nan-infinity-and-minus-zero'
    await using place = await create()
    const load = loader(place, name, 'id', { id: 'integer', x: 'double precision' })
    expect(brief(await load('floats.csv'))).toBe('6/0/0')
    expect(brief(await load('floats.csv'))).toBe('0/0/6')
    expect(brief(await load('floats.csv'))).toBe('0/0/6')
    const minus = await load('minus.csv')
    expect(minus.counts.updated).toBeLessThanOrEqual(1)
    expect(brief(await load('minus.csv'))).toBe('0/0/6')
    const spelled = place.name === 'PostgreSQL' ? ['NaN', 'Infinity', '-Infinity'] : ['nan', 'inf', '-inf']
    await place.execute('create view shown as select id, cast(x as varchar) as x from t')
    const shown = new Map((await table(place, 'shown', ['id', 'x'])).map(([id, x]) => [id, x]))
    expect([shown.get('1'), shown.get('2'), shown.get('3')]).toEqual(spelled)
    expect(Number(shown.get('6'))).toBe(1e-320)
  })

  test('034: a byte order mark, CRLF and UTF-16 are the same list (G2)', async () => {
    const name = '034-byte-order-mark-and-crlf'
    await using place = await create()
    const load = loader(place, name, 'order_no')
    expect(brief(await load('plain.csv'))).toBe('3/0/0')
    expect(brief(await load('excel.csv'))).toBe('0/0/3')
    expect(brief(await load('excel16.csv'))).toBe('0/0/3')
    expect(await table(place, 't', ['order_no', 'city'])).toEqual([
      ['1001', 'Graz'],
      ['1002', 'Ålesund'],
      ['1003', 'in\u{FEFF}side'],
    ])
  })

  test('036: key order, spacing, escapes and number spelling of JSON are no change; list order is (G2)', async () => {
    const name = '036-json-document-with-other-key-order'
    await using place = await create()
    const load = loader(place, name, 'id', { id: 'integer', doc: 'jsonb' })
    expect(brief(await load('a.jsonl'))).toBe('6/0/0')
    expect(brief(await load('b.jsonl'))).toBe('0/2/4')
    expect(brief(await load('b.jsonl'))).toBe('0/0/6')
  })

  test('036: in a text column that is not declared as JSON the exact text counts', async () => {
    const name = '036-json-document-with-other-key-order'
    await using place = await create()
    const load = loader(place, name, 'id', { id: 'integer', doc: 'text' })
    expect(brief(await load('a.jsonl'))).toBe('6/0/0')
    expect(brief(await load('b.jsonl'))).toBe('0/6/0')
  })

  test('a record that alone has a column, and is refused, is a reject and no defect (G9)', async () => {
    await using place = await create()
    const folder = await mkdtemp(join(tmpdir(), 'stet-case-'))
    try {
      await writeFile(join(folder, 'in.json'), '[{"id":1,"c":"x","c":"y"}]')
      const load = {
        place,
        folder,
        file: 'in.json',
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
      } as const
      await expect(loadCase(load)).rejects.toMatchObject({ code: 'STET_REJECTED' })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('a correction that the column itself takes for no difference is written, once (G1, G2)', async () => {
    await using place = await create()
    const nocase = target === 'DuckDB' ? 'varchar collate nocase' : 'varchar'
    await place.execute(`create table t (id int primary key, i interval, v ${nocase})`)
    const load = (i: string, v: string) =>
      run(
        definePipeline({
          name: 't',
          source: literalRows({ id: 'text', i: 'text', v: 'text' }, [['1', i, v]]),
          target: place.target,
          table: 't',
          write: { strategy: 'upsert', key: ['id'] },
        }),
      )
    expect(brief(await load('1 day', 'a'))).toBe('1/0/0')
    expect(brief(await load('24:00:00', 'A'))).toBe('0/1/0')
    expect(brief(await load('24:00:00', 'A'))).toBe('0/0/1')
    expect(await table(place, 't', ['i', 'v'])).toEqual([['24:00:00', 'A']])
  })

  if (target === 'PostgreSQL') {
    test('clock words and lost digits inside types of the server are rejects too (G9)', async () => {
      const bad: readonly [string, string][] = [
        ['timestamptz[]', '{now}'],
        ['date[]', '{today}'],
        ['tstzrange', '[now,infinity)'],
        ['daterange', '[today,tomorrow)'],
        ['money', '1.505'],
        ['name', 'a'.repeat(64)],
        ['oid', '-1'],
        ['interval', '0.0000001 sec'],
        ['timetz', '10:00:00.1234567+00'],
        ['timestamp[]', '{2024-01-01 00:00:00.1234567}'],
      ]
      await using place = await create()
      for (const [position, [type, value]] of bad.entries()) {
        await place.execute(`create table t${position} (id text primary key, v ${type})`)
        const pipeline = definePipeline({
          name: 't',
          source: literalRows({ id: 'text', v: 'text' }, [['1', value]]),
          target: place.target,
          table: `t${position}`,
          write: { strategy: 'upsert', key: ['id'] },
        })
        await expect(run(pipeline), `${type} ${value}`).rejects.toMatchObject({ code: 'STET_REJECTED' })
      }
    })
  }
})
