import { describe, expect, test } from 'vitest'
import { definePipeline, run, type TransformRow } from '../src/index.ts'
import { literalRows } from '../src/testing/index.ts'
import { eachTarget, table } from './cases/harness.ts'

const COLUMNS = {
  id: 'text',
  amount: 'numeric(12,2)',
  at: 'timestamptz',
  big: 'bigint',
  ok: 'boolean',
  doc: 'jsonb',
} as const
const ROWS = [
  ['a', '1.50', '2024-02-29 10:00:00.123456+02', '9007199254740993', 'true', '{"b": 1, "a": 2}'],
  ['b', '2.00', null, '-1', 'false', null],
  ['c', '3.25', '2024-03-01 00:00:00+00', '0', null, '[1.50]'],
]

eachTarget((_, create) => {
  describe('a row transform', () => {
    test('says so where it drops a column that the source does not have', async () => {
      await using place = await create()
      const { columns: _, ...source } = literalRows({ id: 'text', amount: 'text' }, [['a', '1']])
      const notices: string[] = []
      const pipeline = definePipeline({
        name: 't',
        source,
        target: place.target,
        table: 't',
        transform: { row: (row) => row, drops: ['amout'] as never },
        write: { strategy: 'upsert', key: ['id'] },
      })
      await run(pipeline, { onNotice: (message) => notices.push(message) })
      expect(notices).toContain(
        'The transform drops "amout", which the source does not have; it has "id", "amount"',
      )
    })

    test('sees exact values, may change, drop and add rows, and its own columns are declared (G6)', async () => {
      await using place = await create()
      const seen: TransformRow[] = []
      const change = (row: TransformRow): TransformRow | readonly TransformRow[] | null => {
        seen.push(row)
        const { ok: _, ...rest } = row
        if (row.id === 'b') return null
        const changed = { ...rest, note: `${String(row.id)}!`, copy: 0 }
        return row.id === 'c' ? [changed, { ...changed, copy: 1 }] : changed
      }
      const pipelineWith = (row: typeof change) =>
        definePipeline({
          name: 't',
          source: literalRows(COLUMNS, ROWS),
          target: place.target,
          table: 't',
          transform: { row, adds: { note: 'text', copy: 'integer' }, drops: ['ok'] },
          write: { strategy: 'upsert', key: ['id', 'copy'] },
        })
      await expect(run(pipelineWith((row) => row))).rejects.toMatchObject({
        code: 'STET_CONFIG',
        message: expect.stringContaining('"ok"'),
      })
      seen.length = 0
      const result = await run(pipelineWith(change))
      expect(result.counts).toMatchObject({ read: 3, filtered: 1, added: 1, afterTransform: 3, inserted: 3 })
      expect(seen.find((row) => row.id === 'a')).toMatchObject({
        amount: '1.50',
        big: 9007199254740993n,
        ok: true,
        at: '2024-02-29 08:00:00.123456+00',
        doc: '{"a": 2, "b": 1}',
      })
      expect(await table(place, 't', ['id', 'copy', 'big', 'note'])).toEqual([
        ['a', '0', '9007199254740993', 'a!'],
        ['c', '0', '0', 'c!'],
        ['c', '1', '0', 'c!'],
      ])
      expect((await run(pipelineWith(change))).counts).toMatchObject({
        unchanged: 3,
        inserted: 0,
        updated: 0,
      })
    })

    test('a value that begins with a byte order mark goes through whole (G9)', async () => {
      await using place = await create()
      const pipeline = definePipeline({
        name: 't',
        source: literalRows({ id: 'text', v: 'text' }, [['\u{FEFF}a', '\u{FEFF}\u{FEFF}b']]),
        target: place.target,
        table: 't',
        transform: { row: (row) => row },
        write: { strategy: 'upsert', key: ['id'] },
      })
      await run(pipeline)
      const rows = await table(place, 't', ['id', 'v'])
      expect(rows.map((row) => row.map((value) => value?.length))).toEqual([[2, 3]])
    })

    test('what it returns is read as strictly as a file: a rounded value is a reject (G9)', async () => {
      await using place = await create()
      const pipeline = definePipeline({
        name: 't',
        source: literalRows(COLUMNS, ROWS),
        target: place.target,
        table: 't',
        transform: { row: (row) => ({ ...row, amount: '1.005' }) },
        write: { strategy: 'upsert', key: ['id'] },
      })
      await expect(run(pipeline)).rejects.toMatchObject({ code: 'STET_REJECTED' })
      expect(await place.count('t')).toBe(0)
    })

    test('an integer that a number cannot hold, an undeclared column and a throw name the row', async () => {
      await using place = await create()
      const attempt = (row: (row: TransformRow) => TransformRow) =>
        run(
          definePipeline({
            name: 't',
            source: literalRows(COLUMNS, ROWS),
            target: place.target,
            table: 't',
            transform: { row },
            write: { strategy: 'upsert', key: ['id'] },
          }),
        )
      await expect(attempt((row) => ({ ...row, big: 2 ** 60 }))).rejects.toThrow('cannot hold exactly')
      await expect(attempt((row) => ({ ...row, extra: 1 }))).rejects.toThrow('"extra"')
      await expect(attempt(({ doc: _, ...row }) => row)).rejects.toThrow('without "doc"')
      await expect(attempt((async (row: TransformRow) => row) as never)).rejects.toThrow(
        'a promise; it must not be async',
      )
      await expect(attempt((() => 'oops') as never)).rejects.toThrow('returned "oops"')
      await expect(attempt((() => undefined) as never)).rejects.toThrow('returned nothing')
      await expect(
        attempt(((row: TransformRow) => ({ ...row, amount: row.amuont })) as never),
      ).rejects.toThrow('undefined in "amount"')
      const thrown = attempt(() => {
        throw new Error('boom')
      })
      await expect(thrown).rejects.toThrow(/boom; at the row id=/)
      expect(await place.count('t')).toBe(0)
    })

    test('a row transform that fails in the middle says at which row, and nothing is written (G2)', async () => {
      await using place = await create()
      // Several chunks of the engine, so that one is on its way when the transform gives up.
      const rows = Array.from({ length: 10_000 }, (_, n) => [String(n), '1.50'])
      const pipelineWith = (row: (row: TransformRow) => TransformRow) =>
        definePipeline({
          name: 't',
          source: literalRows({ id: 'text', amount: 'numeric(12,2)' }, rows),
          target: place.target,
          table: 't',
          transform: { row },
          write: { strategy: 'upsert', key: ['id'] },
        })
      const failing = pipelineWith((row) => {
        if (row.id === '3000') throw new Error('no such rate')
        return row
      })
      await expect(run(failing)).rejects.toMatchObject({
        code: 'STET_CONFIG',
        message: expect.stringMatching(/no such rate.*id=3000/),
      })
      expect((await run(pipelineWith((row) => row))).counts).toMatchObject({ read: 10_000, inserted: 10_000 })
    })
  })

  describe('an SQL transform', () => {
    test('works on the landed rows by their own names and may add declared columns (G6)', async () => {
      await using place = await create()
      const pipeline = definePipeline({
        name: 't',
        source: literalRows(COLUMNS, ROWS),
        target: place.target,
        table: 't',
        transform: {
          sql: `select id, amount, amount * 2 as doubled, big from landed where ok is distinct from false;`,
          adds: { doubled: 'numeric(14,2)' },
        },
        write: { strategy: 'upsert', key: ['id'] },
      })
      const result = await run(pipeline)
      expect(result.counts).toMatchObject({ read: 3, filtered: 1, added: 0, afterTransform: 2, inserted: 2 })
      expect(await table(place, 't', ['id', 'amount', 'doubled', 'big'])).toEqual([
        ['a', '1.50', '3.00', '9007199254740993'],
        ['c', '3.25', '6.50', '0'],
      ])
      expect((await run(pipeline)).counts).toMatchObject({ unchanged: 2 })
    })

    test('an undeclared column and SQL that fails are refused with the way out', async () => {
      await using place = await create()
      const attempt = (sql: string) =>
        run(
          definePipeline({
            name: 't',
            source: literalRows(COLUMNS, ROWS),
            target: place.target,
            table: 't',
            transform: { sql },
            write: { strategy: 'upsert', key: ['id'] },
          }),
        )
      await expect(attempt('select id, 1 as extra from landed')).rejects.toMatchObject({
        code: 'STET_CONFIG',
        message: expect.stringContaining('"extra"'),
      })
      await expect(attempt('select nothing from landed')).rejects.toMatchObject({ code: 'STET_CONFIG' })
    })
  })
})
