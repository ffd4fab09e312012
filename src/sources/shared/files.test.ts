import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import { quoteLiteral } from '../../local/quote.ts'
import type { Progress } from '../../model/progress.ts'
import type { SourceContext } from '../../model/source.ts'
import { type OpenFilesOptions, openFiles } from './files.ts'
import { compareNaturally } from './resolve.ts'

let engine: LocalEngine
let folder: string

beforeAll(async () => {
  engine = await openLocalEngine()
})
afterAll(() => engine[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stet-files-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

function contextOf(overrides: Partial<SourceContext> = {}): SourceContext {
  return {
    local: engine,
    cwd: folder,
    signal: new AbortController().signal,
    progress: () => undefined,
    ...overrides,
  }
}

async function put(name: string, content: string | Uint8Array): Promise<void> {
  await writeFile(join(folder, name), content)
}

async function openText(
  files: string | string[],
  options: Partial<OpenFilesOptions> = {},
): Promise<readonly string[]> {
  const opened = await openFiles({ files, content: 'text', ...options }, contextOf())
  return Promise.all(opened.files.map(({ path }) => readFile(path, 'utf8')))
}

/** Through DuckDB, since Node 20 cannot write zstd. */
async function zstd(text: string): Promise<Buffer> {
  const plain = join(folder, 'zstd-in.txt')
  const packed = join(folder, 'zstd-out.zst')
  await writeFile(plain, text)
  await engine.run(
    `copy (select content from read_text(${quoteLiteral(plain)}))
       to ${quoteLiteral(packed)} (format csv, header false, quote '', escape '', delimiter '\\x01', compression zstd)`,
  )
  const bytes = await readFile(packed)
  await Promise.all([rm(plain), rm(packed)])
  return bytes
}

describe('finding files', () => {
  test('a pattern gives its files in natural order and each file once', async () => {
    for (const name of ['part-10.csv', 'part-2.csv', 'part-1.csv', 'other.txt']) await put(name, name)
    const opened = await openFiles({ files: ['part-*.csv', 'part-2.csv'], content: 'text' }, contextOf())
    expect(opened.files.map(({ file }) => file.path)).toEqual(['part-1.csv', 'part-2.csv', 'part-10.csv'])
  })

  test('natural order is by number, and total', () => {
    const names = ['b', 'a10', 'a9', 'a09', 'a', 'A', 'a9b', '10', '9']
    expect([...names].sort(compareNaturally)).toEqual(['9', '10', 'A', 'a', 'a09', 'a9', 'a9b', 'a10', 'b'])
    expect([...names].reverse().sort(compareNaturally)).toEqual([...names].sort(compareNaturally))
  })

  test('a file whose name looks like a pattern is taken by its name', async () => {
    await put('orders[1].csv', 'this one')
    await put('orders1.csv', 'not this one')
    expect(await openText('orders[1].csv')).toEqual(['this one'])
  })

  test('a missing file, a pattern without a match, a folder and a URL are refused by name (G10)', async () => {
    await put('a.csv', 'a')
    for (const [files, message] of [
      ['missing.csv', 'Cannot read "missing.csv": there is no such file'],
      ['*.tsv', 'Cannot read "*.tsv": no file matches this pattern'],
      ['.', 'Cannot read ".": it is a folder'],
      ['a.csv/b.csv', 'Cannot read "a.csv/b.csv": there is no such file'],
      ['https://example.com/a.csv', 'there is no such file'],
    ] as const) {
      await expect(openText(files)).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringContaining(message),
      })
    }
  })

  test('standard input is landed once and called -', async () => {
    const stdin = async function* () {
      yield Buffer.from('id\n')
      yield Buffer.from('1\n')
    }
    const opened = await openFiles({ files: '-', content: 'text', stdin: stdin() }, contextOf())
    const [input] = opened.files
    expect(input?.file).toEqual({
      path: '-',
      bytes: 5,
      sha256: createHash('sha256').update('id\n1\n').digest('hex'),
    })
    expect(await readFile(input?.path ?? '', 'utf8')).toBe('id\n1\n')
    await opened.verify()
  })
})

describe('hash and change', () => {
  test('the hash and size are those of the bytes on disk; plain UTF-8 stays where it is', async () => {
    await put('a.csv', 'id\n1\n')
    await put('a.csv.gz', gzipSync('id\n1\n'))
    const opened = await openFiles({ files: ['a.csv', 'a.csv.gz'], content: 'text' }, contextOf())
    const [plain, packed] = opened.files
    expect(plain?.path).toBe(join(folder, 'a.csv'))
    const bytes = await readFile(join(folder, 'a.csv.gz'))
    expect(packed?.file).toEqual({
      path: 'a.csv.gz',
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
    expect(packed?.bytes).toBe(5)
  })

  test('a file that changes while it is read is refused, even with equal size and time (G9)', async () => {
    const changes: Record<string, () => Promise<unknown>> = {
      'grown.csv': () => writeFile(join(folder, 'grown.csv'), 'id\n2\n', { flag: 'a' }),
      'rewritten.csv': async () => {
        await writeFile(join(folder, 'rewritten.csv'), 'id\n2\n')
        await utimes(join(folder, 'rewritten.csv'), 1, 1)
      },
      'replaced.csv': async () => {
        await put('new.tmp', 'id\n1\n')
        await utimes(join(folder, 'new.tmp'), 1, 1)
        await rename(join(folder, 'new.tmp'), join(folder, 'replaced.csv'))
      },
      'removed.csv': () => rm(join(folder, 'removed.csv')),
    }
    for (const [name, change] of Object.entries(changes)) {
      await put(name, 'id\n1\n')
      await utimes(join(folder, name), 1, 1)
      const opened = await openFiles({ files: name, content: 'text' }, contextOf())
      await opened.verify()
      await change()
      await expect(opened.verify()).rejects.toMatchObject({
        code: 'STET_SOURCE_CHANGED',
        message: expect.stringContaining(name),
      })
    }
  })

  test('reading is stopped by the signal, with its own reason, and tells how far it is', async () => {
    await put('a.csv', 'x'.repeat(3_000_000))
    const controller = new AbortController()
    const seen: Progress[] = []
    const progress = (event: Progress) => {
      seen.push(event)
      controller.abort(new Error('enough'))
    }
    const opening = openFiles(
      { files: 'a.csv', content: 'text' },
      contextOf({ signal: controller.signal, progress }),
    )
    await expect(opening).rejects.toThrow('enough')
    expect(seen).toEqual([{ phase: 'reading', bytes: 1 << 20, bytesTotal: 3_000_000 }])
  })
})

describe('archives', () => {
  const text = Array.from({ length: 4000 }, (_, i) => `${i},${(i * 7919) % 104_729}`).join('\n')

  test('gzip and zstd are known by their bytes, whatever the name, in several members', async () => {
    const packed = await zstd(text)
    await put('a.csv', gzipSync(text))
    await put('b.csv', packed)
    await put('c.gz', Buffer.concat([gzipSync('a\n'), gzipSync('b\n'), Buffer.alloc(700)]))
    await put('d.zst', Buffer.concat([await zstd('a'), await zstd('b')]))
    const [a, b, c, d] = await openText(['a.csv', 'b.csv', 'c.gz', 'd.zst'])
    expect(a).toBe(text)
    expect(b).toBe(`${text}\n`)
    expect(c).toBe('a\nb\n')
    expect(d).toBe('a\nb\n')
  })

  test('a gzip archive cut off anywhere is refused, never a shorter file (G9)', async () => {
    const packed = gzipSync(text)
    for (const length of cutsOf(packed.length)) {
      await put('cut.csv.gz', packed.subarray(0, length))
      await expect(openText('cut.csv.gz'), `cut to ${length} bytes`).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringContaining('cut off'),
      })
    }
  })

  test('a zstd archive cut off anywhere is refused, never a shorter file (G9)', async () => {
    const packed = await zstd(text)
    for (const length of cutsOf(packed.length)) {
      await put('cut.csv.zst', packed.subarray(0, length))
      await expect(openText('cut.csv.zst'), `cut to ${length} bytes`).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringContaining('cut off'),
      })
    }
  })

  test('a damaged archive and one followed by something else are refused (G9)', async () => {
    const packed = gzipSync(text)
    const wrongSum = Buffer.from(packed)
    wrongSum.writeUInt32LE(1, packed.length - 8)
    const flipped = Buffer.from(packed)
    flipped.writeUInt8(flipped.readUInt8(packed.length >> 1) ^ 0x40, packed.length >> 1)
    const junk = Buffer.from('junk that is no member')
    for (const bytes of [
      wrongSum,
      flipped,
      Buffer.concat([packed, junk]),
      Buffer.concat([packed, Buffer.from('x')]),
      Buffer.concat([packed, Buffer.alloc(600), gzipSync('more')]),
      Buffer.concat([await zstd(text), junk]),
    ]) {
      await put('bad.gz', bytes)
      await expect(openText('bad.gz')).rejects.toMatchObject({
        code: 'STET_SOURCE',
        message: expect.stringMatching(/"bad.gz".*(damaged|cut off)/),
      })
    }
  })

  /** Every cut near both ends, and a spread between. */
  function cutsOf(length: number): readonly number[] {
    const cuts = new Set<number>()
    for (let i = 0; i < 40; i++) {
      cuts.add(i).add(length - 1 - i)
      cuts.add(Math.floor((i * length) / 40))
    }
    return [...cuts].filter((cut) => cut >= 0 && cut < length)
  }
})

describe('encodings', () => {
  const text = 'id,name\n1,Ålesund €\n2,😀 in\ufeffside\n'

  test('UTF-8 and UTF-16 are read by their byte order mark, marks inside the data stay', async () => {
    const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le')
    await put('8.csv', `\ufeff${text}`)
    await put('16le.csv', utf16)
    await put('16be.csv', Buffer.from(utf16).swap16())
    await put('16le.csv.gz', gzipSync(utf16))
    expect(new Set(await openText(['8.csv', '16le.csv', '16be.csv', '16le.csv.gz']))).toEqual(new Set([text]))
    await put('two.csv', `\ufeff\ufeffid`)
    expect(await openText('two.csv')).toEqual(['\ufeffid'])
    await put('two16.csv', Buffer.from('\ufeff\ufeffid', 'utf16le'))
    expect(await openText('two16.csv')).toEqual(['\ufeffid'])
  })

  test('other encodings are read when they are named', async () => {
    const bytes = Buffer.from([0x80, 0xe9, 0x2c, 0x81])
    await put('win.csv', bytes)
    expect(await openText('win.csv', { encoding: 'windows-1252' })).toEqual(['€é,\x81'])
    expect(await openText('win.csv', { encoding: 'latin1' })).toEqual(['€é,\x81'])
    await put('be.csv', Buffer.from(text, 'utf16le').swap16())
    expect(await openText('be.csv', { encoding: 'utf-16be' })).toEqual([text])
    await put('sjis.csv', Buffer.from([0x93, 0x8c, 0x8b, 0x9e]))
    expect(await openText('sjis.csv', { encoding: 'Shift_JIS' })).toEqual(['東京'])
  })

  test('characters cut by a chunk are whole again', async () => {
    const long = '€😀é'.repeat(400_000)
    await put('long.csv', long)
    await put('long16.csv', Buffer.from(`\ufeff${long}`, 'utf16le'))
    const opened = await openFiles({ files: ['long.csv', 'long16.csv'], content: 'text' }, contextOf())
    expect(opened.files.map(({ invalidUtf8At }) => invalidUtf8At)).toEqual([null, null])
    expect(await readFile(opened.files[1]?.path ?? '', 'utf8')).toBe(long)
  })

  test('the first byte that is not UTF-8 is found wherever it stands', async () => {
    for (const at of [0, 1, 5, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 1_500_000]) {
      const bytes = Buffer.alloc(1_500_001, 'é')
      const aligned = at - (at % 2)
      bytes[aligned] = 0xff
      await put('bad.csv', bytes)
      const opened = await openFiles({ files: 'bad.csv', content: 'text' }, contextOf())
      expect(opened.files[0]?.invalidUtf8At, `at ${at}`).toBe(aligned)
    }
    await put('cut.csv', Buffer.from([0x61, 0xe2, 0x82]))
    const opened = await openFiles({ files: 'cut.csv', content: 'text' }, contextOf())
    expect(opened.files[0]?.invalidUtf8At).toBe(1)
  })

  test('bytes that the named encoding does not have are refused with file and line (G9)', async () => {
    await put('a.csv', Buffer.concat([Buffer.from('id\n1\n'), Buffer.from([0x81, 0x20]), Buffer.from('\n')]))
    await expect(openText('a.csv', { encoding: 'shift_jis' })).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: 'Cannot read "a.csv" as shift_jis: bad bytes near line 3 (G9)',
    })
    await put('odd.csv', Buffer.from(`\ufeffab`, 'utf16le').subarray(0, 5))
    await expect(openText('odd.csv')).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: expect.stringContaining('ends in the middle of a character'),
    })
    const lone = Buffer.from([0xff, 0xfe, 0x3d, 0xd8, 0x61, 0x00])
    await put('lone.csv', lone)
    await expect(openText('lone.csv')).rejects.toMatchObject({ code: 'STET_SOURCE' })
  })

  test('a mark that contradicts the named encoding, an unknown encoding and another format are refused', async () => {
    await put('8.csv', `\ufeff${text}`)
    await expect(openText('8.csv', { encoding: 'windows-1252' })).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: 'Cannot read "8.csv" as windows-1252: its byte order mark says UTF-8',
    })
    await expect(openText('8.csv', { encoding: 'klingon' })).rejects.toMatchObject({ code: 'STET_CONFIG' })
    await put('book.csv', Buffer.from('504b030414000600', 'hex'))
    await expect(openText('book.csv')).rejects.toMatchObject({
      code: 'STET_SOURCE',
      message: expect.stringContaining('.xlsx'),
    })
  })
})
