import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ContractColumn } from '../model/columns.ts'
import { type LocalEngine, openLocalEngine } from './engine.ts'
import { fieldSql, joinLine, joinLines, lineSql, splitLine, splitSql } from './lines.ts'

let local: LocalEngine
beforeAll(async () => {
  local = await openLocalEngine()
})
afterAll(() => local[Symbol.asyncDispose]())

const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\x1c', '\x1d', '\x1e', '\x1f', '0', '1', '2', '3', '\ufeff', '\n', "'", 'é'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 6,
})
const rows = fc.integer({ min: 1, max: 4 }).chain((columns) =>
  fc.array(fc.array(fc.option(text, { freq: 4 }), { minLength: columns, maxLength: columns }), {
    minLength: 1,
    maxLength: 4,
  }),
)

function columnOf(position: number): ContractColumn {
  return {
    id: `c${position}`,
    name: `c${position}`,
    type: { kind: 'text' },
    origin: 'declared',
    key: false,
    newest: false,
    ignored: false,
    asText: false,
  }
}

const hex = (value: string | null) =>
  value === null ? null : Buffer.from(value, 'utf8').toString('hex').toUpperCase()
const literal = (value: string | null) =>
  value === null ? 'null::varchar' : `decode(unhex('${hex(value)}'))`

test('values come out of lines as they went in, whatever characters they hold', async () => {
  await fc.assert(
    fc.asyncProperty(rows, async (sent) => {
      const columns = (sent[0] ?? []).map((_, i) => columnOf(i))
      const ids = columns.map(({ id }) => id).join(', ')
      const values = sent.map((row, i) => `(${i}, ${row.map(literal).join(', ')})`)
      const out = await local.rows(
        `select ${lineSql(columns)} as line from (values ${values.join(', ')}) as v (n, ${ids}) order by n`,
      )
      expect(out.map(({ line }) => splitLine(String(line)))).toEqual(sent)

      const lines = literal(joinLines(sent.map(joinLine)))
      const fields = columns.map(({ id }, i) => `hex(${fieldSql(i)}) as ${id}`)
      const back = await local.rows(
        `select ${fields.join(', ')} from (${splitSql(`(select ${lines} as lines)`)})`,
      )
      expect(back.map((row) => columns.map(({ id }) => row[id]))).toEqual(sent.map((row) => row.map(hex)))
    }),
    { numRuns: 300 },
  )
})
