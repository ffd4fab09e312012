import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../test/support/databases.ts'
import { canonicalJson, jsonIdentity } from './canonical-json.ts'

test.each([
  ['{"b":1, "a":1.50}', '{"a": 1.50, "b": 1}'],
  ['{"bb":1,"c":2,"a":3}', '{"a": 3, "c": 2, "bb": 1}'],
  ['{"a":1,"a":2}', '{"a": 2}'],
  ['{"a":1,"b":2,"a":{"x":[]}}', '{"a": {"x": []}, "b": 2}'],
  ['[1e2,1.0E-2,-0,-0.0,1e400]', `[100, 0.010, 0, 0.0, 1${'0'.repeat(400)}]`],
  ['9007199254740993', '9007199254740993'],
  ['"\\u00e9\\/\\ud83d\\ude00\\u001F\\u007f"', '"é/😀\\u001f\u007f"'],
  [' {\n"a" :\t[ ] }\r\n', '{"a": []}'],
  ['{"é":1,"zz":2,"€":3,"a":4}', '{"a": 4, "zz": 2, "é": 1, "€": 3}'],
  ['{"":null}', '{"": null}'],
])('%s becomes %s', (text, canonical) => {
  expect(canonicalJson(text)).toBe(canonical)
})

test.each([
  '',
  ' ',
  'nope',
  'True',
  'NaN',
  '01',
  '1.',
  '.5',
  '+1',
  '1e',
  '--1',
  '0x1',
  '[1,]',
  '[,1]',
  '{"a":1,}',
  '{a:1}',
  "{'a':1}",
  '{"a"}',
  '[1] 2',
  '[1',
  '{"a":1',
  '"',
  '"a',
  '"\\x"',
  '"\\u12"',
  '"a\nb"',
  '"a\tb"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00"',
  '"\\ud800\\u0041"',
  '"\\ud800x\\udc00"',
  '1e131072',
  '1e-16384',
  '1e99999999999',
  '\u{FEFF}{}',
  '\u00a01',
  '// c\n1',
])('%j is no document that a database takes', (text) => {
  expect(canonicalJson(text)).toBeNull()
  expect(jsonIdentity(text)).toBeNull()
})

test('a document nested a hundred thousand deep is refused, not a stack overflow', () => {
  for (const depth of [1001, 100_000]) {
    expect(canonicalJson('['.repeat(depth + 1) + ']'.repeat(depth + 1))).toBeNull()
    expect(canonicalJson(`${'{"a":'.repeat(depth + 1)}1${'}'.repeat(depth + 1)}`)).toBeNull()
    expect(canonicalJson('['.repeat(depth))).toBeNull()
  }
  const deep = '['.repeat(1000) + ']'.repeat(1000)
  expect(canonicalJson(deep)).toBe(deep)
})

test('a small document of great exponents cannot fill the memory', () => {
  expect(canonicalJson(`[${Array.from({ length: 1000 }, () => '1e131071').join(',')}]`)).toBeNull()
})

test('equal documents have one identity, and documents that differ have not', () => {
  const same = ['{"b":1.0,"a":[10,null]}', '{"a":[1e1,null],"b":1.00}', ' {"b":10e-1,"a":[10.0 , null]}']
  expect(new Set(same.map(jsonIdentity))).toEqual(new Set(['{"a": [10, null], "b": 1}']))
  const different = [
    '[1,2]',
    '[2,1]',
    '1',
    '"1"',
    'null',
    '"null"',
    '{}',
    '[]',
    '[[]]',
    '{"a":1}',
    '{"A":1}',
    '0.1',
    '0.10000000000000000001',
  ]
  expect(new Set(different.map(jsonIdentity)).size).toBe(different.length)
})

test('a canonical document is its own canonical form, and JSON.parse sees the same in it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
      const canonical = canonicalJson(JSON.stringify(value))
      if (canonical === null) return expect(JSON.stringify(value)).toContain('\\u0000')
      expect(canonicalJson(canonical)).toBe(canonical)
      // -0 is 0 in every database.
      expect(JSON.parse(canonical)).toEqual(JSON.parse(JSON.stringify(value).replaceAll('-0,', '0,')))
    }),
    { numRuns: 2000 },
  )
})

describe.each(postgresServers())('$name', ({ url }) => {
  test('jsonb prints every document as we do, and equals another exactly when the identities do', async () => {
    await using db = await connect(await freshDatabase(url))
    const scalar = fc.oneof(
      fc.constantFrom(
        '1',
        '1.0',
        '1.00',
        '10e-1',
        '0',
        '-0',
        '-0.0',
        '1e2',
        '100',
        '1E+2',
        '"1"',
        '"é"',
        '"\\u00e9"',
        'null',
        'true',
        '"\\b\\f\\u0001"',
      ),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      fc
        .string({ unit: 'grapheme' })
        .filter((text) => !text.includes('\0'))
        .map((text) => JSON.stringify(text)),
    )
    const key = fc.oneof(
      fc.constantFrom('"a"', '"b"', '"aa"', '"é"', '"zz"', '"€"', '"\\u0061"', '"\u{FFFD}"', '"😀"', '""'),
      fc
        .string({ unit: 'grapheme', maxLength: 3 })
        .filter((text) => !text.includes('\0'))
        .map((text) => JSON.stringify(text)),
    )
    const { document } = fc.letrec<{ document: string }>((tie) => ({
      document: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        scalar,
        fc.array(tie('document'), { maxLength: 3 }).map((items) => `[${items.join(' ,')}]`),
        fc
          .array(fc.tuple(key, tie('document')), { maxLength: 4 })
          .map((entries) => `{${entries.map(([k, v]) => `${k}:${v}`).join(',')}}`),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(fc.array(document, { minLength: 100, maxLength: 200 }), async (texts) => {
        const { rows } = await db.client.query<{ printed: string; equal: boolean }>(
          `select t::jsonb::text as printed, t::jsonb = lead(t, 1, t) over (order by n)::jsonb as equal
             from unnest($1::text[]) with ordinality as x(t, n) order by n`,
          [texts],
        )
        for (const [n, text] of texts.entries()) {
          const next = texts[n + 1] ?? text
          expect({ text, printed: canonicalJson(text) }).toEqual({ text, printed: rows[n]?.printed })
          const equal = jsonIdentity(text) === jsonIdentity(next)
          expect({ text, next, equal }).toEqual({ text, next, equal: rows[n]?.equal })
        }
      }),
      { numRuns: 20 },
    )
  })
})
