import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import type { OpenSource, Reject } from '../../model/source.ts'
import { type CsvOptions, csv, tsv } from './index.ts'

let engine: LocalEngine
let folder: string

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-csv-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function put(name: string, content: string | Uint8Array): Promise<void> {
  await writeFile(join(folder, name), content)
}

function open(options: CsvOptions, source: typeof csv = csv): Promise<OpenSource> {
  return source(options).open({
    local: engine,
    cwd: folder,
    signal: new AbortController().signal,
    progress: () => undefined,
  })
}

/** The driver takes a U+FEFF off the beginning of a text that it hands to JavaScript; hex keeps it. */
async function rowsOf(select: string, columns: number): Promise<(string | null)[][]> {
  const hex = Array.from({ length: columns }, (_, i) => `hex(c${i})`)
  const result = await engine.duckdb.runAndReadAll(`select ${hex.join(', ')} from (${select})`)
  return result
    .getRows()
    .map((row) => row.map((value) => (value === null ? null : Buffer.from(String(value), 'hex').toString())))
}

interface Read {
  readonly names: readonly string[]
  readonly rows: (string | null)[][]
  readonly rejects: readonly Reject[]
}

/** Reads a load as landing does, and checks that no record is lost or invented. */
async function readAll(options: CsvOptions, wanted?: readonly string[]): Promise<Read> {
  await using source = await open(options)
  const names = wanted ?? source.fields.map(({ name }) => name)
  const rows: (string | null)[][] = []
  const rejects: Reject[] = []
  for (const part of source.parts) {
    const own = await rowsOf(part.select(names), names.length)
    const refused = await part.rejects()
    expect(own.length + refused.length).toBe(part.records)
    for (const row of own) rows.push(row)
    for (const reject of refused) rejects.push(reject)
  }
  await source.verify()
  return { names, rows, rejects }
}

async function read(content: string | Uint8Array, options: Partial<CsvOptions> = {}, wanted?: string[]) {
  await put('a.csv', content)
  return readAll({ files: 'a.csv', ...options }, wanted)
}

async function rowsIn(content: string | Uint8Array, options: Partial<CsvOptions> = {}) {
  return (await read(content, options)).rows
}

async function locateAll(content: string | Uint8Array, options: Partial<CsvOptions> = {}) {
  await put('a.csv', content)
  await using source = await open({ files: 'a.csv', ...options })
  const [part] = source.parts
  if (part === undefined) throw new Error('no part')
  const rows = await rowsOf(part.select(source.fields.map(({ name }) => name)), source.fields.length)
  return await part.locate(rows.map((_, i) => i + 1))
}

describe('values', () => {
  test('an empty field is NULL, "" is the empty text', async () => {
    expect(await rowsIn('a,b\n,""\n"",\n')).toEqual([
      [null, ''],
      ['', null],
    ])
  })

  test('only texts without quotes mean NULL, and only those named', async () => {
    expect(await rowsIn('a,b\nNULL,"NULL"\n,n/a\n', { nullTexts: ['NULL', 'n/a'] })).toEqual([
      [null, 'NULL'],
      ['', null],
    ])
    expect(await rowsIn('a,b\n,x\n', { nullTexts: [] })).toEqual([['', 'x']])
    expect(await rowsIn('a;b\n;x\n', { nullTexts: ['', 'x;'] })).toEqual([[null, 'x']])
  })

  test('every character of a value is kept: spaces, zeros, quotes, line breaks, U+FEFF, NUL', async () => {
    expect(
      await rowsIn('a,b\n 007 ,+491\n"say ""hi""","1\n2\r\n3\r4"\n\ufeffx,in\ufeffside\nx\0y,5" disc\n'),
    ).toEqual([
      [' 007 ', '+491'],
      ['say "hi"', '1\n2\r\n3\r4'],
      ['\ufeffx', 'in\ufeffside'],
      ['x\0y', '5" disc'],
    ])
  })

  test('a U+FEFF at the beginning of the data is no byte order mark', async () => {
    const header = ['a', 'b']
    expect(await rowsIn('\ufeffa,b\n\ufeffx,1\n')).toEqual([['\ufeffx', '1']])
    expect(await rowsIn('\ufeff\ufeffx,1\n', { header })).toEqual([['\ufeffx', '1']])
    expect(await rowsIn('\ufeff\ufeffx,1\r\n\ufeffy,2\r\n', { header })).toEqual([
      ['\ufeffx', '1'],
      ['\ufeffy', '2'],
    ])
  })

  test('spaces beside quotes are no part of a value', async () => {
    expect(await rowsIn('a,b\n  "x, ""y""" , "1\n2"  \n z,"3"\n')).toEqual([
      ['x, "y"', '1\n2'],
      [' z', '3'],
    ])
  })

  test('a field of many megabytes is read whole', async () => {
    const long = 'x,"\n'.repeat(2_000_000)
    const rows = await rowsIn(`a,b\n1,"${long.replaceAll('"', '""')}"\n2,short\n`)
    expect(rows[0]?.[1] === long).toBe(true)
    expect(rows[1]).toEqual(['2', 'short'])
  })

  test('a column that holds CSV text is not taken for rows, however large the file', async () => {
    const inner = Array.from({ length: 1000 }, (_, i) => `${i},item,x`).join('\n')
    const row = `,"${inner}",z\n`
    const rows = 1000
    await put('a.csv', `a,b,c\n${Array.from({ length: rows }, (_, i) => i + row).join('')}`)
    await using source = await open({ files: 'a.csv' })
    const [part] = source.parts
    const select = part?.select(['a', 'b', 'c']) ?? ''
    const [found] = await engine.rows(
      `select count(*)::integer as n, count(distinct c0)::integer as keys, min(length(c1))::integer as shortest
         from (${select})`,
    )
    expect(found).toEqual({ n: rows, keys: rows, shortest: inner.length })
  })
})

describe('headers', () => {
  test('columns are matched by name, per file, and asked for in any order', async () => {
    await put('1.csv', 'id,name,city\n1,Ada,Graz\n')
    await put('2.csv', 'city,id,name\nLinz,2,Bo\n')
    const { rows } = await readAll({ files: '*.csv' }, ['name', 'id'])
    expect(rows).toEqual([
      ['Ada', '1'],
      ['Bo', '2'],
    ])
  })

  test('a header may hold quotes, line breaks, delimiters, and names that differ in case only', async () => {
    const { names, rows } = await read('"a\n1","b,""2""",Id,ID,ord er\n1,2,3,4,5\n')
    expect(names).toEqual(['a\n1', 'b,"2"', 'Id', 'ID', 'ord er'])
    expect(rows).toEqual([['1', '2', '3', '4', '5']])
  })

  test('names stand in for a header', async () => {
    expect(await rowsIn('1,x\n2,y\n', { header: ['id', 'v'] })).toEqual([
      ['1', 'x'],
      ['2', 'y'],
    ])
    expect(await rowsIn('', { header: ['id', 'v'] })).toEqual([])
  })

  test('a file that lacks a column of another one is refused by file and column', async () => {
    await put('1.csv', 'id,name\n1,Ada\n')
    await put('2.csv', 'id\n2\n')
    await put('3.csv', 'id,name,extra\n3,Cy,x\n')
    for (const files of [
      ['1.csv', '2.csv'],
      ['2.csv', '1.csv'],
    ]) {
      await expect(open({ files })).rejects.toMatchObject({
        code: 'STET_COLUMNS',
        message: 'Cannot load "2.csv": it has no column "name"',
      })
    }
    await expect(open({ files: ['1.csv', '3.csv'] })).rejects.toMatchObject({
      message: 'Cannot load "1.csv": it has no column "extra"',
    })
  })

  test('a header that does not name the columns is refused', async () => {
    for (const [content, code, message] of [
      ['id,name,id\n', 'STET_COLUMNS', 'names column "id" twice'],
      ['id,,name\n', 'STET_COLUMNS', 'column 2 of 3 has no name'],
      ['   \n1\n', 'STET_COLUMNS', 'column 1 of 1 has no name'],
      ['id,"na"me\n', 'STET_SOURCE', 'follows a closing quote'],
      ['i\0d\0,\0v\0\n\0', 'STET_SOURCE', 'NUL bytes'],
      [Buffer.from('id,größe\n', 'latin1'), 'STET_SOURCE', 'its header is not UTF-8'],
      ['', 'STET_SOURCE', 'it is empty: not even a header'],
      ['\n\n', 'STET_SOURCE', 'it is empty: not even a header'],
    ] as const) {
      await put('bad.csv', content)
      await expect(open({ files: 'bad.csv' }), JSON.stringify(String(content))).rejects.toMatchObject({
        code,
        message: expect.stringMatching(new RegExp(`"bad.csv".*${message}`)),
      })
    }
  })

  test('an error page is a file with one odd column; a header alone is a file without rows (case 075)', async () => {
    const page = await read('<html><body>503 Service Unavailable</body></html>\n')
    expect(page.names).toEqual(['<html><body>503 Service Unavailable</body></html>'])
    expect(await read('id,v')).toEqual({ names: ['id', 'v'], rows: [], rejects: [] })
    await expect(open({ files: 'missing.csv' })).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: 'Cannot read "missing.csv": there is no such file',
    })
  })
})

describe('lines', () => {
  const rows = [
    ['1', 'x'],
    ['2', 'y\n"z"'],
    ['3', null],
  ]
  const text = 'a,b\n1,x\n2,"y\n""z"""\n3,\n'

  test('files whose lines end in LF, CRLF or CR hold the same rows, with or without the last line end', async () => {
    const crlf = 'a,b\r\n1,x\r\n2,"y\n""z"""\r\n3,\r\n'
    const cr = 'a,b\r1,x\r2,"y\n""z"""\r3,\r'
    for (const content of [
      text,
      crlf,
      cr,
      text.slice(0, -1),
      crlf.slice(0, -2),
      crlf.slice(0, -1),
      cr.slice(0, -1),
    ]) {
      expect(await rowsIn(content), JSON.stringify(content)).toEqual(rows)
    }
  })

  test('a line break in a quoted header or value does not hide rows of a CRLF file', async () => {
    expect(await rowsIn('"a\nx","b"\r\n"1\n2","3"\r\n"4\r\n5","6"\r\n')).toEqual([
      ['1\n2', '3'],
      ['4\r\n5', '6'],
    ])
  })

  test('lines that end in different ways are refused with file and line', async () => {
    for (const [content, message] of [
      ['a,b\n1,"x\ny"\n2,y\r\n3,z\n', 'line 4 ends in \\r\\n outside quotes, the first line in \\n'],
      ['a,b\r\n1,"x\ny"\r\n2,y\n3,z\r\n', 'line 4 ends in \\n outside quotes, the first line in \\r\\n'],
      ['a,b\n1,x\ry\n', 'line 2 ends in \\r outside quotes, the first line in \\n'],
      ['a,b\r1,x\n2,y\r', 'line 2 ends in \\n outside quotes, the first line in \\r'],
    ] as const) {
      await put('mixed.csv', content)
      await expect(open({ files: 'mixed.csv' })).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: `Cannot read "mixed.csv": ${message} (G9)`,
      })
    }
  })

  test('blank lines are no rows, except in a file of one column, where they are NULL', async () => {
    expect(await rowsIn('\n\na,b\n\n1,x\n\n\n2,y\n\n')).toEqual([
      ['1', 'x'],
      ['2', 'y'],
    ])
    expect(await rowsIn('\na\n\n1\n""\n\n2\n')).toEqual([[null], ['1'], [''], [null], ['2']])
  })

  test('the first lines and comments are left out, and a comment character inside a line is data', async () => {
    const content = 'Report "of March\n\n# made, by hand "\na,b\n#1,x\n2,y#z\n"#3",x\n'
    expect(await rowsIn(content, { skip: 1, comment: '#' })).toEqual([
      ['2', 'y#z'],
      ['#3', 'x'],
    ])
    expect(await locateAll(content, { skip: 1, comment: '#' })).toEqual([
      { line: 6, raw: '2,y#z' },
      { line: 7, raw: '"#3",x' },
    ])
  })
})

describe('dialects', () => {
  test('the delimiter is seen in the header, outside quotes, and said', async () => {
    for (const [delimiter, content] of [
      [';', '"a,1,2";b;c\n1;2;3,5\n'],
      ['\t', 'a\tb,x\tc\n1\t2\t3\n'],
      ['|', 'a|b;|c\n1|2|3\n'],
    ] as const) {
      await put('a.csv', content)
      await using source = await open({ files: 'a.csv' })
      expect(source.fields.length).toBe(3)
      expect(source.notices?.[0]).toContain(`delimiter: ${JSON.stringify(delimiter)}`)
    }
    await put('a.csv', 'a,b;c\n')
    await using source = await open({ files: 'a.csv' })
    expect(source.fields.map(({ name }) => name)).toEqual(['a', 'b;c'])
    expect(source.notices).toEqual([])
  })

  test('without a header the delimiter must give as many fields as there are names', async () => {
    const header = ['a', 'b', 'c']
    expect(await rowsIn('1,5;2,5;x\n', { header: ['a', 'b', 'c', 'd'], delimiter: ';' })).toEqual([])
    await put('a.csv', '1,5;2,5;x\n')
    await expect(open({ files: 'a.csv', header })).rejects.toMatchObject({
      code: 'STET_CONFIG',
      message: expect.stringContaining('more than one of comma, semicolon, tab and bar'),
    })
    expect(await rowsIn('1|5|x\n', { header })).toEqual([['1', '5', 'x']])
  })

  test('delimiter, quote and escape may be named, quotes switched off', async () => {
    expect(await rowsIn("a;b\n'x;''y''';\"z\n", { delimiter: ';', quote: "'" })).toEqual([["x;'y'", '"z']])
    expect(await rowsIn('a,b\n"x\\"y","p\\\\"\n', { escape: '\\' })).toEqual([['x"y', 'p\\']])
    expect(await rowsIn('a,b\n"x,y"\n', { quote: '' })).toEqual([['"x', 'y"']])
    expect(await rowsIn('a¦b\n1¦2\n', { delimiter: '¦' })).toEqual([['1', '2']])
  })

  test('TSV is CSV with tabs', async () => {
    await put('a.tsv', 'a\tb\n1,5\t"x\ty"\n')
    for (const source of [await open({ files: 'a.tsv' }), await open({ files: 'a.tsv' }, tsv)]) {
      expect(await rowsOf(source.parts[0]?.select(['a', 'b']) ?? '', 2)).toEqual([['1,5', 'x\ty']])
      expect(source.notices).toEqual([])
    }
  })

  test('options that contradict each other are refused at once', () => {
    for (const options of [
      { delimiter: '' },
      { delimiter: ',,' },
      { delimiter: ' ' },
      { delimiter: '"' },
      { quote: 'é' },
      { skip: -1 },
      { header: [] },
      { header: ['a', 'a'] },
      { comment: '"' },
      { nullTexts: ['\n'] },
    ]) {
      expect(() => csv({ files: 'a.csv', ...options }), JSON.stringify(options)).toThrow(
        expect.objectContaining({ code: 'STET_CONFIG' }),
      )
    }
  })
})

describe('files', () => {
  test('a byte order mark, CRLF and UTF-16 change no row (case 034)', async () => {
    const plain = 'order_no,city\n1001,Graz\n1002,Ålesund\n1003,in\ufeffside\n'
    const excel = `\ufeff${plain.replaceAll('\n', '\r\n')}`
    const expected = await read(plain)
    expect(expected.rows[2]).toEqual(['1003', 'in\ufeffside'])
    expect(await read(excel)).toEqual(expected)
    expect(await read(Buffer.from(excel, 'utf16le'))).toEqual(expected)
    expect(await read(Buffer.from(excel, 'utf16le').swap16())).toEqual(expected)
  })

  test('accents and case are left as they are (case 039)', async () => {
    const names = ['Ab', 'AB', 'ab ', 'C\u00e3o', 'Ca\u0303o', 'x']
    const rows = await rowsIn(`name,v\nAb,1\nAB,2\n"ab ",3\nC\u00e3o,4\nCa\u0303o,5\nx,6\n`)
    expect(rows.map(([name]) => name)).toEqual(names)
  })

  test('archives and named encodings are read, whatever the file is called', async () => {
    expect(await rowsIn(gzipSync('a,b\n1,x\n'))).toEqual([['1', 'x']])
    expect(await rowsIn(Buffer.from('a,b\n1,\x80é\n', 'latin1'), { encoding: 'windows-1252' })).toEqual([
      ['1', '€é'],
    ])
    await put('plain.csv.gz', 'a,b\n1,x\n')
    expect((await readAll({ files: 'plain.csv.gz' })).rows).toEqual([['1', 'x']])
  })

  test('a name that DuckDB would take for a pattern, or for partitions, is only a name', async () => {
    await mkdir(join(folder, 'f0=9'))
    await put("f0=9/it's.csv", 'a,b\n1,x\n')
    await put('a[1].csv', 'a,b\n2,y\n')
    await put('a1.csv', 'a,b\n3,z\n')
    expect((await readAll({ files: ["f0=9/it's.csv", 'a[1].csv'] })).rows).toEqual([
      ['1', 'x'],
      ['2', 'y'],
    ])
  })

  test('a file that grows after it was opened is refused by verify (G9)', async () => {
    await put('a.csv', 'a\n1\n')
    await using source = await open({ files: 'a.csv' })
    await appendFile(join(folder, 'a.csv'), '2\n')
    await expect(source.verify()).rejects.toMatchObject({ code: 'STET_SOURCE_CHANGED' })
  })

  test('reading stops when told to', async () => {
    await put('a.csv', 'a\n1\n')
    const reason = new Error('enough')
    const opening = csv({ files: 'a.csv' }).open({
      local: engine,
      cwd: folder,
      signal: AbortSignal.abort(reason),
      progress: () => undefined,
    })
    await expect(opening).rejects.toBe(reason)
  })
})

describe('rejects', () => {
  test('ragged records are rejects with their line and text, in every way lines can end (G9)', async () => {
    const content = 'a,b\n"x\ny",1\n2\n\n"p\nq",3,4\n5,z\n'
    for (const text of [content, content.replaceAll('\n', '\r\n'), content.replaceAll('\n', '\r')]) {
      const { rows, rejects } = await read(text)
      expect(rows.map(([a]) => a?.replaceAll(/\r\n?/g, '\n'))).toEqual(['x\ny', '5'])
      expect(rejects).toEqual([
        {
          file: 'a.csv',
          line: 4,
          column: null,
          value: null,
          reason: 'has 1 field, the header has 2',
          raw: '2',
        },
        {
          file: 'a.csv',
          line: 6,
          column: null,
          value: null,
          reason: 'has 3 fields, the header has 2',
          raw: expect.stringMatching(/^"p\s+q",3,4$/),
        },
      ])
    }
  })

  test('a record that repeats the header is a reject in every spelling of it, and nothing else is (G9)', async () => {
    const again = [['id', 'v'].join(), '"id","v"', 'id,"v"', '\ufeffid,v', 'id,v,,']
    const rows = ['1,a', 'id,w', 'v,id', ' id,v', 'id,', 'ID,V']
    for (const end of ['\n', '\r\n']) {
      const text = ['id,v', ...again, ...rows, ''].join(end)
      for (const wanted of [['id', 'v'], ['v']]) {
        const found = await read(text, {}, wanted)
        expect(found.rejects.map(({ line, reason }) => [line, reason.slice(0, 18)])).toEqual(
          again.map((_, i) => [i + 2, 'repeats the header']),
        )
        expect(found.rows).toHaveLength(rows.length)
      }
    }
    // Where it is NULL it says nothing.
    expect((await read('id,v\nid,v\nid,"v"\n', { nullTexts: ['v'] })).rows).toEqual([['id', null]])
    expect((await read('"a ""b""","x\ny"\n"a ""b""","x\ny"\n1,2\n')).rows).toEqual([['1', '2']])
    expect((await read('word\nverb\nword\n')).rejects).toMatchObject([{ line: 3 }])
  })

  test('names that are listed for a file with a header do not make a row of it', async () => {
    const header = ['id', 'v']
    expect((await read('id,v\n1,a\n', { header })).rejects).toMatchObject([{ line: 1, raw: 'id,v' }])
    expect((await read('ID,V\n1,a\n', { header })).rows).toHaveLength(2)
  })

  test('a record that repeats the header is a row where that is asked for', async () => {
    const { rows, rejects } = await read('id,v\n1,a\nid,v\n', { repeatedHeader: 'row' })
    expect([rows, rejects]).toEqual([
      [
        ['1', 'a'],
        ['id', 'v'],
      ],
      [],
    ])
  })

  test('a reject after a blank line, and one that begins with U+FEFF, are found', async () => {
    const column = await read('a\n\n1,2\n\n3\n')
    expect(column.rows).toEqual([[null], [null], ['3']])
    expect(column.rejects.map(({ line, raw }) => [line, raw])).toEqual([[3, '1,2']])
    const marked = await read('a,b\r\n\ufeff\r\n1,2\r\n')
    expect(marked.rows).toEqual([['1', '2']])
    expect(marked.rejects.map(({ line, raw }) => [line, raw])).toEqual([[2, '\ufeff']])
  })

  test('empty fields beyond the header lose nothing and pass', async () => {
    expect(await read('a,b\n1,x,\n2,y,,\n')).toMatchObject({
      rows: [
        ['1', 'x'],
        ['2', 'y'],
      ],
      rejects: [],
    })
    expect((await read('a,b\n1,x,""\n')).rejects).toHaveLength(1)
    expect((await read('a,b\n1,x,\0\n2,y\0\n')).rejects).toHaveLength(1)
  })

  test('text after a closing quote is a reject with its column, and harms no other record', async () => {
    const { rows, rejects } = await read('a,b\n"x"y,1\n2,"p" "q"\n"r" ,3\n4,z\n')
    expect(rows).toEqual([
      ['r', '3'],
      ['4', 'z'],
    ])
    const reason = 'something follows the closing quote'
    expect(rejects).toEqual([
      { file: 'a.csv', line: 2, column: 'a', value: '"x"y', reason, raw: '"x"y,1' },
      { file: 'a.csv', line: 3, column: 'b', value: '"p" "q"', reason, raw: '2,"p" "q"' },
    ])
  })

  test('bytes that are not UTF-8 are rejects that name column and option, also where nobody asked for it', async () => {
    const content = Buffer.from('id,town,x\n1,Graz,a\n2,K\xf6ln,b\n3,Linz,c\n', 'latin1')
    for (const wanted of [['id', 'town', 'x'], ['id']]) {
      const { rows, rejects } = await read(content, {}, wanted)
      expect(rows.map(([id]) => id)).toEqual(['1', '3'])
      expect(rejects).toEqual([
        {
          file: 'a.csv',
          line: 3,
          column: 'town',
          value: 'K\ufffdln',
          reason: "is not UTF-8; name the file's encoding, such as encoding: 'windows-1252'",
          raw: '2,K\ufffdln,b',
        },
      ])
    }
  })

  test('every record is checked, also when one column is wanted', async () => {
    const { rows, rejects } = await read('a,b\n1,x\n2,y,"x""y"\n3\n5,w\n', {}, ['a'])
    expect(rows).toEqual([['1'], ['5']])
    expect(rejects.map(({ line }) => line)).toEqual([3, 4])
    // Left to itself DuckDB lets line 3 pass in two scans of five.
    for (let scan = 0; scan < 15; scan++) {
      expect((await readAll({ files: 'a.csv' }, ['a'])).rows).toEqual([['1'], ['5']])
    }
  })

  test('a quote that is never closed refuses the file with the line of its record', async () => {
    await put('cut.csv', 'a,b\n"x\ny",1\n2,"cut\n3,z\n4,z\n')
    await expect(open({ files: 'cut.csv' })).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: 'Cannot read "cut.csv": a quote in the record at line 4 is never closed (G9)',
    })
  })

  test('selecting twice, or undoing the transaction, neither doubles nor loses rejects', async () => {
    await put('a.csv', 'a,b\n1\n2,x\n')
    await using source = await open({ files: 'a.csv' })
    const [part] = source.parts
    await engine.run('begin')
    await rowsOf(part?.select(['a', 'b']) ?? '', 2)
    await engine.run('rollback')
    await rowsOf(part?.select(['b']) ?? '', 1)
    expect(await part?.rejects()).toHaveLength(1)
  })

  test('rejects of a large file are found at their lines', async () => {
    const lines = Array.from({ length: 100_000 }, (_, i) =>
      i % 10_000 === 9_999 ? `${i}` : `${i},"a, ""${i}"" b",x`,
    )
    const { rows, rejects } = await read(`id,v,w\n${lines.join('\n')}\n`)
    expect(rows).toHaveLength(99_990)
    expect(rejects.map(({ line, raw }) => [line, raw])).toEqual(
      Array.from({ length: 10 }, (_, i) => [(i + 1) * 10_000 + 1, String(i * 10_000 + 9_999)]),
    )
  })
})

describe('places', () => {
  test('rows are located past line breaks, blank lines and rejects', async () => {
    const content = '\n"a\nx",b\n1,x\n\n2\n"3\n\n3",y\n4,"q"r\n5,z'
    expect(await locateAll(content)).toEqual([
      { line: 4, raw: '1,x' },
      { line: 7, raw: '"3\n\n3",y' },
      { line: 11, raw: '5,z' },
    ])
    expect(await locateAll('1\n\n""\n', { header: ['a'] })).toEqual([
      { line: 1, raw: '1' },
      { line: 2, raw: '' },
      { line: 3, raw: '""' },
    ])
  })

  test('only the rows asked for are given', async () => {
    await put('a.csv', 'a\n1\n2\n3\n')
    await using source = await open({ files: 'a.csv' })
    expect(await source.parts[0]?.locate([1, 3])).toEqual([
      { line: 2, raw: '1' },
      { line: 4, raw: '3' },
    ])
    expect(await source.parts[0]?.locate([])).toEqual([])
  })
})
