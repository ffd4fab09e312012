import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { columnOf, evaluate } from '../../test/support/local-texts.ts'
import { typedTexts } from '../../test/support/typed-texts.ts'
import { formatColumnType, parseColumnType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import { contentHash, contentHashSql } from './content-hash.ts'
import { type LocalEngine, openLocalEngine } from './engine.ts'
import { readSql, wideSql } from './typing.ts'

let local: LocalEngine
beforeAll(async () => {
  local = await openLocalEngine({ threads: 2 })
})
afterAll(async () => {
  await local[Symbol.asyncDispose]()
})

interface Vector {
  readonly title: string
  readonly columns: readonly { readonly name: string; readonly type: string; readonly value: string | null }[]
  readonly preimage: string
  readonly sha256: string
}

const { vectors } = JSON.parse(
  readFileSync(new URL('../../docs/content-hash.vectors.json', import.meta.url), 'utf8'),
) as { readonly vectors: readonly Vector[] }

/** The hash by DuckDB of one row: each value landed in its column as text made typed, as a run does it. */
async function duckdbHash(vector: Vector): Promise<string | null> {
  const columns: ContractColumn[] = []
  for (const { name, type, value } of vector.columns) {
    const column = columnOf(parseColumnType(type), { name, id: `c${columns.length}` })
    const [wide] = await evaluate(local, [value], wideSql(column, 't'))
    columns.push({ ...column, asText: wide === 'true' })
  }
  const row = JSON.stringify(vector.columns.map((column) => column.value))
  const landed = columns
    .map((column, position) => `${readSql(column, `(t::json->>${position})`)} as ${column.id}`)
    .join(', ')
  const hash = contentHashSql(columns.map((column) => ({ column, expr: column.id })))
  const [answer = null] = await evaluate(
    local,
    [row],
    columns.length === 0 ? hash : `(select ${hash} from (select ${landed}))`,
  )
  return answer
}

function referenceHash(columns: Vector['columns']): string {
  return contentHash(columns.map(({ name, type, value }) => ({ name, type: parseColumnType(type), value })))
}

describe('the published vectors', () => {
  test('are many, and each is what its preimage says', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(40)
    expect(new Set(vectors.map((vector) => vector.title)).size).toBe(vectors.length)
    for (const { preimage, sha256 } of vectors) {
      expect(createHash('sha256').update(preimage, 'utf8').digest('hex')).toBe(sha256)
    }
  })

  test.each(vectors)('$title', async (vector) => {
    expect(referenceHash(vector.columns)).toBe(vector.sha256)
    expect(await duckdbHash(vector)).toBe(vector.sha256)
  })
})

/** The hash by DuckDB of each value alone in a column `v`, once it has been landed. */
function duckdbHashes(column: ContractColumn, texts: readonly (string | null)[]): Promise<(string | null)[]> {
  const hash = contentHashSql([{ column, expr: 'v' }])
  return evaluate(local, texts, `(select ${hash} from (select ${readSql(column, 't')} as v))`)
}

describe('the DuckDB rendering and the reference', () => {
  test.each(typedTexts.map(({ type, texts }) => ({ name: formatColumnType(type), type, texts })))(
    'agree on every value of $name',
    async ({ type, texts }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(texts, { minLength: 40, maxLength: 80 }), async (list) => {
          const isWide = await evaluate(local, list, wideSql(columnOf(type), 't'))
          for (const asText of [false, true]) {
            // A column is text for all of its values or for none.
            const held = list.filter((_, n) => asText || isWide[n] === 'false')
            const column = columnOf(type, { asText })
            const ours = held.map((value) => contentHash([{ name: column.name, type, value }]))
            const theirs = await duckdbHashes(column, held)
            for (const [n, text] of held.entries()) {
              expect({ text, asText, hash: theirs[n] }).toEqual({ text, asText, hash: ours[n] })
            }
          }
        }),
        { numRuns: 8 },
      )
    },
  )

  test('agree on rows of many columns with NULLs among them', async () => {
    const cells = fc.array(
      fc
        .constantFrom(...typedTexts.filter(({ type }) => type.kind !== 'char'))
        .chain(({ type, texts }) =>
          fc.tuple(
            fc.constant(type),
            fc.oneof(texts, fc.constant(null)),
            fc.string({ unit: 'grapheme', minLength: 1 }),
          ),
        ),
      { maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(cells, async (row) => {
        const columns = row
          .filter(
            ([, , name], n) => row.findIndex(([, , other]) => other === name) === n && !name.includes('\0'),
          )
          .map(([type, value, name]) => ({ name, type: formatColumnType(type), value }))
        expect(await duckdbHash({ title: '', columns, preimage: '', sha256: '' })).toBe(
          referenceHash(columns),
        )
      }),
      { numRuns: 60 },
    )
  })

  test('agree on texts of a megabyte and numbers of thousands of digits', async () => {
    const cases: [ColumnType, string][] = [
      [{ kind: 'text' }, 'é😀'.repeat(200_000)],
      [{ kind: 'jsonb' }, JSON.stringify({ a: 'x'.repeat(1_000_000) })],
      [{ kind: 'numeric' }, `${'9'.repeat(20_000)}.${'10'.repeat(5_000)}`],
    ]
    for (const [type, value] of cases) {
      expect(await duckdbHashes(columnOf(type), [value])).toEqual([contentHash([{ name: 'v', type, value }])])
    }
  })

  test("agree whatever the session's zone, and however a target spells a year before 1", async () => {
    await using other = await openLocalEngine()
    await other.run(`set TimeZone = 'Asia/Tokyo'`)
    const column = columnOf({ kind: 'timestamptz' })
    const hash = `(select ${contentHashSql([{ column, expr: 'v' }])} from (select ${readSql(column, 't')} as v))`
    const value = '2025-03-01T10:00:00+02:00'
    expect(await evaluate(other, [value], hash)).toEqual([
      contentHash([{ name: 'v', type: column.type, value }]),
    ])

    const text = columnOf({ kind: 'date' }, { asText: true })
    const ofText = contentHashSql([{ column: text, expr: 't' }])
    const expected = contentHash([{ name: 'v', type: text.type, value: '0044-03-15 BC' }])
    expect(await evaluate(local, ['0044-03-15 BC', '0044-03-15 (BC)'], ofText)).toEqual([expected, expected])
  })
})

describe('the contract', () => {
  const amount = (type: string, value: string) =>
    contentHash([{ name: 'amount', type: parseColumnType(type), value }])

  test('a wider type does not change a hash', () => {
    const hashes = [
      'smallint',
      'integer',
      'bigint',
      'numeric(12,2)',
      'numeric(38,10)',
      'numeric',
      'double precision',
      'real',
    ]
    expect(new Set(hashes.map((type) => amount(type, '42'))).size).toBe(1)
    expect(amount('varchar(10)', 'x')).toBe(amount('text', 'x'))
    expect(amount('real', '0.1')).toBe(amount('double precision', '0.10000000149011612'))
  })

  test('a column that is NULL can come and go', () => {
    const row = [{ name: 'a', type: { kind: 'text' }, value: 'x' }] as const
    expect(contentHash([...row, { name: 'b', type: { kind: 'date' }, value: null }])).toBe(contentHash(row))
  })

  test('rows that differ in a name, a value or where one ends have different hashes', async () => {
    const text = fc.string({ maxLength: 6 })
    const row = fc.uniqueArray(fc.tuple(text, fc.option(text)), { selector: ([name]) => name, maxLength: 4 })
    const key = (cells: readonly (readonly [string, string | null])[]) =>
      JSON.stringify(cells.filter(([, value]) => value !== null).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    const hash = (cells: readonly (readonly [string, string | null])[]) =>
      contentHash(cells.map(([name, value]) => ({ name, type: { kind: 'text' }, value })))
    fc.assert(
      fc.property(row, row, (a, b) => {
        expect(hash(a) === hash(b)).toBe(key(a) === key(b))
      }),
      { numRuns: 2000 },
    )
  })

  test('a value that is none of its type, and a name that comes twice, are defects', () => {
    expect(() => amount('bigint', 'x')).toThrow(
      'Cannot hash a value as bigint: it is not a whole number in digits',
    )
    const twice = { name: 'a', type: { kind: 'text' }, value: 'x' } as const
    expect(() => contentHash([twice, twice])).toThrow('names a column twice')
    expect(() => contentHash([{ ...twice, value: '\ud800' }])).toThrow('Cannot hash')
  })
})
