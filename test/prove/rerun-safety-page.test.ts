import { readFileSync } from 'node:fs'
import { expect, inject, test } from 'vitest'
import { connect, freshDatabase } from '../support/databases.ts'

const page = readFileSync(new URL('../../docs/rerun-safety.md', import.meta.url), 'utf8')
const seed = readFileSync(new URL('../../examples/doubled-revenue/seed.sql', import.meta.url), 'utf8')

/** The sections that show an unsafe statement, and then what to write instead. */
const pairs = page
  .split(/^### /m)
  .slice(1)
  .map((section) => ({
    title: section.split('\n')[0] ?? '',
    statements: [...section.matchAll(/^```sql\n(.*?)^```/gms)].map((match) => match[1] ?? ''),
  }))
  .filter(({ statements }) => statements.length > 0)

const MORE_TABLES = `
create table totals (amount numeric(12, 2));
insert into totals values (0);
create table payments (id uuid primary key, order_id text);`

/** What all tables hold, made-up keys left out: before, after the first run, and after the second. */
async function states(sql: string): Promise<readonly string[]> {
  await using db = await connect(await freshDatabase(inject('postgresUrl')))
  await db.client.query(seed + MORE_TABLES)
  const seen: string[] = []
  for (let run = 0; run <= 2; run++) {
    if (run > 0) await db.client.query(sql).catch((error: Error) => seen.push(error.message))
    const tables = await db.client.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public' order by 1",
    )
    const contents: string[] = []
    for (const { name } of tables.rows) {
      const rows = await db.client.query(`select to_jsonb(t) - 'id' as row from "${name}" as t order by 1`)
      contents.push(`${name} ${JSON.stringify(rows.rows)}`)
    }
    seen.push(contents.join('\n'))
  }
  return seen
}

test('the page has its five pairs', () => {
  expect(pairs.map(({ statements }) => statements.length)).toEqual([2, 2, 2, 2, 2])
})

test.for(pairs)('$title: the first is unsafe, the second is not', async ({ statements }) => {
  const [unsafe = '', safe = ''] = statements
  const [, once, again, ...others] = await states(unsafe)
  expect([again, ...others]).not.toEqual([once])
  const [before, ...after] = await states(safe)
  expect(after).toEqual([after[0], after[0]])
  // It is not safe because it does nothing.
  expect(after[0]).not.toBe(before)
})
