import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Source } from '../src/index.ts'
import { definePipeline, run } from '../src/index.ts'
import { openLocalEngine } from '../src/local/engine.ts'
import { quoteLiteral } from '../src/local/quote.ts'
import { parquet } from '../src/sources/parquet/index.ts'
import { postgres as postgresQuery } from '../src/sources/postgres/index.ts'
import { postgres } from '../src/targets/postgres/index.ts'
import { brief, type CasePlace, eachTarget } from './cases/harness.ts'
import { connect, freshDatabase, postgresServers } from './support/databases.ts'

// Values at the edges of their types, from a source that has types into a target that has its own: each arrives as it is, and a
// second load finds it equal to what was stored.

/** In DuckDB's SQL; all of them are in Parquet. */
const IN_PARQUET = [
  `9007199254740993::bigint`,
  `18446744073709551615::ubigint`,
  `'99999999999999999999999999999999999999'::decimal(38,0)`,
  `'-0.12345678901234567890123456789012345678'::decimal(38,38)`,
  `'nan'::float`,
  `'-0'::float`,
  `1e-45::float`,
  `0.1::float`,
  `'nan'::double`,
  `'-inf'::double`,
  `'-0'::double`,
  `5e-324::double`,
  `true`,
  `''`,
  `'007'`,
  `'a"b' || chr(10) || chr(13) || chr(9) || '\\N'`,
  `chr(65279) || 'x'`,
  `'\\x00\\xFFab'::blob`,
  `''::blob`,
  `'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid`,
  `'0044-03-15 (BC)'::date`,
  `'12000-01-01'::date`,
  `'-infinity'::date`,
  `'24:00:00'::time`,
  `'10:00:00.123456-15:59'::timetz`,
  `'2024-01-01 10:00:00.000001'::timestamp`,
  `'0044-03-15 (BC) 10:00:00.5'::timestamp`,
  `'infinity'::timestamp`,
  `'2024-01-01 10:00:00.000001+02'::timestamptz`,
  `'0044-03-15 (BC) 10:00:00+00'::timestamptz`,
  `interval '1 year 2 months 3 days 04:05:06.7'`,
  `'{"b":1, "a":12345678901234567890.123456789}'::json`,
  `[1, null]`,
  `[]::varchar[]`,
  `{a: 0.1::float, b: 'x"y'}`,
  `map {'k': 9223372036854775807}`,
]

/** In PostgreSQL's SQL, with the types that DuckDB has as well. */
const IN_BOTH = [
  `9007199254740993::bigint`,
  `'99999999999999999999999999999999999999'::numeric(38,0)`,
  `'NaN'::real`,
  `'-0'::real`,
  `1e-45::real`,
  `0.1::real`,
  `'NaN'::float8`,
  `'-Infinity'::float8`,
  `'-0'::float8`,
  `5e-324::float8`,
  `2::float8 ^ 60`,
  `''::text`,
  String.raw`E'a"b\n\r\t\\N'::text`,
  `'ab '::char(5)`,
  String.raw`'\x00ff6162'::bytea`,
  `'0044-03-15 BC'::date`,
  `'12000-01-01'::date`,
  `'infinity'::date`,
  `'24:00'::time`,
  `'10:00:00.5-15:59:59'::timetz`,
  `'0044-03-15 10:00:00.5 BC'::timestamp`,
  `'-infinity'::timestamp`,
  `'2024-01-01 10:00:00.000001+02'::timestamptz`,
  `'0044-03-15 10:00 BC'::timestamptz`,
  `interval '-1 mons 3 days -04:05:06.7'`,
  `'{"b":1.10,"a":1e400}'::jsonb`,
  `'"1"'::jsonb`,
]

/** With types that only PostgreSQL has. */
const IN_POSTGRES = [
  ...IN_BOTH,
  `'1e400'::numeric`,
  `'NaN'::numeric(10,2)`,
  `'Infinity'::numeric`,
  `'294276-12-31 23:59:59.999999'::timestamp`,
  `'4714-11-24 BC'::date`,
  `'[0:1]={1,NULL}'::int[]`,
  `'{}'::text[]`,
  String.raw`array['a"b','c,d',null,'','NULL',' x ','{}','\']`,
  `array['NaN'::float8, '-0']`,
  `array['2024-01-01 10:00+02'::timestamptz, 'infinity']`,
  `'10101'::bit varying`,
  `tstzrange('2024-01-01 00:00+02', 'infinity')`,
  `'{[1,3),[5,8)}'::int4multirange`,
  `inet '10.0.0.1'`,
  `money '12.34'`,
  `'<a>x</a>'::xml`,
]

const select = (values: readonly string[]) =>
  `select 1 as id, ${values.map((value, n) => `${value} as v${n}`).join(', ')}`

async function loadTwice(place: Pick<CasePlace, 'target'>, source: () => Source): Promise<readonly string[]> {
  const load = async () =>
    brief(
      await run(
        definePipeline({
          name: 'values',
          source: source(),
          target: place.target,
          table: 't',
          write: { strategy: 'upsert', key: ['id'] },
        }),
      ),
    )
  return [await load(), await load()]
}

eachTarget((target, create) => {
  test('every value of a Parquet file arrives, and is unchanged in a second load (G2, G9)', async () => {
    await using place = await create()
    const folder = await mkdtemp(join(tmpdir(), 'stet-values-'))
    try {
      const path = join(folder, 'values.parquet')
      await using engine = await openLocalEngine()
      await engine.run(`copy (${select(IN_PARQUET)}) to ${quoteLiteral(path)} (format parquet)`)
      expect(await loadTwice(place, () => parquet({ files: path }))).toEqual(['1/0/0', '0/0/1'])
      if (target === 'DuckDB') {
        // Lists and the like are JSON there, and Parquet itself moves a timetz to UTC.
        const single = [...IN_PARQUET.keys()].filter(
          (n) => !/^(\[|\{|map|'\{)|timetz$/.test(IN_PARQUET[n] ?? ''),
        )
        const differs = single.map((n) => `t.v${n}::varchar is distinct from w.v${n}::varchar`)
        await place.execute(`
          create view wrong as
          select 1 as one
            from t, (${select(IN_PARQUET)}) as w
           where ${differs.join(' or ')}`)
        expect(single.length).toBeGreaterThan(25)
        expect(await place.rows('wrong')).toEqual([])
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('every value of a query arrives, and is unchanged in a second load (G2, G9)', async () => {
    await using place = await create()
    const url = await freshDatabase()
    expect(await loadTwice(place, () => postgresQuery({ url, query: select(IN_BOTH) }))).toEqual([
      '1/0/0',
      '0/0/1',
    ])
  })
})

test.each(postgresServers())(
  'from PostgreSQL to $name every value is the same text there (G9)',
  async ({ url: server }) => {
    const url = await freshDatabase(server)
    await using db = await connect(url)
    const source = () => postgresQuery({ url, query: select(IN_POSTGRES) })
    expect(await loadTwice({ target: postgres({ url }) }, source)).toEqual(['1/0/0', '0/0/1'])
    const texts = IN_POSTGRES.map((_, n) => `v${n}::text`).join(', ')
    const [stored, wanted] = await Promise.all(
      ['t', `(${select(IN_POSTGRES)})`].map(async (from) => {
        const { rows } = await db.client.query({
          text: `select ${texts} from ${from} as t`,
          rowMode: 'array',
        })
        return rows[0]
      }),
    )
    expect(stored).toEqual(wanted)
  },
)
