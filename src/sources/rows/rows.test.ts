import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import type { Columns } from '../../model/columns.ts'
import type { OpenSource, Source, SourceContext } from '../../model/source.ts'
import { type Row, type Rows, rows } from './index.ts'

let engine: LocalEngine

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())

function contextOf(signal: AbortSignal = new AbortController().signal): SourceContext {
  return { local: engine, cwd: '/', signal, progress: () => undefined }
}

/** What a loader would read, and what the source refused. */
async function read(source: Source, wanted = Object.keys(source.columns ?? {})) {
  await using open = await source.open(contextOf())
  return await contentOf(open, wanted)
}

async function contentOf(open: OpenSource, wanted: readonly string[]) {
  const [part] = open.parts
  if (part === undefined) throw new Error('no part')
  const result = await engine.duckdb.runAndReadAll(part.select(wanted))
  return { values: result.getRows(), rejects: await part.rejects() }
}

/** Rows as a program without types gives them. */
function untyped(columns: Columns, given: readonly unknown[]): Source {
  return rows({ columns, rows: () => given as Rows })
}

describe('values', () => {
  test('become their exact text; undefined and null are NULL, an empty string is not', async () => {
    const source = rows({
      columns: { a: 'text', b: 'numeric', c: 'bigint', d: 'boolean' },
      rows: () => [
        { a: '', b: 0.1, c: 9223372036854775807n, d: true },
        { a: '007', b: 1e-7, c: -5, d: false },
        { a: 'a\0b', b: -1.5e-8, c: 9007199254740991, d: null },
        { a: undefined, b: -0, c: null, d: null },
      ],
    })
    expect(await read(source)).toEqual({
      values: [
        ['', '0.1', '9223372036854775807', 'true'],
        ['007', '0.0000001', '-5', 'false'],
        ['a\0b', '-0.000000015', '9007199254740991', null],
        [null, '0', null, null],
      ],
      rejects: [],
    })
  })

  test('of floating point columns may be NaN, infinite, minus zero and beyond 2^53', async () => {
    const source = rows({
      columns: { x: 'double precision' },
      rows: () => [
        { x: Number.NaN },
        { x: Number.POSITIVE_INFINITY },
        { x: Number.NEGATIVE_INFINITY },
        { x: -0 },
        { x: 1e300 },
        { x: 5e-324 },
      ],
    })
    const { values } = await read(source)
    expect(values.flat()).toEqual(['NaN', 'Infinity', '-Infinity', '-0', '1e+300', '5e-324'])
  })

  test('that JavaScript has rounded, or that are no Unicode text, are rejects with their row (G9)', async () => {
    const source = rows({
      columns: { id: 'bigint', note: 'text' },
      rows: () => [
        { id: 1, note: 'good' },
        { id: 2 ** 53, note: 'rounded' },
        { id: 3, note: 'half \ud83d' },
        { id: 4, note: 'good' },
      ],
    })
    await using open = await source.open(contextOf())
    expect(await contentOf(open, ['id'])).toEqual({
      values: [['1'], ['4']],
      rejects: [
        {
          file: null,
          line: 2,
          column: 'id',
          value: '9007199254740992',
          reason: expect.stringContaining('beyond 2^53'),
        },
        {
          file: null,
          line: 3,
          column: 'note',
          value: 'half \ufffd',
          reason: expect.stringContaining('surrogate'),
        },
      ],
    })
    // Rejected rows count: the second row of the select is the fourth given.
    expect(await open.parts[0]?.locate([1, 2])).toEqual([
      { line: 1, raw: '{"id":"1","note":"good"}' },
      { line: 4, raw: '{"id":"4","note":"good"}' },
    ])
  })

  test.each([
    ['a Date', new Date(0), 'toISOString'],
    ['an object', { a: 1 }, 'its text'],
    ['an array', [1], 'its text'],
    ['a symbol', Symbol('s'), 'its text'],
  ])('that are %s are refused with what to give instead', async (kind, value, hint) => {
    await expect(read(untyped({ id: 'bigint' }, [{ id: 1 }, { id: value }]))).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: `Cannot read row 2 of rows: "id" is ${kind}`,
      hint: expect.stringContaining(hint),
    })
  })
})

describe('rows', () => {
  test('with a property that is not declared are refused by its name', async () => {
    await expect(read(untyped({ id: 'bigint' }, [{ id: 1 }, { id: 2, Id: 3 }]))).rejects.toMatchObject({
      code: 'STET_COLUMNS',
      message: 'Cannot read row 2 of rows: its property "Id" is no declared column',
    })
  })

  test.each([[null], [5], ['text'], [new Date(0)]])('that are no objects are refused: %s', async (row) => {
    await expect(read(untyped({ id: 'bigint' }, [row]))).rejects.toMatchObject({ code: 'STET_SOURCE' })
  })

  test('with a misspelt or missing property do not compile', () => {
    const columns = { order_ref: 'text', amount: 'numeric(12,2)' } as const
    const good: Row<typeof columns> = { order_ref: 'A', amount: 1n }
    // @ts-expect-error misspelt
    const misspelt: Row<typeof columns> = { order_rf: 'A', amount: 1n }
    // @ts-expect-error a Date is no value
    const date: Row<typeof columns> = { order_ref: 'A', amount: new Date(0) }
    rows({ columns, rows: () => [good] })
    // @ts-expect-error misspelt where it is given
    rows({ columns: { order_ref: 'text' }, rows: () => [{ order_rf: 'A' }] })
    rows({
      columns: { order_ref: 'text' },
      // @ts-expect-error misspelt in a generator
      rows: async function* () {
        yield { order_rf: 'A' }
      },
    })
    expect([misspelt, date]).toHaveLength(2)
  })

  test('may come in batches, singly, from sync and from async iterables, in their order', async () => {
    const columns = { n: 'bigint' } as const
    const numbers = Array.from({ length: 5000 }, (_, n) => ({ n }))
    const expected = numbers.map(({ n }) => [String(n)])
    const async = rows({
      columns,
      rows: async function* () {
        yield numbers.slice(0, 3000)
        yield []
        yield* numbers.slice(3000)
      },
    })
    expect((await read(rows({ columns, rows: () => numbers }))).values).toEqual(expected)
    expect((await read(rows({ columns, rows: () => [numbers] }))).values).toEqual(expected)
    expect((await read(async)).values).toEqual(expected)
  })

  test('none at all are an empty source', async () => {
    expect(await read(rows({ columns: { n: 'bigint' }, rows: () => [] }))).toEqual({
      values: [],
      rejects: [],
    })
  })

  test('are asked for once, however often they are selected (G9)', async () => {
    let asked = 0
    const source = rows({
      columns: { n: 'bigint' },
      rows: function* () {
        asked++
        yield { n: 1 }
      },
    })
    await using open = await source.open(contextOf())
    await contentOf(open, ['n'])
    expect((await contentOf(open, ['n', 'n'])).values).toEqual([['1', '1']])
    expect(asked).toBe(1)
  })

  test('may hold long values without filling the memory', async () => {
    const long = 'x'.repeat(9_000_000)
    const source = rows({
      columns: { n: 'bigint', text: 'text' },
      rows: function* () {
        for (let n = 0; n < 30; n++) yield { n, text: `${n}${long}` }
      },
    })
    await using open = await source.open(contextOf())
    const select = open.parts[0]?.select(['text'])
    expect(await engine.count(`select sum(length(c0)) from (${select})`)).toBe(30 * 9_000_000 + 10 + 40)
  })
})

describe('an iteration', () => {
  test('that throws midway loads nothing; its error is the cause', async () => {
    const cause = new Error('the API answered 500')
    const source = rows({
      name: 'orders API',
      columns: { n: 'bigint' },
      rows: async function* () {
        for (let n = 0; n < 3000; n++) yield { n }
        throw cause
      },
    })
    await expect(source.open(contextOf())).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: 'Cannot read orders API: it failed after 3000 rows: the API answered 500',
      cause,
    })
    expect(await engine.count(`select count(*) from duckdb_tables()`)).toBe(0)
  })

  test('that hangs ends when the signal fires, and is told to stop', async () => {
    const stop = new AbortController()
    let returned = false
    const source = rows({
      columns: { n: 'bigint' },
      rows: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => {
            stop.abort(new Error('stopped by hand'))
            return new Promise(() => undefined)
          },
          return: async () => {
            returned = true
            return { done: true, value: undefined }
          },
        }),
      }),
    })
    await expect(source.open(contextOf(stop.signal))).rejects.toThrow('stopped by hand')
    expect(returned).toBe(true)
  })

  test('that never gives way to others still ends when the signal fires', async () => {
    const stop = new AbortController()
    const source = rows({
      columns: { n: 'bigint' },
      rows: function* () {
        for (let n = 0; n < 500_000; n++) {
          if (n === 10_000) setImmediate(() => stop.abort(new Error('stopped by hand')))
          yield { n }
        }
      },
    })
    await expect(source.open(contextOf(stop.signal))).rejects.toThrow('stopped by hand')
  })

  test('is told to stop when a row is refused', async () => {
    let returned = false
    const source = rows({
      columns: { n: 'bigint' },
      rows: async function* () {
        try {
          yield { n: 1, extra: 2 }
        } finally {
          returned = true
        }
      },
    })
    await expect(source.open(contextOf())).rejects.toMatchObject({ code: 'STET_COLUMNS' })
    expect(returned).toBe(true)
  })
})
