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
