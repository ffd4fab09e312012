import { expect, test } from 'vitest'
import { exitStatusOf } from '../../src/check/command.ts'
import type { Rule } from '../../src/check/rule.ts'
import { RULES } from '../../src/check/rules/index.ts'
import { checkFiles } from './support.ts'

test.each([
  [
    'a parameter that is a pattern with a comment',
    'src/mean.js',
    'export function f({ /** The current page */ page }) { const a = g(page); db.insert(a) }\n',
  ],
  [
    'a parameter that is a pattern with a default',
    'src/mean.js',
    "export function f({ state = '(' }) { const a = g(state); db.insert(a) }\n",
  ],
  [
    'a member by a name that is no word',
    'jobs/apply.py',
    'import psycopg2\ndef apply(cur, no, amount):\n    cur.execute("SELECT balance FROM account WHERE no = %s", (no,))\n    row = cur.fetchone()\n    res["total-(amount"] = table.put_item(row[0] + amount)\n    cur.execute("UPDATE account SET open = true")\n',
  ],
])('source text is no pattern: %s', async (_, path, code) => {
  const { notRead } = await checkFiles({ [path]: code }, RULES)
  expect(notRead).toEqual([])
})

test('a rule that fails on one file is named there, and all else is found', async () => {
  const failing: Rule = {
    ...(RULES[0] as Rule),
    id: 'failing',
    // biome-ignore lint/correctness/useYield: it fails before it has anything to say
    *check(file) {
      if (file.path === 'etl/b.sql') throw new Error('no such luck')
    },
  }
  const insert = 'insert into t select * from s;\n'
  const { findings, notRead, failures } = await checkFiles({ 'etl/a.sql': insert, 'etl/b.sql': insert }, [
    failing,
    ...RULES.filter((rule) => rule.id === 'insert-no-key'),
  ])
  expect(findings.map((one) => one.path)).toEqual(['etl/a.sql', 'etl/b.sql'])
  expect(notRead).toEqual([
    { path: 'etl/b.sql', reason: 'by the rule failing, which failed on it: no such luck' },
  ])
  // Neither green nor a verdict on the code.
  expect(failures).toBe(1)
  expect([exitStatusOf({ failures }, 0), exitStatusOf({ failures }, 3)]).toEqual([2, 2])
  expect([exitStatusOf({ failures: 0 }, 0), exitStatusOf({ failures: 0 }, 3)]).toEqual([0, 1])
})
