import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { StetError } from '../../src/errors.ts'
import { plan } from '../../src/index.ts'
import type { Columns } from '../../src/model/columns.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import {
  brief,
  type CasePlace,
  caseFolder,
  casePipeline,
  caseText,
  eachTarget,
  loadCase,
  table,
} from './harness.ts'

async function withFile<Value>(text: string, body: (folder: string) => Promise<Value>): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-case-'))
  try {
    await writeFile(join(folder, 'in.csv'), text)
    return await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item, position) =>
    permutations(items.toSpliced(position, 1)).map((rest) => [item, ...rest]),
  )
}

eachTarget((target, create) => {
  const loader =
    (place: CasePlace, name: string, write: WriteStrategy, columns?: Columns, into = 't') =>
    (file: string) =>
      loadCase({ place, folder: caseFolder(name), file, table: into, write, columns })

  test('002: of one voucher in several lines the numerically greatest load_seq stays (G5)', async () => {
    const name = '002-same-voucher-several-times-in-one-file'
    const write: WriteStrategy = { strategy: 'upsert', key: ['voucher_no'], newest: 'load_seq' }
    await using place = await create()
    const first = await loader(place, name, write)('vouchers.csv')
    expect(first.counts).toMatchObject({ read: 6, inserted: 3, duplicate: 3, updated: 0 })
    const wanted = (await caseText(name, 'expected.csv'))
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(','))
    expect(await table(place, 't', ['voucher_no', 'load_seq', 'amount', 'status'])).toEqual(wanted)
    expect(brief(await loader(place, name, write)('vouchers.csv'))).toBe('0/0/3')
  })

  test('002: any order of the lines ends in the same table (G5)', async () => {
    const name = '002-same-voucher-several-times-in-one-file'
    const write: WriteStrategy = { strategy: 'upsert', key: ['voucher_no'], newest: 'load_seq' }
    const [header = '', ...lines] = (await caseText(name, 'vouchers.csv')).trim().split('\n')
    // All 720 orders say no more than the 24 orders of V-100's lines and one other.
    const some = permutations(lines.slice(0, 5)).filter((_, position) => position % 10 === 0)
    await using place = await create()
    const ends = new Set<string>()
    for (const [position, order] of some.entries()) {
      await withFile(`${[header, ...order, ...lines.slice(5)].join('\n')}\n`, (folder) =>
        loadCase({ place, folder, file: 'in.csv', table: `t${position}`, write }),
      )
      ends.add(
        JSON.stringify(await table(place, `t${position}`, ['voucher_no', 'load_seq', 'amount', 'status'])),
      )
    }
    expect(ends.size).toBe(1)
  })

  test('004: a tie on the order column is refused by key whatever the line order; identical lines are no tie (G5)', async () => {
    const name = '004-tie-on-the-load-sequence'
    const write: WriteStrategy = { strategy: 'upsert', key: ['account'], newest: 'load_seq' }
    for (const file of ['a.csv', 'b.csv']) {
      await using place = await create()
      const error = await loader(place, name, write)(file).catch((failure: unknown) => failure)
      expect(error).toBeInstanceOf(StetError)
      expect(error).toMatchObject({ code: 'STET_TIE', exitStatus: 3 })
      expect(String(error)).toContain('K1')
      expect(String(error)).toContain('load_seq=5')
      expect(String(error)).not.toContain('K2')
      expect(await place.count('t')).toBe(0)
    }
  })

  test('006: a stamp in every row is no change when it is ignored (G2)', async () => {
    const name = '006-export-stamp-in-every-row'
    const write: WriteStrategy = { strategy: 'upsert', key: ['sku'], ignore: ['exported_at'] }
    await using place = await create()
    const load = loader(place, name, write, { sku: 'text', price: 'numeric(10,2)', exported_at: 'text' })
    expect(brief(await load('mon.csv'))).toBe('3/0/0')
    expect(brief(await load('tue.csv'))).toBe('1/1/2')
    const wanted = (await caseText(name, 'expected.csv'))
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(','))
    expect(await table(place, 't', ['sku', 'price', 'exported_at'])).toEqual(wanted)
  })

  test('039: which texts are one key is decided by the pipeline, not by a collation', async () => {
    const name = '039-accents-and-case-in-keys'
    await using place = await create()
    const load = loader(place, name, { strategy: 'upsert', key: ['name'] })
    expect(brief(await load('names.csv'))).toBe('6/0/0')
    expect(brief(await load('names.csv'))).toBe('0/0/6')
    const write: WriteStrategy = { strategy: 'upsert', key: ['name'], newest: 'v', normalizeKey: 'nfc' }
    const normalized = loader(place, name, write, undefined, 'normalized')
    expect(brief(await normalized('names.csv'))).toBe('5/0/0')
    expect(brief(await normalized('names.csv'))).toBe('0/0/5')
    expect(await table(place, 'normalized', ['name', 'v'])).toContainEqual(['Cão', '5'])
  })

  if (target === 'PostgreSQL') {
    test('005: an unchanged rerun fires no trigger and moves no row (G2)', async () => {
      const name = '005-unchanged-rerun-leaves-no-trace'
      await using place = await create()
      await place.execute(await caseText(name, 'schema.sql'))
      const load = loader(place, name, { strategy: 'upsert', key: ['member_no'] }, undefined, 'member')
      expect(brief(await load('run1.csv'))).toBe('4/0/0')
      const versions = await place.versions('member')
      expect(await place.count('member_audit')).toBe(4)
      expect(brief(await load('run1.csv'))).toBe('0/0/4')
      expect(await place.count('member_audit')).toBe(4)
      expect(await place.versions('member')).toEqual(versions)
      expect(brief(await load('run2.csv'))).toBe('0/1/3')
      expect(await place.count('member_audit')).toBe(5)
      const after = await place.versions('member')
      expect((versions ?? []).filter((version) => after?.includes(version))).toHaveLength(3)
    })

    test('012: a row whose date moves it to another partition is still one row', async () => {
      const name = '012-corrected-date-moves-the-row-to-another-partition'
      await using place = await create()
      await place.execute(await caseText(name, 'schema.sql'))
      const load = loader(place, name, { strategy: 'upsert', key: ['voucher_no'] }, undefined, 'booking')
      const first = await load('jan.csv').catch((error: unknown) => error)
      if (first instanceof StetError) {
        expect(first).toMatchObject({ code: 'STET_KEY_CONSTRAINT', exitStatus: 3 })
        expect(first.message).toContain('voucher_no')
        expect(await place.count('booking')).toBe(0)
        return
      }
      expect(brief(first as never)).toBe('3/0/0')
      expect(brief(await load('fix.csv'))).toBe('0/1/0')
      expect(brief(await load('fix.csv'))).toBe('0/0/1')
      expect(await place.count('booking')).toBe(3)
      expect(await place.count('booking_2025_02')).toBe(1)
    })
  }

  test('010: a second unique column that collides refuses the load whole (G9)', async () => {
    const name = '010-second-unique-column-collides'
    await using place = await create()
    await place.execute(await readFile(`${caseFolder(name)}/setup.sql`, 'utf8'))
    const load = loader(place, name, { strategy: 'upsert', key: ['sku'] }, undefined, 'item')
    const error = await load('bad.csv').catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'STET_CONSTRAINT' })
    expect(String(error)).toContain('barcode')
    expect(String(error)).toContain('111')
    const before = [
      ['A1', '111', 'apple'],
      ['B2', '222', 'beer'],
    ]
    expect(await table(place, 'item', ['sku', 'barcode', 'name'])).toEqual(before)
    const swapped = await load('swap.csv').then(
      () => true,
      () => false,
    )
    const after = [
      ['A1', '222', 'apple'],
      ['B2', '111', 'beer'],
    ]
    expect(await table(place, 'item', ['sku', 'barcode', 'name'])).toEqual(swapped ? after : before)
  })

  test('075: an empty, missing or wrong file never empties the table by itself (G10)', async () => {
    const name = '075-no-rows-today-and-then-an-empty-table'
    await using place = await create()
    const load = loader(place, name, { strategy: 'replace-table', key: ['id'] })
    expect((await load('full.csv')).counts).toMatchObject({ read: 4, inserted: 4 })
    expect(await load('full.csv')).toMatchObject({ verdict: 'unchanged', counts: { read: 4, unchanged: 4 } })
    for (const [file, code, words] of [
      ['empty.csv', 'STET_DELETE_GUARD', ['empty', '4 rows']],
      ['missing.csv', 'STET_SOURCE', ['missing.csv']],
      ['html.csv', 'STET_COLUMNS', ['html.csv', '"id"']],
    ] as const) {
      const error = await load(file).catch((failure: unknown) => failure)
      expect(error).toMatchObject({ code })
      for (const word of words) expect(String(error)).toContain(word)
      expect(await place.count('t')).toBe(4)
    }
    const upsert = loader(place, name, { strategy: 'upsert', key: ['id'] })
    expect(await upsert('empty.csv')).toMatchObject({ verdict: 'nothing read', counts: { read: 0 } })
  })

  test('a first load without rows says that it cannot tell types, and makes no table (G9)', async () => {
    await using place = await create()
    await withFile('id,amount\n', async (folder) => {
      const load = {
        place,
        folder,
        file: 'in.csv',
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
      } as const
      await expect(loadCase(load)).rejects.toMatchObject({
        code: 'STET_SOURCE',
        hint: expect.stringContaining('--columns'),
      })
      expect(await place.count('t')).toBe(0)
      const declared = await loadCase({ ...load, columns: { id: 'text', amount: 'numeric(12,2)' } })
      expect(declared.verdict).toBe('nothing read')
    })
  })

  test('a NULL that the table does not take is a reject with its line (G9)', async () => {
    await using place = await create()
    await place.execute('create table t (id varchar primary key, v varchar not null)')
    await withFile('id,v\na,x\nb,\n', async (folder) => {
      const load = {
        place,
        folder,
        file: 'in.csv',
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
      } as const
      const error = await loadCase(load).catch((failure: unknown) => failure)
      expect(error).toMatchObject({ code: 'STET_REJECTED' })
      expect(String(error)).toContain('in.csv:3 v is NULL')
    })
  })

  test('replace-table without a key can be looked at before it is run', async () => {
    await using place = await create()
    const load = { place, file: 'in.csv', table: 't', write: { strategy: 'replace-table' } } as const
    await withFile('id,v\na,1\nb,2\n', (folder) => loadCase({ ...load, folder }))
    await withFile('id,v\na,1\nc,3\n', async (folder) => {
      const planned = await plan(casePipeline(load), { cwd: folder })
      expect(planned.counts).toMatchObject({ inserted: 1, deleted: 1, unchanged: 1 })
      expect(planned.samples.map(({ op }) => op).sort()).toEqual(['delete', 'insert'])
    })
  })
})
