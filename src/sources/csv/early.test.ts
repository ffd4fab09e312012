import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StetError } from '../../errors.ts'
import { type LocalEngine, openLocalEngine } from '../../local/engine.ts'
import { land } from '../../local/land.ts'
import type { Contract } from '../../model/columns.ts'
import type { SourceFile } from '../../model/source.ts'
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

function contractOf(names: readonly string[]): Contract {
  return {
    columns: names.map((name, i) => ({
      id: `c${i}`,
      name,
      type: { kind: 'text' },
      origin: 'declared',
      key: false,
      newest: false,
      ignored: false,
      asText: false,
    })),
    keep: { updatedAt: null, contentHash: null, gone: null },
  }
}

interface Outcome {
  readonly early: number
  readonly files: readonly SourceFile[]
  readonly rows: readonly string[]
  readonly read: number
  readonly rejects: readonly unknown[]
}

/** What becomes of a file when it is landed: all there is to know of it, or the refusal. */
async function outcomeOf(options: CsvOptions, mayLookLater: boolean): Promise<Outcome | string> {
  try {
    await using source = await csv(options).open({
      local: engine,
      cwd: folder,
      signal: new AbortController().signal,
      progress: () => undefined,
      mayLookLater,
    })
    const ids = source.fields.map((_, i) => `hex(c${i})`)
    const rules = { nullKeys: 'match', normalizeKey: undefined } as const
    const contract = contractOf(source.fields.map(({ name }) => name))
    const landed = await land(engine, source.parts, contract, rules)
    const rows = await engine.rows(
      `select [${ids.join(', ')}]::varchar as row from ${landed.table} order by 1`,
    )
    await engine.run(`drop table ${landed.table}`)
    await source.verify()
    return {
      early: source.parts.filter((part) => part.early !== undefined).length,
      files: source.files,
      rows: rows.map(({ row }) => String(row)),
      read: landed.read,
      rejects: landed.rejects,
    }
  } catch (error) {
    if (error instanceof StetError) return error.message
    throw error
  }
}

const hostile = fc
  .array(
    fc.oneof(
      { arbitrary: fc.constantFrom('a', 'é', ',', ',', '\n', '\n', 'b,c', '"x"', ',"y,\nz"'), weight: 9 },
      { arbitrary: fc.constantFrom('"', '""', '",', ',"', '"\n', '\n"', ' ', ' "', '" '), weight: 2 },
      { arbitrary: fc.constantFrom('\r\n', '\r', '\u0001', '\0', '\ufeff', '\\'), weight: 1 },
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(''))

test('a file that is landed while it is looked at comes to the same as one that was looked at before (G9)', async () => {
  const path = join(folder, 'a.csv')
  const seen = { early: 0, refused: 0, rejected: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('a\n', 'a,b\n', 'a,b,c\n', '\na,b\n', '"a","b"\n', ''),
      hostile,
      async (header, text) => {
        await writeFile(
          path,
          Buffer.from(header + text).map((byte) => (byte === 1 ? 0xff : byte)),
        )
        const options: CsvOptions = {
          files: path,
          delimiter: ',',
          ...(header === '' ? { header: ['a', 'b'] } : {}),
        }
        const before = await outcomeOf(options, false)
        const beside = await outcomeOf(options, true)
        if (typeof beside === 'string') seen.refused++
        else {
          seen.early += beside.early
          seen.rejected += beside.rejects.length
        }
        expect(typeof beside === 'string' ? beside : { ...beside, early: 0 }).toEqual(before)
      },
    ),
    { numRuns: 120 },
  )
  expect(seen.early).toBeGreaterThan(30)
  expect(seen.refused).toBeGreaterThan(5)
  expect(seen.rejected).toBeGreaterThan(30)
})

test('what was landed early counts for nothing when the end of the file needs another reading', async () => {
  const rows = Array.from({ length: 50_000 }, (_, i) => `${i},value ${i}`).join('\n')
  await writeFile(join(folder, 'late.csv'), `id,text\n${rows}\n7, "spaced"\n`)
  const options: CsvOptions = { files: 'late.csv' }
  const beside = await outcomeOf(options, true)
  expect(beside).toMatchObject({ early: 1, read: 50_001, rejects: [] })
  expect({ ...(beside as Outcome), early: 0 }).toEqual(await outcomeOf(options, false))
})

test('the refusal of a file that is looked at later names it, and the files before it are known', async () => {
  await writeFile(join(folder, '1.csv'), 'id\nnumber one\n')
  await writeFile(join(folder, '2.csv'), 'id\n"number two\n')
  await using source = await csv({ files: ['1.csv', '2.csv'], delimiter: ',' }).open({
    local: engine,
    cwd: folder,
    signal: new AbortController().signal,
    progress: () => undefined,
    mayLookLater: true,
  })
  await expect(source.looked?.()).rejects.toMatchObject({ code: 'STET_SOURCE', message: /2\.csv/ })
  expect(source.files.map(({ path }) => path)).toEqual(['1.csv'])
})
