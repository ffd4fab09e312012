import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { InputFile } from '../shared/files.ts'
import { readDocument } from './document.ts'
import { JsonFault, skipSpace, skipValue, unescaped } from './scan.ts'

function scan(text: string) {
  const findings = { refusal: null as string | null, escaped: false }
  return { end: skipSpace(text, skipValue(text, skipSpace(text, 0), findings)), refusal: findings.refusal }
}

/** Whether our scanner takes the text for one JSON value. */
function isJson(text: string): boolean {
  try {
    return scan(text).end === text.length
  } catch (fault) {
    expect(fault).toBeInstanceOf(JsonFault)
    return false
  }
}

function isJsonToJavaScript(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('the scanner', () => {
  test('takes for JSON what JavaScript takes for JSON, whole', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ noUnicodeString: false }),
        fc.constantFrom(undefined, 1, '\t'),
        (value, indent) => {
          expect(isJson(JSON.stringify(value, null, indent))).toBe(true)
        },
      ),
    )
  })

  test('refuses what JavaScript refuses, in texts with one character out of place', () => {
    const characters = fc.constantFrom(...'{}[]",:\\ue01.-+tfn \n\0a', '')
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), fc.boolean(), characters, (value, at, replaces, character) => {
        const text = JSON.stringify(value)
        const i = at % (text.length + 1)
        const damaged = text.slice(0, i) + character + text.slice(replaces ? i + 1 : i)
        expect([damaged, isJson(damaged)]).toEqual([damaged, isJsonToJavaScript(damaged)])
      }),
      { numRuns: 1000 },
    )
  })

  test('calls a text cut, not broken, when more of it would make it whole', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { minLength: 1 }), fc.nat(), (value, at) => {
        const text = JSON.stringify(value)
        const beginning = text.slice(0, at % text.length)
        expect(() => scan(beginning)).toThrow(expect.objectContaining({ kind: 'cut' }))
      }),
      { numRuns: 300 },
    )
  })

  test('reads escapes as JavaScript does', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const escaped = [...text].map((c) =>
          c.length === 1 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}` : c,
        )
        expect(unescaped(escaped.join(''))).toBe(text)
        expect(unescaped(JSON.stringify(text).slice(1, -1))).toBe(text)
      }),
    )
  })

  test.each(['\\ud800', '\\udc00', '\\ud800\\ud800', '\\ud800x', '\\udc00\\ud800'])(
    'finds half of a surrogate pair in %s, however deep it is',
    (half) => {
      expect(scan(`{"a":[{"b":"x${half}"}]}`).refusal).toContain('surrogate')
      expect(scan(`{"x${half}":1}`).refusal).toContain('surrogate')
    },
  )

  test('takes a whole pair', () => {
    expect(scan('"\\ud83d\\ude00"').refusal).toBeNull()
  })

  test('goes down a hundred thousand levels and says that they are too many', () => {
    const deep = `${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}`
    expect(scan(deep)).toEqual({ end: deep.length, refusal: 'is nested deeper than 1000 levels' })
    expect(scan(`${'['.repeat(1000)}${']'.repeat(1000)}`).refusal).toBeNull()
  })
})

describe('a document', () => {
  test('is read alike in pieces of any size', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stet-json-'))
    const path = join(folder, 'x.json')
    const input: InputFile = {
      file: { path: 'x.json', bytes: 0, sha256: '' },
      path,
      bytes: 0,
      invalidUtf8At: null,
    }
    const readIn = async (keys: string[], pieceBytes: number) => {
      const records: unknown[] = []
      await readDocument(
        input,
        keys,
        {
          read: (text, from) => skipValue(text, from, { refusal: null, escaped: false }),
          done: (line, raw) => void records.push([line, raw()]),
          finished: false,
        },
        pieceBytes,
      )
      return records
    }
    const value = fc.jsonValue({ maxDepth: 3, noUnicodeString: false })
    await fc.assert(
      fc.asyncProperty(
        fc.array(value),
        value,
        fc.constantFrom('', ' ', '\n', '\r\n\t'),
        fc.integer({ min: 1, max: 9 }),
        async (values, other, space, pieceBytes) => {
          const texts = values.map((item) => JSON.stringify(item, null, 1))
          const array = `${space}[${space}${texts.join(`${space},${space}`)}${space}]${space}`
          await writeFile(path, array)
          const records = await readIn([], pieceBytes)
          expect(records.map((record) => (record as unknown[])[1])).toEqual(texts)
          expect(records).toEqual(await readIn([], 1 << 20))
          for (const rest of ['\n x', ' x']) {
            await writeFile(path, array + rest)
            const whole = await readIn([], 1 << 20).catch((error: Error) => error.message)
            expect(whole).toContain('more follows behind its end (line ')
            expect(await readIn([], pieceBytes).catch((error: Error) => error.message)).toBe(whole)
          }
          await writeFile(path, `{"x":${JSON.stringify(other)},"a":{"n":12,"b":${array},"y":-1.5e3}}`)
          expect((await readIn(['a', 'b'], pieceBytes)).map((record) => (record as unknown[])[1])).toEqual(
            texts,
          )
          const objects = texts.map((text) => `{"v":${text}}`)
          await writeFile(path, objects.join(space))
          if (objects.length > 0) {
            expect((await readIn([], pieceBytes)).map((record) => (record as unknown[])[1])).toEqual(objects)
          }
        },
      ),
      { numRuns: 60 },
    )
    await rm(folder, { recursive: true })
  })
})
