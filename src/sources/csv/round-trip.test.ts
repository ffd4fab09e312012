import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StetError } from '../../errors.ts'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import type { OpenSource } from '../../model/source.ts'
import { splitFields } from './fields.ts'
import { type CsvOptions, csv } from './index.ts'

let engine: LocalEngine
let folder: string

beforeAll(async () => {
  engine = await openLocalEngine()
  folder = await mkdtemp(join(tmpdir(), 'stet-csv-'))
})
afterAll(async () => {
  await engine[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

function open(options: CsvOptions): Promise<OpenSource> {
  return csv(options).open({
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

interface Written {
  readonly delimiter: string
  readonly quote: string
  readonly escape: string
  readonly lineEnd: string
  readonly finalLineEnd: boolean
  readonly byteOrderMark: boolean
  readonly encoding: 'utf8' | 'utf16le'
  /** Written where nothing asks for it. */
  readonly extraQuotes: boolean
  readonly spaces: boolean
  readonly blankLines: boolean
}

const written: fc.Arbitrary<Written> = fc.record({
  delimiter: fc.constantFrom(',', ';', '\t', '|', '¦'),
  quote: fc.constantFrom('"', "'"),
  escape: fc.constantFrom('', '\\'),
  lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
  finalLineEnd: fc.boolean(),
  byteOrderMark: fc.boolean(),
  encoding: fc.constantFrom('utf8', 'utf16le'),
  extraQuotes: fc.boolean(),
  spaces: fc.boolean(),
  blankLines: fc.boolean(),
})

const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', "'", ',', ';', '\t', '\n', '\r', '\\', ' ', 'a', '\ufeff', '\0', 'é', '😀', '#'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 8,
})
const value = fc.option(text, { freq: 5 })

const table = fc.integer({ min: 1, max: 4 }).chain((columns) =>
  fc.record({
    names: fc.uniqueArray(
      text.filter((name) => name.trim() !== '' && !name.includes('\0')),
      { minLength: columns, maxLength: columns },
    ),
    rows: fc.array(fc.array(value, { minLength: columns, maxLength: columns }), { maxLength: 30 }),
  }),
)

interface Place {
  readonly line: number
  readonly raw: string
}

/** The file, and where its rows stand in it. */
function write(
  { names, rows }: { names: readonly string[]; rows: readonly (readonly (string | null)[])[] },
  how: Written,
): { readonly text: string; readonly places: readonly Place[] } {
  const { quote, delimiter, lineEnd } = how
  const quoteEscape = how.escape === '' ? quote : how.escape
  const field = (content: string | null) => {
    if (content === null) return ''
    const isBare =
      content !== '' &&
      ![quote, delimiter, '\n', '\r'].some((mark) => content.includes(mark)) &&
      !how.extraQuotes
    if (isBare) return content
    const escaped = [...content].map((c) => (c === quote || c === quoteEscape ? quoteEscape + c : c)).join('')
    const space = how.spaces ? '  ' : ''
    return `${space}${quote}${escaped}${quote}${space}`
  }
  let file = ''
  let line = 1
  const append = (piece: string) => {
    file += piece
    const breaks = lineEnd === '\r' ? /\r/g : /\n/g
    line += piece.match(breaks)?.length ?? 0
  }
  const places: Place[] = []
  append(names.map(field).join(delimiter) + lineEnd)
  for (const row of rows) {
    if (how.blankLines && names.length > 1) append(lineEnd)
    const raw = row.map(field).join(delimiter)
    places.push({ line, raw })
    append(raw + lineEnd)
  }
  // Without its line end, a last row that is NULL alone would be nothing at all.
  const cut = !how.finalLineEnd && !file.endsWith(lineEnd + lineEnd)
  return { text: cut ? file.slice(0, -lineEnd.length) : file, places }
}

test('any table of texts comes back as it was written, in every dialect, and each row is found at its line', async () => {
  const path = join(folder, 'a.csv')
  await fc.assert(
    fc.asyncProperty(table, written, async (content, how) => {
      const { text, places } = write(content, how)
      const mark =
        how.byteOrderMark || how.encoding === 'utf16le' || text.startsWith('\ufeff') ? '\ufeff' : ''
      await writeFile(path, Buffer.from(mark + text, how.encoding))
      await using source = await open({
        files: path,
        delimiter: how.delimiter,
        quote: how.quote,
        ...(how.escape === '' ? {} : { escape: how.escape }),
      })
      expect(source.fields.map(({ name }) => name)).toEqual(content.names)
      const [part] = source.parts
      const rows = await rowsOf(part?.select(content.names) ?? '', content.names.length)
      expect(rows).toEqual(content.rows)
      expect(await part?.rejects()).toEqual([])
      expect(part?.records).toBe(content.rows.length)
      expect(await part?.locate(content.rows.map((_, i) => i + 1))).toEqual(places)
    }),
    { numRuns: 200 },
  )
})

const hostile = fc
  .array(
    fc.oneof(
      { arbitrary: fc.constantFrom('a', 'é', ',', '"', '""', '",', ',"', '"\n', '\n"'), weight: 8 },
      { arbitrary: fc.constantFrom('\n', ' ', '\\', '\\"', '#', '\ufeff', '\0'), weight: 4 },
      { arbitrary: fc.constantFrom('\r\n', '\r', '\u0001'), weight: 1 },
    ),
    { maxLength: 25 },
  )
  .map((pieces) => pieces.join(''))

test('whatever a file holds, it is refused by name, or each record is a row as it stands there or a reject', async () => {
  const path = join(folder, 'b.csv')
  let read = 0
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('a\n', 'a,b\n', 'a,b,c\n', 'a,b\r\n', '"a\n",b\r', ''),
      hostile,
      fc.constantFrom('"', '\\'),
      fc.constantFrom(0, 1),
      async (header, text, quoteEscape, skip) => {
        await writeFile(
          path,
          Buffer.from(header + text).map((byte) => (byte === 1 ? 0xff : byte)),
        )
        const options = { files: path, delimiter: ',', escape: quoteEscape, skip }
        let source: OpenSource
        try {
          source = await open(header === '' ? { ...options, header: ['a', 'b'] } : options)
        } catch (error) {
          if (error instanceof StetError && error.message.includes('b.csv')) return
          throw error
        }
        read++
        const names = source.fields.map(({ name }) => name)
        const [part] = source.parts
        const rows = await rowsOf(part?.select(names) ?? '', names.length)
        const onlyFirst = await rowsOf(part?.select(names.slice(0, 1)) ?? '', 1)
        const rejects = (await part?.rejects()) ?? []
        expect(rows.length + rejects.length).toBe(part?.records)
        expect(onlyFirst.flat()).toEqual(rows.map(([first]) => first))
        const shape = {
          delimiters: [Buffer.from(',')],
          quote: 0x22,
          quoteEscape: quoteEscape.charCodeAt(0),
          lineEnd: 'lf',
          skip: 0,
          comment: null,
        } as const
        const places = (await part?.locate(rows.map((_, i) => i + 1))) ?? []
        const asWritten = places.map(({ raw }) => {
          const fields = splitFields(Buffer.from(raw), shape)
          expect(fields.slice(names.length).every(({ text, quoted }) => text === '' && !quoted)).toBe(true)
          return names.map((_, i) => {
            const field = fields[i]
            return field === undefined || (field.text === '' && !field.quoted) ? null : field.text
          })
        })
        expect(rows).toEqual(asWritten)
        for (const { raw, reason } of rejects) {
          const fields = splitFields(Buffer.from(raw ?? ''), shape)
          expect(reason.startsWith('has ')).toBe(
            fields.length !== names.length && !/follows|UTF-8/.test(reason),
          )
        }
      },
    ),
    { numRuns: 400 },
  )
  expect(read).toBeGreaterThan(20)
})
