import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import { quoteLiteral } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { OpenSource, SourceContext } from '../../model/source.ts'
import { parquet } from './index.ts'

const FLIGHTS = fileURLToPath(
  new URL('../../../node_modules/vega-datasets/data/flights-3m.parquet', import.meta.url),
)

let engine: LocalEngine
let folder: string

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-parquet-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

function contextOf(): SourceContext {
  return { local: engine, cwd: folder, signal: new AbortController().signal, progress: () => undefined }
}

/** Writes the answer of a query as a Parquet file. */
async function put(name: string, query: string, options = ''): Promise<string> {
  const path = join(folder, name)
  await engine.run(`copy (${query}) to ${quoteLiteral(path)} (format parquet${options})`)
  return path
}

/** Changes some bytes of a file into others of the same number. */
async function patch(path: string, from: string, to: string): Promise<void> {
  const bytes = (await readFile(path)).toString('latin1')
  expect(bytes).toContain(from)
  await writeFile(path, Buffer.from(bytes.replaceAll(from, to), 'latin1'))
}

async function valuesOf(open: OpenSource, wanted = open.fields.map(({ name }) => name)) {
  const values: unknown[][] = []
  for (const part of open.parts) {
    const result = await engine.duckdb.runAndReadAll(part.select(wanted))
    values.push(...result.getRows())
  }
  return values
}

const typesOf = (open: OpenSource) => open.fields.map(({ type }) => type && formatColumnType(type))

describe('values', () => {
  test.each([
    ['(-128)::tinyint', 'smallint', '-128'],
    ['65535::usmallint', 'integer', '65535'],
    ['4294967295::uinteger', 'bigint', '4294967295'],
    ['9223372036854775807', 'bigint', '9223372036854775807'],
    ['18446744073709551615::ubigint', 'numeric(20,0)', '18446744073709551615'],
    ['1.50::decimal(12,2)', 'numeric(12,2)', '1.50'],
    [
      '-1234567890123456789.0123456789012345678::decimal(38,19)',
      'numeric(38,19)',
      '-1234567890123456789.0123456789012345678',
    ],
    ['0.1::float', 'real', '0.10000000149011612'],
    ['0.5::float', 'real', '0.5'],
    [`'nan'::float`, 'real', 'NaN'],
    ['0.1::double', 'double precision', '0.1'],
    ['1::double', 'double precision', '1'],
    [`'-0'::double`, 'double precision', '-0'],
    ['1e-320::double', 'double precision', '1e-320'],
    [`'nan'::double`, 'double precision', 'NaN'],
    [`'inf'::double`, 'double precision', 'Infinity'],
    [`'-inf'::double`, 'double precision', '-Infinity'],
    ['true', 'boolean', 'true'],
    [`'007'`, 'text', '007'],
    [`''`, 'text', ''],
    [`'a' || chr(0) || 'b'`, 'text', 'a\0b'],
    [`'b'::enum('a', 'b')`, 'text', 'b'],
    [`'\\x00\\xFFab'::blob`, 'bytea', '\\x00ff6162'],
    [`'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid`, 'uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    [`date '2024-02-29'`, 'date', '2024-02-29'],
    [`'0044-03-15 (BC)'::date`, 'date', '0044-03-15 BC'],
    [`date '12000-01-01'`, 'date', '12000-01-01'],
    [`time '10:00:00.12'`, 'time', '10:00:00.12'],
    [`'10:00:00+02'::timetz`, 'timetz', '08:00:00+00'],
    [`timestamp '2024-01-01 10:00:00.123456'`, 'timestamp', '2024-01-01 10:00:00.123456'],
    [`'0044-03-15 (BC) 10:00:00'::timestamp`, 'timestamp', '0044-03-15 10:00:00 BC'],
    [`'2024-01-01 10:00:00.5'::timestamp_ms`, 'timestamp', '2024-01-01 10:00:00.5'],
    [`'2024-01-01 10:00:00.123456789'::timestamp_ns`, 'timestamp', '2024-01-01 10:00:00.123456789'],
    [`'2024-01-01 10:00:00.123456'::timestamp_ns`, 'timestamp', '2024-01-01 10:00:00.123456'],
    [`timestamptz '2024-01-01 10:00:00+02'`, 'timestamptz', '2024-01-01 08:00:00+00'],
    [`timestamptz '0044-03-15 (BC) 10:00:00+00'`, 'timestamptz', '0044-03-15 10:00:00+00 BC'],
    [`interval '1 year 2 months 3 days 04:05:06.7'`, 'interval', '1 year 2 mons 3 days 04:05:06.7'],
    [`'{"b":1,  "a":1.0}'::json`, 'jsonb', '{"b":1,  "a":1.0}'],
    ['[1, null, 3]', 'jsonb', '[1,null,3]'],
    [`{a: 1, b: 'x"y'}`, 'jsonb', '{"a":1,"b":"x\\"y"}'],
    [`map {'k': 9223372036854775807}`, 'jsonb', '{"k":9223372036854775807}'],
    [
      '[1234567890123456789.0123456789012345678::decimal(38,19)]',
      'jsonb',
      '[1234567890123456789.0123456789012345678]',
    ],
  ])('%s is %s with the text %s', async (value, type, text) => {
    await put('one.parquet', `select ${value} as v union all select null`)
    await using open = await parquet({ files: 'one.parquet' }).open(contextOf())
    expect(await valuesOf(open)).toEqual([[text], [null]])
    expect(typesOf(open)).toEqual([type])
  })

  test('of a real are the same real and the same double when they are read back', async () => {
    const wrong = `select count(*) from numbers where text::float is distinct from f or text::double is distinct from f::double`
    await put('reals.parquet', 'select (random() * pow(10, i % 60 - 30))::float as f from range(5000) t(i)')
    await using open = await parquet({ files: 'reals.parquet' }).open(contextOf())
    await engine.run(
      `create or replace temp table numbers as
       select * from (select f from read_parquet(${quoteLiteral(join(folder, 'reals.parquet'))}))
         positional join (select c0 as text from (${open.parts[0]?.select(['f'])}))`,
    )
    expect(await engine.count(wrong)).toBe(0)
    await engine.run('drop table numbers')
  })

  test('in nanoseconds of an instant are refused, which the reader would cut in silence (G9)', async () => {
    const path = await put(
      'ns.parquet',
      `select {a: [1], b: {c: 2}} as id, '2024-01-01 10:00:00.123456789'::timestamp_ns as at`,
    )
    // The file's schema: not adjusted to UTC becomes adjusted.
    await patch(path, '\x12\x1c\x3c\0\0\0', '\x11\x1c\x3c\0\0\0')
    await using open = await parquet({ files: 'ns.parquet' }).open(contextOf())
    expect(await valuesOf(open, ['id'])).toEqual([['{"a":[1],"b":{"c":2}}']])
    await expect(valuesOf(open, ['id', 'at'])).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: expect.stringContaining('"at" holds instants in nanoseconds'),
    })
  })
})

describe('columns', () => {
  // The engine writes no such files: what it wrote is changed in the file's schema, and the data with it means another number.
  test.each([
    ['a decimal', '123::decimal(38,2)'],
    ['a decimal in a list', '[123::decimal(38,2)]'],
    ['a decimal in a struct', '{a: 1, d: 123::decimal(38,2)}'],
  ])(
    'with more digits than can be read are refused, which would become other numbers: %s (G9)',
    async (_, value) => {
      const path = await put('wide.parquet', `select 1 as id, ${value} as v`)
      await patch(path, '\x15\x04\x15\x4c', '\x15\x04\x15\x4e')
      await using open = await parquet({ files: 'wide.parquet' }).open(contextOf())
      expect(await valuesOf(open, ['id'])).toEqual([['1']])
      await expect(valuesOf(open, ['id', 'v'])).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringContaining('its column "v" holds decimals of 39 digits'),
        hint: expect.stringContaining('leave the column out'),
      })
    },
  )

  test.each([
    ['of a struct', '{field_x: 1, other: [1], field_y: 2}'],
    ['of a struct in a list', '[{other: {a: 1}, field_x: 1, field_y: 2}]'],
  ])(
    'with fields %s that differ in case only are refused, of which one would be called otherwise (G9)',
    async (_, value) => {
      await patch(await put('twins.parquet', `select 1 as id, ${value} as v`), 'field_y', 'Field_X')
      await using open = await parquet({ files: 'twins.parquet' }).open(contextOf())
      expect(await valuesOf(open, ['id'])).toEqual([['1']])
      await expect(valuesOf(open, ['v'])).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringContaining('"v" holds the fields "field_x" and "Field_X"'),
      })
    },
  )

  test('with one name in two groups, in any case, are read', async () => {
    await put('a.parquet', 'select {a: {x: 1}, b: {X: 2}, x: 3} as v, 4 as "X"')
    await using open = await parquet({ files: 'a.parquet' }).open(contextOf())
    expect(await valuesOf(open, ['v', 'X'])).toEqual([['{"a":{"x":1},"b":{"X":2},"x":3}', '4']])
  })

  test('that their writer calls null are text, since nobody knows yet what they will hold', async () => {
    await patch(await put('a.parquet', 'select 1 as id, null::uuid as v'), '\xec\0\0', '\xbc\0\0')
    await using open = await parquet({ files: 'a.parquet' }).open(contextOf())
    expect(typesOf(open)).toEqual(['integer', 'text'])
    expect(await valuesOf(open)).toEqual([['1', null]])
  })
})

describe('files', () => {
  test('are matched by name, whatever the order of their columns', async () => {
    await put('a.parquet', 'select 1 as id, 2 as n')
    await put('b.parquet', `select 4::bigint as n, 3 as id, 'x' as extra`)
    await using open = await parquet({ files: ['a.parquet', 'b.parquet'] }).open(contextOf())
    expect(open.fields.map(({ name }) => name)).toEqual(['id', 'n', 'extra'])
    // Files that do not agree on a type leave it open.
    expect(typesOf(open)).toEqual(['integer', undefined, 'text'])
    expect(await valuesOf(open, ['id', 'n'])).toEqual([
      ['1', '2'],
      ['3', '4'],
    ])
    expect(open.files.map(({ path }) => path)).toEqual(['a.parquet', 'b.parquet'])
  })

  test('that lack a wanted column are refused by name', async () => {
    await put('a.parquet', 'select 1 as id, 2 as n')
    await put('b.parquet', 'select 3 as id, 4 as "N"')
    await using open = await parquet({ files: '*.parquet' }).open(contextOf())
    await expect(valuesOf(open, ['id', 'n'])).rejects.toMatchObject({
      code: 'STET_COLUMNS',
      message: 'Cannot read "b.parquet": it has no column "n"',
      hint: expect.stringContaining('id, N'),
    })
  })

  test('may have names that differ in case only, and folders and names that look like patterns', async () => {
    await mkdir(join(folder, 'year=2024'))
    const path = await put('year=2024/a[1]*.parquet', 'select 1 as "Column_x", 2 as column_y, 3 as "a.b"')
    await put('year=2024/a1.parquet', 'select 9 as "Column_x"')
    await patch(path, 'column_y', 'column_x')
    await using open = await parquet({ files: 'year=2024/a[1]*.parquet' }).open(contextOf())
    expect(open.fields.map(({ name }) => name)).toEqual(['Column_x', 'column_x', 'a.b'])
    expect(await valuesOf(open, ['column_x', 'Column_x', 'a.b'])).toEqual([['2', '1', '3']])
    expect(await open.parts[0]?.locate([1])).toEqual([
      { line: 1, raw: '{"Column_x":"1","column_x":"2","a.b":"3"}' },
    ])
  })

  test('with two columns of one name are refused', async () => {
    await patch(await put('a.parquet', 'select 1 as column_x, 2 as column_y'), 'column_y', 'column_x')
    await expect(parquet({ files: 'a.parquet' }).open(contextOf())).rejects.toMatchObject({
      code: 'STET_COLUMNS',
      message: 'Cannot read "a.parquet": it has two columns "column_x"',
    })
  })

  test('in an archive are read out of it', async () => {
    await writeFile(
      join(folder, 'a.parquet.gz'),
      gzipSync(await readFile(await put('a.parquet', 'select 1 as id'))),
    )
    await using open = await parquet({ files: 'a.parquet.gz' }).open(contextOf())
    expect(await valuesOf(open)).toEqual([['1']])
  })

  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, -20)],
    ['empty', () => Buffer.alloc(0)],
    ['no Parquet', () => Buffer.from('id,name\n1,x\n')],
    // In the pages of one column; the footer says nothing of it.
    ['damaged', (bytes: Buffer) => Buffer.from(bytes).fill(0xff, 5_000_000, 5_001_000)],
  ])('that are %s are refused by name before anything is landed', async (_, damage) => {
    await writeFile(join(folder, 'bad.parquet'), damage(await readFile(FLIGHTS)))
    await expect(parquet({ files: 'bad.parquet' }).open(contextOf())).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: expect.stringMatching(/^Cannot read "bad.parquet" as Parquet: /),
    })
  })

  test('with text that is no UTF-8 are refused by name', async () => {
    await patch(await put('a.parquet', `select 'aXb' as v`, ', compression uncompressed'), 'aXb', 'a\xffb')
    await expect(parquet({ files: 'a.parquet' }).open(contextOf())).rejects.toMatchObject({
      code: 'STET_SOURCE',
    })
  })

  test('that change while they are read fail the run (G9)', async () => {
    await put('a.parquet', 'select 1 as id')
    await using open = await parquet({ files: 'a.parquet' }).open(contextOf())
    await open.verify()
    await put('a.parquet', 'select 2 as id')
    await expect(open.verify()).rejects.toMatchObject({ code: 'STET_SOURCE_CHANGED' })
  })

  test('without rows are an empty source with columns', async () => {
    await put('a.parquet', 'select 1 as id where false')
    await using open = await parquet({ files: 'a.parquet' }).open(contextOf())
    expect(open.fields.map(({ name }) => name)).toEqual(['id'])
    expect(await valuesOf(open)).toEqual([])
  })

  test('say where a row stands by its number, with the order of rows given up for speed', async () => {
    await put('a.parquet', 'select i as id from range(300000) t(i)', ', row_group_size 10000')
    await using open = await parquet({ files: 'a.parquet' }).open(contextOf())
    await engine.run('set preserve_insertion_order = false')
    const places = await open.parts[0]?.locate([1, 250_000])
    await engine.run('set preserve_insertion_order = true')
    expect(places).toEqual([
      { line: 1, raw: '{"id":"0"}' },
      { line: 250_000, raw: '{"id":"249999"}' },
    ])
  })

  test('of three million flights are read whole', async () => {
    await copyFile(FLIGHTS, join(folder, 'flights.parquet'))
    await using open = await parquet({ files: 'flights.parquet' }).open(contextOf())
    expect(open.fields.map(({ name }) => name)).toEqual([
      'date',
      'delay',
      'distance',
      'origin',
      'destination',
    ])
    expect(typesOf(open)).toEqual(['timestamp', 'bigint', 'bigint', 'text', 'text'])
    const select = open.parts[0]?.select(['date', 'delay', 'origin'])
    const [row] = await engine.rows(
      `select count(*)::varchar as n, min(c0) as first, sum(c1::bigint)::varchar as delay, count(distinct c2)::varchar as origins
         from (${select})`,
    )
    const [direct] = await engine.rows(
      `select count(*)::varchar as n, strftime(min(date), '%Y-%m-%d %H:%M:%S') as first, sum(delay)::varchar as delay,
              count(distinct origin)::varchar as origins
         from read_parquet(${quoteLiteral(FLIGHTS)})`,
    )
    expect(row).toEqual(direct)
    expect(row?.n).toBe('3000000')
  })
})
