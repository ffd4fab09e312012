import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import type { OpenSource, SourceContext } from '../../model/source.ts'
import { type JsonOptions, json } from './index.ts'

const EARTHQUAKES = fileURLToPath(
  new URL('../../../node_modules/vega-datasets/data/earthquakes.json', import.meta.url),
)

let engine: LocalEngine
let folder: string

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-json-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
  // Whatever happened, no table stays behind.
  expect(await engine.count('select count(*) from duckdb_tables()')).toBe(0)
})

function contextOf(signal: AbortSignal = new AbortController().signal): SourceContext {
  return { local: engine, cwd: folder, signal, progress: () => undefined }
}

async function put(name: string, content: string | Uint8Array): Promise<void> {
  await writeFile(join(folder, name), content)
}

type Options = Partial<JsonOptions<Record<string, string>>>

function open(files: string | readonly string[], options: Options = {}): Promise<OpenSource> {
  return json({ files, ...options }).open(contextOf())
}

const namesOf = (source: OpenSource) => source.fields.map(({ name }) => name)

async function valuesOf(source: OpenSource, wanted = namesOf(source)) {
  const values: unknown[][] = []
  if (wanted.length === 0) return values
  for (const part of source.parts) {
    const result = await engine.duckdb.runAndReadAll(part.select(wanted))
    values.push(...result.getRows())
  }
  return values
}

async function rejectsOf(source: OpenSource) {
  return (await Promise.all(source.parts.map((part) => part.rejects()))).flat()
}

/** Everything about a file's content, by field. */
async function read(content: string | Uint8Array, options: Options = {}, name = 'x.ndjson') {
  await put(name, content)
  await using source = await open(name, options)
  return { names: namesOf(source), values: await valuesOf(source), rejects: await rejectsOf(source) }
}

const wayToRefuse = (content: string | Uint8Array, options: Options = {}, name = 'x.json') =>
  expect(read(content, options, name)).rejects

describe('values', () => {
  test.each([
    ['9007199254740993', '9007199254740993'],
    ['12345678901234567890.12345', '12345678901234567890.12345'],
    ['1.10', '1.10'],
    ['1e400', '1e400'],
    ['1E+5', '1E+5'],
    ['-0', '-0'],
    ['-0.000000000000000001', '-0.000000000000000001'],
    ['true', 'true'],
    ['false', 'false'],
    ['null', null],
    ['""', ''],
    ['"007"', '007'],
    ['"null"', 'null'],
    ['"a\\nb\\t\\"\\\\\\/\\u00e9\\ud83d\\ude00é😀"', 'a\nb\t"\\/é😀é😀'],
    ['"a\\u0000b"', 'a\0b'],
    ['{"b":1,  "a":{"y":2.0}}', '{"b":1,  "a":{"y":2.0}}'],
    ['[1.0,\t10, "\\u00e9"]', '[1.0,\t10, "\\u00e9"]'],
    ['{}', '{}'],
    ['[]', '[]'],
  ])('%s is exactly %j', async (spelled, text) => {
    const { values, rejects } = await read(`{"v":${spelled}}\n`)
    expect({ values, rejects }).toEqual({ values: [[text]], rejects: [] })
    expect((await read(`[ {"v" : ${spelled} } ]`, {}, 'x.json')).values).toEqual([[text]])
  })

  test('keep every digit of ids and amounts (case 028)', async () => {
    const lines = [
      '{"id":9007199254740992,"amount":0.1,"doc":{"n":9007199254740993}}',
      '{"id":9007199254740993,"amount":12345678901234567890.12345,"doc":{"n":1e400}}',
      '{"id":-9223372036854775808,"amount":294733346389144765940638005275322203805,"doc":{}}',
      '{"id":7,"amount":1.10,"doc":null}',
    ]
    expect((await read(lines.join('\n'))).values).toEqual([
      ['9007199254740992', '0.1', '{"n":9007199254740993}'],
      ['9007199254740993', '12345678901234567890.12345', '{"n":1e400}'],
      ['-9223372036854775808', '294733346389144765940638005275322203805', '{}'],
      ['7', '1.10', null],
    ])
  })

  test('that a record does not have are NULL; the fields are those of all records', async () => {
    const { names, values } = await read('{"a":1}\n{"b":2,"a":null}\n{}\n{"c":"x"}\n')
    expect(names).toEqual(['a', 'b', 'c'])
    expect(values).toEqual([
      ['1', null, null],
      [null, '2', null],
      [null, null, null],
      [null, null, 'x'],
    ])
  })

  test('of fields that turn up late are in their rows, also over many chunks', async () => {
    const lines = Array.from({ length: 5000 }, (_, n) => (n < 4000 ? `{"n":${n}}` : `{"late":${n},"n":${n}}`))
    const { names, values } = await read(lines.join('\n'))
    expect(names).toEqual(['n', 'late'])
    expect(values[3999]).toEqual(['3999', null])
    expect(values[4000]).toEqual(['4000', '4000'])
    expect(values).toHaveLength(5000)
  })

  test('of names that differ in case only, or are odd, are kept apart', async () => {
    const { names, values } = await read('{"a":1,"A":2,"a b":3,"":4,"__proto__":5,"select":6,"\\u00e4":7}')
    expect(names).toEqual(['a', 'A', 'a b', '', '__proto__', 'select', 'ä'])
    expect(values).toEqual([['1', '2', '3', '4', '5', '6', '7']])
  })

  test('of over 10 MB are whole', async () => {
    const long = 'é"\\n'.repeat(4_000_000)
    const spelled = JSON.stringify(long)
    for (const [name, content] of [
      ['x.ndjson', `{"n":1,"v":"a"}\n{"n":2,"v":${spelled}}\n{"n":3,"v":"b"}`],
      ['x.json', `[{"n":1,"v":"a"},{"n":2,"v":${spelled}},{"n":3,"v":"b"}]`],
    ] as const) {
      const { values } = await read(content, {}, name)
      expect(values.map(([n]) => n)).toEqual(['1', '2', '3'])
      expect(values[1]?.[1] === long).toBe(true)
    }
  })
})

describe('nested values', () => {
  test('are columns by their path, or by a name given to it', async () => {
    const content =
      '{"id":"q1","properties":{"mag":1.50,"updated":17,"x":{"y":[1]}}}\n{"id":"q2","properties":null}'
    const { names, values } = await read(content, {
      columns: { id: 'text', 'properties.updated': 'bigint', mag: 'numeric', y: 'jsonb' },
      fields: { mag: 'properties.mag', y: 'properties.x.y' },
    })
    expect(names).toEqual(['id', 'properties.updated', 'mag', 'y'])
    expect(values).toEqual([
      ['q1', '17', '1.50', '[1]'],
      ['q2', null, null, null],
    ])
  })

  test('leave the object itself out, unless it is a column as well', async () => {
    const content = '{"p":{"a":1,"b":2},"c":3}'
    expect(await read(content, { fields: { a: 'p.a' } })).toMatchObject({
      names: ['a', 'c'],
      values: [['1', '3']],
    })
    expect(await read(content, { fields: { a: 'p.a', p: 'p' } })).toMatchObject({
      names: ['a', 'p', 'c'],
      values: [['1', '{"a":1,"b":2}', '3']],
    })
  })

  test('may also stand under a key that has dots in it; under both it is two values for one', async () => {
    const { values, rejects } = await read('{"p.a":1}\n{"p":{"a":2}}\n{"p":{"a":3},"p.a":4}', {
      columns: { 'p.a': 'int' },
    })
    expect(values).toEqual([['1'], ['2']])
    expect(rejects).toMatchObject([{ line: 3, reason: expect.stringContaining('twice') }])
  })

  test('of an object that stands there twice are a reject', async () => {
    const { values, rejects } = await read('{"p":{"a":1},"p":{"b":2}}\n{"p":{"a":1,"b":2}}', {
      columns: { 'p.a': 'int' },
    })
    expect(values).toEqual([['1']])
    expect(rejects).toMatchObject([{ line: 1, column: 'p', reason: 'has the key "p" twice' }])
  })

  test('of what is no object are a reject, not NULL (G9)', async () => {
    const { values, rejects } = await read('{"p":[1]}\n{"p":"x"}\n{"p":{}}\n{"p":null}\n{}\n{"p":{"a":1}}', {
      columns: { 'p.a': 'int' },
    })
    expect(values).toEqual([[null], [null], [null], ['1']])
    expect(rejects.map(({ line, column }) => [line, column])).toEqual([
      [1, 'p'],
      [2, 'p'],
    ])
  })

  test.each([
    ['x.json', '[1, 2]', /none of its 2 values is an object .* such as 1 on line 1/, /--records/],
    ['x.json', '[[1]]', /none of its values is an object .* such as \[1\] on line 1/, /--records/],
    ['x.ndjson', '"a"\n"b"\n', /none of its 2 values is an object .* such as "a" on line 1/, /Each line/],
  ])(
    'of nothing but values that are no objects are refused as such: %s %s',
    async (name, content, said, hint) => {
      await wayToRefuse(content, {}, name).toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringMatching(said),
        hint: expect.stringMatching(hint),
      })
    },
  )

  test('cannot be two columns at once', async () => {
    await wayToRefuse('{}', { fields: { a: 'p.a', b: 'p.a' } }).toMatchObject({ code: 'STET_CONFIG' })
  })
})

describe('lines', () => {
  test('that are broken are rejects with line, column and text; the others are read (G9)', async () => {
    const lines = [
      '{"id":1}',
      '',
      '{"id":2,"x":tru}',
      '  \t',
      '{"id":3',
      '{"id":4} {"id":5}',
      '[6]',
      '7',
      '{"id":01}',
      "{'id':8}",
      '{"id":NaN}',
      '{"id":"a\tb"}',
      '{"id":9}',
    ]
    const { values, rejects } = await read(lines.join('\n'))
    expect(values.map(([id]) => id)).toEqual(['1', '9'])
    expect(rejects.map(({ line, raw }) => [line, raw])).toEqual(
      [3, 5, 6, 7, 8, 9, 10, 11, 12].map((line) => [line, lines[line - 1]]),
    )
    expect(rejects[0]).toEqual({
      file: 'x.ndjson',
      line: 3,
      column: null,
      value: null,
      reason: 'is no JSON: "t" stands where a value should (column 13)',
      raw: '{"id":2,"x":tru}',
    })
    expect(rejects[2]?.reason).toBe('is no JSON: more follows behind its end (column 10)')
    expect(rejects[3]?.reason).toBe('is no object')
  })

  test('with one key twice are rejects, since readers differ in which one they take', async () => {
    const { values, rejects } = await read(
      '{"id":1,"id":2}\n{"id":3,"d":{"a":1,"a":2}}\n{"id":4,"\\u0069d":4}',
    )
    expect(values).toEqual([['3', '{"a":1,"a":2}']])
    expect(rejects.map(({ line, column }) => [line, column])).toEqual([
      [1, 'id'],
      [3, 'id'],
    ])
  })

  test('with half of a surrogate pair are rejects, also in keys and deep within', async () => {
    const { names, values, rejects } = await read(
      '{"a":"\\ud800"}\n{"a":{"b":["\\udc00"]}}\n{"\\ud800":1}\n{"\\ud800":1}\n{"a":"\\ud83d\\ude00"}',
    )
    expect(names).toEqual(['a'])
    expect(values).toEqual([['😀']])
    expect(rejects.map(({ line }) => line)).toEqual([1, 2, 3, 4])
  })

  test('that are not in UTF-8 are rejects, each by itself', async () => {
    const content = Buffer.from('{"a":"é"}\n{"a":"\xff"}\n{"a":"ü\ufffd"}', 'utf8')
    const bad = Buffer.concat([
      content,
      Buffer.from('\n{"a":"'),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"a":"z"}'),
    ])
    const { values, rejects } = await read(bad)
    expect(values.flat()).toEqual(['é', 'ÿ', 'ü\ufffd', 'z'])
    expect(rejects).toMatchObject([{ line: 4, reason: 'is not in UTF-8', raw: '{"a":"\ufffd"}' }])
  })

  test('may end in CRLF, begin with a byte order mark, be blank, and lack the last line end', async () => {
    const { values, rejects } = await read('\ufeff{"a":1}\r\n\r\n{"a":2}\r\n{"a":3}')
    expect(values).toEqual([['1'], ['2'], ['3']])
    expect(rejects).toEqual([])
  })

  test('none at all are an empty source with the declared columns', async () => {
    expect(await read('', { columns: { a: 'int' } })).toEqual({ names: ['a'], values: [], rejects: [] })
    expect(await read('\n\n')).toEqual({ names: [], values: [], rejects: [] })
    expect(await read('', { format: 'ndjson' }, 'x.txt')).toEqual({ names: [], values: [], rejects: [] })
  })

  test('nested a hundred thousand levels deep are rejects', async () => {
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const { values, rejects } = await read(`{"a":1}\n${deep}\n{"a":2}`)
    expect(values).toEqual([['1'], ['2']])
    expect(rejects).toMatchObject([{ line: 2, column: 'a', reason: 'is nested deeper than 1000 levels' }])
  })

  test('are told from documents by content where the name does not say', async () => {
    const rows = [['1'], ['2']]
    for (const content of [
      '{"a":1}\n{"a":2}\n',
      '[{"a":1},\n{"a":2}]',
      '\n [\n{"a":1},{"a":2}]\n\n',
      '{\n "a": 1\n}\n{\n "a": 2\n}\n',
      '{"a":1}{"a":2}',
    ]) {
      expect((await read(content, {}, 'x.json')).values).toEqual(rows)
    }
    expect((await read('{"a":1}\n{broken\n{"a":2}', {}, 'x.json')).rejects).toMatchObject([{ line: 2 }])
  })
})

describe('documents', () => {
  test.each([
    ['[{"a":1},\n{"a":2}', '(line 2, column 8)', 'ends'],
    ['[{"a":1},\n{"a":2', '(line 2, column 7)', 'ends'],
    ['[{"a":1},\n{"a":x}]', '(line 2, column 6)', '"x" stands where a value should'],
    ['[{"a":1}]\n]', '(line 2, column 1)', 'more follows'],
    ['[{"a":1},]', '(line 1, column 10)', 'a value'],
    ['[{"a":1} {"a":2}]', '(line 1, column 10)', '"," or "]"'],
    ['<html>', '(line 1, column 1)', 'an array or an object'],
    ['{\n"a":1\n}\n{"a":', '(line 4, column 6)', 'ends'],
    ['{\n"a":1\n},\n{"a":2}', '(line 3, column 2)', 'the next object'],
  ])('that are broken are refused with line and column: %j', async (content, place, what) => {
    await wayToRefuse(content).toMatchObject({
      code: 'STET_SOURCE',
      message: expect.stringMatching(/^Cannot read "x.json" as JSON: /),
    })
    await wayToRefuse(content).toThrow(place)
    await wayToRefuse(content).toThrow(what)
  })

  test('that are empty are refused: a document without records is [] (G10)', async () => {
    await wayToRefuse('').toMatchObject({ code: 'STET_SOURCE', hint: expect.stringContaining('ndjson') })
    await wayToRefuse('\ufeff \n').toThrow('it is empty')
    expect(await read('[]', { columns: { a: 'int' } }, 'x.json')).toEqual({
      names: ['a'],
      values: [],
      rejects: [],
    })
  })

  test('that are not in UTF-8 are refused with the line', async () => {
    await wayToRefuse(Buffer.from('[\n{"a":"\xff"}]', 'latin1')).toThrow('line 2 is not in UTF-8')
    const { values } = await read(Buffer.from('[{"a":"\xff"}]', 'latin1'), { encoding: 'latin1' }, 'x.json')
    expect(values).toEqual([['ÿ']])
  })

  test('have elements that cannot be loaded as rejects, and go on', async () => {
    const { values, rejects } = await read(
      '[{"a":1},\nnull,\n{"a":2,"a":3},\n5, {"a":"\\ud800"},\n{"a":4}]',
      {},
      'x.json',
    )
    expect(values).toEqual([['1'], ['4']])
    expect(rejects.map(({ line, raw }) => [line, raw])).toEqual([
      [2, 'null'],
      [3, '{"a":2,"a":3}'],
      [4, '5'],
      [4, '{"a":"\\ud800"}'],
    ])
  })

  test('give the records that a path leads to, whatever stands around them', async () => {
    const content =
      '{"meta":{"result":{"items":[9]},"n":1.5},"result":{"x":[1,{}],"items":[{"a":1},{"a":2}],"y":"z"},"end":0}'
    expect((await read(content, { records: 'result.items' }, 'x.json')).values).toEqual([['1'], ['2']])
    await wayToRefuse(content, { records: 'result.rows' }).toThrow('ends without "rows" of "result.rows"')
    await wayToRefuse(content, { records: 'meta' }).toThrow('the array "meta"')
    await wayToRefuse(content, { records: 'end.x' }).toThrow('an object with "x"')
    await wayToRefuse('{"r":[],"r":[]}', { records: 'r' }).toThrow('a second time')
    await wayToRefuse(`${content}x`, { records: 'result.items' }).toThrow('more follows')
    await wayToRefuse('{"r":[{"a":1}]', { records: 'r' }).toThrow('it ends')
  })

  test('with keys that are data, not names, are refused rather than made a table of', async () => {
    const keys = Array.from({ length: 2000 }, (_, n) => `"k${n}":1`)
    await wayToRefuse(`{${keys.join(',')}}`).toThrow('over 1600 different keys')
  })
})

describe('files', () => {
  test('may be several, archives among them; fields are those of all', async () => {
    await put('a.ndjson', '{"a":1}')
    await put('b.jsonl.gz', gzipSync('{"b":2}\n{broken}'))
    await using source = await open(['a.ndjson', 'b.jsonl.gz'])
    expect(namesOf(source)).toEqual(['a', 'b'])
    expect(await valuesOf(source)).toEqual([
      ['1', null],
      [null, '2'],
    ])
    expect(source.files.map(({ path }) => path)).toEqual(['a.ndjson', 'b.jsonl.gz'])
    expect(await rejectsOf(source)).toMatchObject([{ file: 'b.jsonl.gz', line: 2 }])
  })

  test('say where a row stands, counted over rejects and blank lines', async () => {
    await put('x.ndjson', '{"a":1}\n\n{broken\n{"a":2}\r\n{"a":"é"}\n')
    await using lines = await open('x.ndjson')
    expect(await lines.parts[0]?.locate([1, 2, 3])).toEqual([
      { line: 1, raw: '{"a":1}' },
      { line: 4, raw: '{"a":2}' },
      { line: 5, raw: '{"a":"é"}' },
    ])
    expect(await lines.parts[0]?.locate([])).toEqual([])
    await put('x.json', '[{"a":1},\n 5, {"a":\n2}, {"a":3}]')
    await using document = await open('x.json')
    expect(await document.parts[0]?.locate([2, 3])).toEqual([
      { line: 2, raw: '{"a":\n2}' },
      { line: 3, raw: '{"a":3}' },
    ])
  })

  test('that change while they are read fail the run (G9)', async () => {
    await put('x.ndjson', '{"a":1}')
    await using source = await open('x.ndjson')
    await source.verify()
    await put('x.ndjson', '{"a":2}')
    await expect(source.verify()).rejects.toMatchObject({ code: 'STET_SOURCE_CHANGED' })
  })

  test('end when the signal fires', async () => {
    await put('x.ndjson', '{"a":1}\n'.repeat(200_000))
    const stop = new AbortController()
    const context = contextOf(stop.signal)
    const progress = ({ rows = 0 }) => rows > 0 && stop.abort(new Error('stopped by hand'))
    await expect(
      json({ files: 'x.ndjson' }).open({ ...context, progress: (step) => void progress(step) }),
    ).rejects.toThrow('stopped by hand')
    expect(await readdir(folder)).toEqual(['x.ndjson'])
  })

  test('with a week of earthquakes are read whole, nested values by path', async () => {
    await put('earthquakes.json', await readFile(EARTHQUAKES))
    await using source = await open('earthquakes.json', {
      records: 'features',
      columns: {
        id: 'text',
        mag: 'numeric',
        'properties.updated': 'bigint',
        place: 'text',
        geometry: 'jsonb',
      },
      fields: { mag: 'properties.mag', place: 'properties.place' },
    })
    expect(namesOf(source)).toEqual(['id', 'mag', 'properties.updated', 'place', 'geometry', 'type'])
    const values = await valuesOf(source)
    expect(values).toHaveLength(1707)
    expect(values[0]).toEqual([
      'ci37868143',
      '2',
      '1517966996303',
      '4km W of Castaic, CA',
      '{"type":"Point","coordinates":[-118.6671667,34.4945,26.49]}',
      'Feature',
    ])
    expect(new Set(values.map(([id]) => id)).size).toBe(1707)
    expect(await rejectsOf(source)).toEqual([])
  })
})
