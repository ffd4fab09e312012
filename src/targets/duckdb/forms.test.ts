import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  byHand,
  contractOf,
  openTestSession,
  startOf,
  temporaryFolder,
  writeByHand,
} from '../../../test/support/duckdb-session.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { duckdb } from './index.ts'

const UPSERT: WriteStrategy = { strategy: 'upsert', key: ['id'] }

/** What one text becomes when it is stored in a column of this type: `[canonical, reason]`. */
async function canonical(type: string, text: string, ddl: string = type): Promise<(string | null)[]> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ id: 'text', v: type }, ['id'], { asText: ['v'] })
  await byHand(file, `create type mood as enum ('a', 'b')`, `create table t(id varchar, v ${ddl})`)
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT, { mode: 'plan' })
  const { local, session } = opened
  await session.describe()
  await session.prepare(contract)
  await local.run(`create table texts as select '${text.replaceAll("'", "''")}' as text`)
  const column = contract.columns[1]
  if (column === undefined) throw new Error('no column')
  const forms = await session.canonical(column, 'texts')
  const [row] = await local.rows(`from ${forms}`)
  return [row?.canonical, row?.reason].map((value) =>
    value === null || value === undefined ? null : String(value),
  )
}

test.each([
  ['hugeint', '170141183460469231731687303715884105727', '170141183460469231731687303715884105727'],
  ['tinyint', '007', '7'],
  ['integer[]', '[1,2]', '[1, 2]'],
  ['interval', '1 mon', '1 month'],
  ['mood', 'a', 'a'],
  ['timestamp_ns', '2024-02-29 10:00:00.123456789', '2024-02-29 10:00:00.123456789'],
  ['time_ns', '10:00:00.123456789', '10:00:00.123456789'],
  ['interval', '1.5 ms', '00:00:00.0015'],
  ['interval', '-1 mons +3 days -04:05:06.7', '-1 month 3 days -04:05:06.7'],
  ['varchar[]', "['a b', 'c']", '[a b, c]'],
  // As JSON, which is how Parquet and JSON files hold lists, structs and maps.
  ['integer[]', '[1,null,3]', '[1, NULL, 3]'],
  ['integer[2]', '[1,2]', '[1, 2]'],
  ['varchar[]', `["it's","a,b","NULL",null,""]`, String.raw`['it\'s', 'a,b', 'NULL', NULL, '']`],
  [
    'decimal(38,10)[]',
    '[1234567890123456789012345678.0123456789]',
    '[1234567890123456789012345678.0123456789]',
  ],
  ['float[]', '[0.10000000149011612]', '[0.1]'],
  ['struct(a integer, b varchar)', '{"b":"x","a":null}', "{'a': NULL, 'b': x}"],
  ['map(varchar, integer)', '{"k":1,"k":2}', '{k=2}'],
  ['map(varchar, integer)', '{"k":1,"a=b":2}', "{k=1, 'a=b'=2}"],
])('a text of DuckDB’s own type %s is brought into DuckDB’s form: %s', async (type, text, wanted) => {
  expect(await canonical(type, text)).toEqual([wanted, null])
})

test.each([
  ['hugeint', '1.5'],
  ['tinyint', '300'],
  ['integer[]', '[1.5]'],
  ['mood', 'c'],
  ['timestamp_s', '2024-02-29 10:00:00.5'],
  ['timestamp_ms', '2024-02-29 10:00:00.0005'],
  ['time_ns', '10:00:00.1234567891'],
  ['time_ns', '10:00:00+02'],
  ['interval', '00:00:00.1234567'],
  ['interval', '0.0001 milliseconds'],
  ['interval', '0.5 microseconds'],
  ['varchar[]', "['it''s']"],
  ['varchar[]', "['''a']"],
  ['decimal(10,2)[]', '[1.005]'],
  ['struct(a integer, b varchar)', '{"a":1}'],
  ['struct(a integer, b varchar)', '{"a":1.5,"b":"x"}'],
  ['map(varchar, integer)', '{k=1,k=2}'],
])(
  'a text that DuckDB’s own type %s would round, cut or not hold is refused: %s (G9)',
  async (type, text) => {
    const [form, reason] = await canonical(type, text)
    expect(form).toBeNull()
    expect(reason).toMatch(/is not a value of|would be changed by/)
  },
)

test.each([
  ['date', '0044-03-15 BC', '0044-03-15 (BC)'],
  ['timestamp', '0044-03-15 10:00:00 BC', '0044-03-15 (BC) 10:00:00'],
  ['timestamptz', '0044-03-15 10:00:00.5+00 BC', '0044-03-15 (BC) 10:00:00.5+00'],
  ['timestamptz', 'infinity', 'infinity'],
  ['date', '12000-01-01', '12000-01-01'],
])('a %s of %s is stored as that, and comes back in PostgreSQL’s words', async (type, text, stored) => {
  expect(await canonical(type, text)).toEqual([text, null])
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf({ id: 'text', v: type }, ['id'], { asText: ['v'] })
  await writeByHand(duckdb({ file }), 't', UPSERT, contract, [`('insert', 'a', '${text}', null, null)`])
  expect(await byHand(file, 'select v::varchar from t')).toEqual([[stored]])
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT)
  await opened.session.acquire(startOf())
  await opened.session.describe()
  await opened.session.prepare(contract)
  await opened.session.begin()
  const scope = await opened.session.rowsInScope(contract, { kind: 'table' })
  expect(await opened.local.rows(`select c1 from ${scope.table}`)).toEqual([{ c1: text }])
})

test('values of every other type come back as they are compared, and can be written again', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'x.duckdb')
  const contract = contractOf(
    {
      id: 'text',
      bytes: 'bytea',
      doc: 'jsonb',
      list: 'integer[]',
      exact: 'numeric(2,2)',
      n: 'bigint',
      u: 'uuid',
      f: 'real',
    },
    ['id'],
    { asText: ['list', 'exact'] },
  )
  const values = `'\\x00ff41', '{"a": 1.10}', '[1, 2]', '0.50', 9223372036854775807, '6f1b0a4e-2d1c-4f7e-9f54-0c1d2e3f4a5b'::uuid, 1.5::float`
  await writeByHand(duckdb({ file }), 't', UPSERT, contract, [`('insert', 'a', ${values}, null, null)`])
  expect(await byHand(file, 'select hex(bytes), doc::varchar, list::varchar, exact::varchar from t')).toEqual(
    [['00FF41', '{"a": 1.10}', '[1, 2]', '.50']],
  )
  await using opened = await openTestSession(duckdb({ file }), 't', UPSERT)
  const { local, session } = opened
  await session.acquire(startOf())
  await session.describe()
  await session.prepare(contract)
  await session.begin()
  const scope = await session.rowsInScope(contract, { kind: 'table' })
  const [same] = await local.rows(`
    select count(*)::integer as n
      from ${scope.table}
     where (c1, c2, c3, c4, c5, c6, c7) is not distinct from (${values})`)
  expect(same?.n).toBe(1)
})
