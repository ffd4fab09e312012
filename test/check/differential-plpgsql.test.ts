/** Statements in the bodies of functions, against the PL/pgSQL parser of PostgreSQL. */
import { parsePlPgSQL } from 'libpg-query'
import { expect, test } from 'vitest'
import { plainMapping } from '../../src/check/languages/mapped-text.ts'
import { lexSql } from '../../src/check/sql/lexer.ts'
import { splitStatements } from '../../src/check/sql/split.ts'
import { usesOf } from '../../src/check/sql-uses.ts'

const BODIES = [
  'begin insert into t values (1); delete from s where a = 1; end',
  'declare n int; begin if n > 1 then insert into t select 1; else update t set a = 2; end if; end',
  'declare r record; begin for r in select * from s loop insert into t values (r.a); update s set b = 1 where a = r.a; end loop; end',
  "begin insert into t values ('; delete from z'); exception when others then delete from t; raise; end",
  'declare x int := 1; begin while x < 3 loop x := x + 1; insert into t values (x) on conflict do nothing; end loop; return; end',
]

/** The first words of all queries in the tree that change rows. */
function queriesOf(node: unknown, into: string[] = []): string[] {
  if (Array.isArray(node)) for (const one of node) queriesOf(one, into)
  else if (typeof node === 'object' && node !== null)
    for (const [key, value] of Object.entries(node)) {
      if (key === 'query' && typeof value === 'string') {
        const change = /^\s*(insert into|update|delete from)\s+(\w+)/i.exec(value)
        if (change !== null) into.push(`${change[1]?.split(' ')[0]} ${change[2]}`)
      } else queriesOf(value, into)
    }
  return into
}

test.each(BODIES)('%s', async (body) => {
  const sql = `create function f() returns void language plpgsql as $body$ ${body} $body$;`
  const expected = queriesOf(await parsePlPgSQL(sql))
  const uses = usesOf(splitStatements(lexSql(sql)), plainMapping(sql), { origin: 'file', context: 'script' })
  const found = uses
    .filter((use) => use.origin === 'routine' && ['insert', 'update', 'delete'].includes(use.statement.kind))
    .map((use) => `${use.statement.kind} ${use.statement.target?.text}`)
  expect(expected.length).toBeGreaterThan(0)
  expect(found.sort()).toEqual(expected.sort())
})
