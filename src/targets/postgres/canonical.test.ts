import { expect, test } from 'vitest'
import { connect, freshDatabase, postgresServers } from '../../../test/support/databases.ts'
import { contractFor, type Load } from '../../../test/support/postgres-target.ts'
import { openLocalEngine } from '../../local/engine.ts'
import { quoteLiteral } from '../../local/quote.ts'
import { postgres } from './index.ts'

interface Example {
  readonly type: string
  /** Text and the server's form of it. */
  readonly forms: Readonly<Record<string, string>>
  readonly refused: readonly string[]
}

const EXAMPLES: readonly Example[] = [
  { type: 'interval', forms: { P1D: '1 day', '24:00': '24:00:00', '1 mon': '1 mon' }, refused: ['soon', ''] },
  { type: 'interval(0)', forms: { '1 second': '00:00:01' }, refused: ['1.6 seconds'] },
  { type: 'int4[]', forms: { '{1, 2}': '{1,2}', '{}': '{}' }, refused: ['{a}', '{1', '{9999999999}'] },
  { type: 'inet', forms: { '10.0.0.1': '10.0.0.1/32' }, refused: ['10.0.0'] },
  { type: 'char(5)', forms: { 'ab   ': 'ab', ab: 'ab', abcde: 'abcde' }, refused: ['abcdef'] },
  { type: 'bit(3)', forms: { '101': '101' }, refused: ['1', '1010', '2'] },
  { type: 'mood', forms: { happy: 'happy' }, refused: ['grim', "it's", '\\', '"'] },
  { type: 'even', forms: { '2': '2' }, refused: ['3', 'x'] },
  // Without an offset the session's zone would be taken, with one too many it would be dropped, and 01/02/03 is any day.
  { type: 'timetz', forms: { '10:00Z': '10:00:00+00' }, refused: ['10:00', '10:00 EST'] },
  {
    type: 'timestamptz[]',
    forms: {
      '{"2024-01-01 10:00:00.5+02",NULL,infinity}': '{"2024-01-01 08:00:00.5+00",NULL,infinity}',
      '[0:0]={0044-03-15 10:00+00 BC}': '[0:0]={"0044-03-15 10:00:00+00 BC"}',
    },
    refused: ['{2024-01-01 10:00}', '{2024-01-01}', '{2024-01-01 10:00Z,2024-01-01 10:00}'],
  },
  {
    type: 'tstzrange',
    forms: { '[2024-01-01 10:00+02,)': '["2024-01-01 08:00:00+00",)' },
    refused: ['[2024-01-01 10:00,)', '[now,)'],
  },
  {
    type: 'timestamp[]',
    forms: { '{2024-01-01}': '{"2024-01-01 00:00:00"}' },
    refused: ['{2024-01-01 10:00+02}', '{2024-01-01 10:00:00.1234567}', '{today}'],
  },
  {
    type: 'date[]',
    forms: { '{2024-01-01,0044-03-15 BC}': '{2024-01-01,"0044-03-15 BC"}' },
    refused: ['{01/02/03}', '{2024-01-01 10:00}', '{Jan 1 2024}'],
  },
  {
    type: 'daterange',
    forms: { '[2024-01-01,2024-01-02]': '[2024-01-01,2024-01-03)' },
    refused: ['[01/02/03,)'],
  },
  { type: 'time[]', forms: { '{10:00}': '{10:00:00}' }, refused: ['{10:00+02}'] },
  {
    type: 'interval',
    forms: { '1.5 ms': '00:00:00.0015', '1.2345 mins': '00:01:14.07' },
    refused: ['0.0001 milliseconds', '0.5 us', '00:00:00.0000001'],
  },
  { type: 'date_kind', forms: { '2 days': '2 days' }, refused: ['3 days'] },
  { type: 'tsvector', forms: { 'b a': "'a' 'b'" }, refused: [] },
]

for (const { name, url } of postgresServers()) {
  for (const { type, forms, refused } of EXAMPLES) {
    for (const when of ['before the transaction', 'in the transaction'] as const) {
      test(`${type}: the server gives its own form of a text, and refuses what would be lost, ${when} (${name})`, async () => {
        const database = await freshDatabase(url)
        await using db = await connect(database)
        await db.client.query(`
          create type mood as enum ('sad', 'happy');
          create type date_kind as enum ('1 day', '2 days');
          create domain even as smallint check (value % 2 = 0);
          create table t (k text primary key, v ${type})`)
        await using local = await openLocalEngine()
        const write = { strategy: 'upsert', key: ['k'] } as const
        await using session = await postgres({ url: database }).open({
          table: 't',
          write,
          local,
          mode: 'plan',
          lockTimeoutMs: 1_000,
          leaseTimeoutMs: 15_000,
          signal: new AbortController().signal,
          notice: () => undefined,
        })
        const request: Load = { table: 't', write, columns: { k: 'text', v: type }, rows: [], asText: ['c1'] }
        const contract = contractFor(request, await session.describe())
        await session.prepare(contract)
        if (when === 'in the transaction') await session.begin()
        const texts = [...Object.keys(forms), ...refused]
        await local.run(
          `create table texts as select unnest([${texts.map(quoteLiteral).join(', ')}]) as text`,
        )
        const column = contract.columns[1]
        if (column === undefined) throw new Error('no column')
        const answers = await local.rows(
          `select text, canonical, reason from ${await session.canonical(column, 'texts')}`,
        )
        const found = Object.fromEntries(answers.map((row) => [row.text, row.canonical]))
        expect(found).toEqual({ ...forms, ...Object.fromEntries(refused.map((text) => [text, null])) })
        for (const { canonical, reason } of answers) expect(reason === null).toBe(canonical !== null)
        if (when === 'before the transaction') await session.begin()
        expect((await session.rowsInScope(contract, { kind: 'table' })).rows).toBe(0)
      })
    }
  }
}
