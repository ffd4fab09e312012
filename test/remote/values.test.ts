import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contentHash } from '../../src/local/content-hash.ts'
import { readText } from '../../src/local/typing/reading.ts'
import { formatColumnType, parseColumnType } from '../../src/model/column-type.ts'
import { definePipeline } from '../../src/pipeline/define.ts'
import { run } from '../../src/pipeline/run.ts'
import { postgres } from '../../src/targets/postgres/index.ts'
import { contentHashSql } from '../../src/targets/postgres/remote/content-hash-sql.ts'
import { connect, freshDatabase, postgresServers } from '../support/databases.ts'
import { anyText, typedTexts } from '../support/typed-texts.ts'

const DOUBLES = 3_000
const TEXTS_OF_A_TYPE = 400

describe.each(postgresServers())('values of a query in $name', ({ url: server }) => {
  test.each(typedTexts.map(({ type }) => ({ name: formatColumnType(type), type })))(
    'texts become $name exactly where those of a file do, and hash alike (G9)',
    async ({ name, type }) => {
      const url = await freshDatabase(server)
      await using place = await connect(url)
      if (type.kind === 'other') await place.client.query('create extension citext')
      const texts = fc
        .sample(
          anyText(type).filter((text) => !text.includes('\0')),
          TEXTS_OF_A_TYPE,
        )
        .map((text, n) => [n + 1, text] as const)
      await place.client.query('create table raw (id bigint, v text)')
      await place.client.query(
        `insert into raw select (r ->> 0)::bigint, r ->> 1 from json_array_elements($1::json) as r`,
        [JSON.stringify(texts)],
      )
      const db = postgres({ url })
      const result = await run(
        definePipeline({
          name: 'values',
          source: db.query('select id, v from raw', { columns: { id: 'bigint', v: name } }),
          target: db,
          table: 't',
          write: { strategy: 'upsert', key: ['id'] },
          maxRejects: TEXTS_OF_A_TYPE,
        }),
      )
      const { rows } = await place.client.query<{ id: string; content_hash: string }>(
        'select id, content_hash from t',
      )
      const hashes = new Map(rows.map((row) => [Number(row.id), row.content_hash]))
      expect(result.counts.read).toBe(texts.length)
      for (const [id, text] of texts) {
        const reading = readText(type, text)
        const hash =
          'reason' in reading
            ? 'rejected'
            : contentHash([
                { name: 'id', type: { kind: 'bigint' }, value: String(id) },
                { name: 'v', type, value: text },
              ])
        expect({ text, hash: hashes.get(id) ?? 'rejected' }).toEqual({ text, hash })
      }
    },
  )

  test('moments without their offset, alone and in an array, are rejects as those of a file are (G9)', async () => {
    const url = await freshDatabase(server)
    await using place = await connect(url)
    await place.client.query(`
      create table t (id bigint primary key, z timetz, a timestamptz[]);
      create table raw as
      select * from (values (1, '10:00+02', '{2024-01-01 10:00+02}'), (2, '10:00', null), (3, null, '{2024-01-01 10:00}')) as v (id, z, a)`)
    const db = postgres({ url })
    const { counts } = await run(
      definePipeline({
        name: 'moments',
        source: db.query('select id, z, a from raw'),
        target: db,
        table: 't',
        write: { strategy: 'upsert', key: ['id'] },
        maxRejects: 2,
      }),
    )
    expect(counts).toMatchObject({ read: 3, rejected: 2, inserted: 1 })
  })

  test('doubles hash as everywhere else, also those whose shortest decimal is half-way to the next', async () => {
    await using place = await connect(await freshDatabase(server))
    const halfWay = fc
      .tuple(
        fc.integer({ min: 0, max: 22 }),
        fc.bigInt({ min: 1n, max: 2n ** 54n }),
        fc.integer({ min: 1, max: 90 }),
      )
      .map(([j, odd, e]) => Number(((odd / 5n ** BigInt(j)) | 1n) * 5n ** BigInt(j) * 2n ** BigInt(e)))
    const doubles = fc.sample(
      fc.oneof(
        halfWay,
        halfWay.map((value) => -value),
        fc.double({ noNaN: true }),
        fc.integer({ min: -1074, max: 1023 }).map((power) => 2 ** power),
      ),
      DOUBLES,
    )
    const type = { kind: 'double' } as const
    const hash = contentHashSql([{ column: { name: 'v', type }, expr: 'v' }])
    const { rows } = await place.client.query<{ hash: string }>(
      `select ${hash} as hash from unnest($1::double precision[]) with ordinality as t (v, n) order by n`,
      [doubles.map(String)],
    )
    for (const [n, value] of doubles.entries()) {
      expect({ value, hash: rows[n]?.hash }).toEqual({
        value,
        hash: contentHash([{ name: 'v', type, value: String(value) }]),
      })
    }
  })

  test('the published vectors of the content hash', async () => {
    const { vectors } = JSON.parse(
      readFileSync(new URL('../../docs/content-hash.vectors.json', import.meta.url), 'utf8'),
    ) as {
      readonly vectors: readonly {
        readonly title: string
        readonly columns: readonly {
          readonly name: string
          readonly type: string
          readonly value: string | null
        }[]
        readonly sha256: string
      }[]
    }
    await using place = await connect(await freshDatabase(server))
    await place.client.query(`create extension citext; set timezone = 'Asia/Tokyo'`)
    for (const { title, columns, sha256 } of vectors) {
      const typed = columns.map(({ name, type, value }) => ({ name, type: parseColumnType(type), value }))
      const hash = contentHashSql(typed.map((column, n) => ({ column, expr: `c${n}` })))
      // Values as the landing has them: in the table's own types.
      const values = typed.map(({ type, value }, n) => {
        const reading = value === null ? null : readText(type, value)
        const text = reading === null ? 'null' : `$${n + 1}::text`
        if (reading !== null && 'reason' in reading) throw new Error(title)
        return `(${text})::${formatColumnType(type)} as c${n}`
      })
      const parameters = typed.map(({ type, value }) => {
        const reading = value === null ? null : readText(type, value)
        return reading === null || 'reason' in reading ? null : reading.text
      })
      const from = values.length === 0 ? '' : ` from (select ${values.join(', ')}) as v`
      const used = parameters.map((_, n) => `$${n + 1}::text is null`).join(' and ')
      const { rows } = await place.client.query<{ hash: string }>(
        `select ${hash} as hash${from}${used === '' ? '' : ` where true or ${used}`}`,
        parameters,
      )
      expect({ title, hash: rows[0]?.hash }).toEqual({ title, hash: sha256 })
    }
  })
})
