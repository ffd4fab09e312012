import { isRerun } from '../context.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf, sourceTables } from '../sequence.ts'
import { findWords, hasWords, insideBracket, isSymbol, isWord, type Tokens, tokenAt } from '../sql/tokens.ts'

/** Whether the query is shown to have one row a key: distinct, group by, a chosen row number, or one row at all. */
function isShownUnique(query: Tokens): boolean {
  if (
    hasWords(query, 'distinct') ||
    hasWords(query, 'group', 'by') ||
    hasWords(query, 'qualify') ||
    hasWords(query, 'values')
  )
    return true
  if (
    hasWords(query, 'row_number') ||
    hasWords(query, 'rank') ||
    hasWords(query, 'dense_rank') ||
    hasWords(query, 'limit', 'any')
  )
    return true
  if (
    hasWords(query, 'array_agg') ||
    hasWords(query, 'any_value') ||
    hasWords(query, 'max_by') ||
    hasWords(query, 'dedup') ||
    hasWords(query, 'unnest')
  )
    return true
  // `select 1 as id, 'x' as name` without a table is one row.
  if (findWords(query, ['from']) < 0) return true
  const limit = findWords(query, ['limit'])
  return limit >= 0 && tokenAt(query, limit + 1).value === '1'
}

export const mergeSourceNotUnique: Rule = {
  id: 'merge-source-not-unique',
  title: 'Merge from a source with one row a key',
  anomaly: 'different',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Where the source holds a key twice, some engines fail, some insert both rows, and some keep either: two runs over the same rows can end differently.',
  advice:
    'Choose one row a key in the source: row_number() over (partition by key order by ..., tie-break) = 1, distinct, or group by.',
  safeForms: [
    {
      for: 'any',
      code: 'merge into orders as t\nusing (\n  select * from stage_orders\n  qualify row_number() over (partition by order_no order by seq desc, content_hash) = 1\n) as s on t.order_no = s.order_no\n when matched then update set amount = s.amount\n when not matched then insert (order_no, amount) values (s.order_no, s.amount);',
    },
  ],
  prove: '`stet prove` runs the merge twice from a source with a doubled key (NONDETERMINISTIC or DOUBLED).',
  limits:
    'A named source table may be unique by a key that is not in the repository; it is then only a hint.',
  bad: [
    {
      why: 'a join may multiply the rows of a key',
      path: 'etl/merge.sql',
      lines: [2],
      code: 'merge into t\nusing (select s.id, x.v from s join x on x.s_id = s.id) q on t.id = q.id\nwhen matched then update set v = q.v\nwhen not matched then insert (id, v) values (q.id, q.v);\n',
    },
    {
      why: 'two sources are put together',
      path: 'etl/merge.sql',
      lines: [2],
      code: 'merge into t\nusing (select id, v from a union all select id, v from b) q on t.id = q.id\nwhen not matched then insert (id, v) values (q.id, q.v);\n',
    },
  ],
  fine: [
    {
      why: 'one row a key is chosen',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using (select * from (select s.*, row_number() over (partition by id order by seq desc, h) rn from s join x on x.id = s.id) where rn = 1) q on t.id = q.id when matched then update set v = q.v;\n',
    },
    {
      why: 'distinct',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using (select distinct s.id, s.v from s join x on x.id = s.id) q on t.id = q.id when not matched then insert (id, v) values (q.id, q.v);\n',
    },
    {
      why: 'group by',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using (select s.id, sum(v) v from s join x on x.id = s.id group by 1) q on t.id = q.id when matched then update set v = q.v;\n',
    },
    {
      why: 'qualify',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using (select s.id from s join x on x.id = s.id qualify row_number() over (partition by s.id order by x.n, x.h) = 1) q on t.id = q.id when not matched then insert (id) values (q.id);\n',
    },
    {
      why: 'on false only inserts and deletes',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using (select s.id from s join x on x.id = s.id) q on false when not matched then insert (id) values (q.id) when not matched by source and t.day = 1 then delete;\n',
    },
    {
      why: 'one row',
      path: 'etl/merge.sql',
      lines: [],
      code: "merge into t using (select 1 as id, 'x' as v) q on t.id = q.id when not matched then insert (id, v) values (q.id, q.v);\n",
    },
    {
      why: 'a staging table that is only named',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into t using stage s on t.id = s.id when not matched then insert (id) values (s.id);\n',
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      const { merge } = use.statement
      if (merge === undefined || ['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      if (isWord(merge.on, 0, 'false') || (merge.on.length > 2 && plainFalse(merge.on))) continue
      if (!merge.branches.some((branch) => branch.action === 'insert' || branch.action === 'update')) continue
      if (!isSymbol(merge.source, 0, '(')) continue
      const inside = insideBracket(merge.source, 0)
      if (isShownUnique(inside)) continue
      const multiplies =
        (hasWords(inside, 'join') && !hasWords(inside, 'semi', 'join')) || hasWords(inside, 'union', 'all')
      const first = tokenAt(merge.source, 0)
      const start = use.mapped.at(first.start)
      const loud = multiplies && isRerun(use.context)
      const tables = sourceTables(inside).map((name) => nameOf(name))
      yield {
        start,
        end: use.mapped.at(Math.max(first.start, (merge.source.at(-1)?.end ?? first.end) - 1)) + 1,
        message: multiplies
          ? `Nothing shows that the source has one row a key: ${tables.slice(0, 3).join(', ')} may give several, and which one wins differs from run to run`
          : `The source ${tables[0] ?? ''} is not shown to have one row a key`,
        class: loud ? 'unsafe' : 'info',
        severity: loud ? 'warning' : 'info',
        confidence: loud ? 'low' : 'low',
      }
    }
  },
}

function plainFalse(on: Tokens): boolean {
  return (
    on.length === 3 && tokenAt(on, 0).value === '1' && isSymbol(on, 1, '=') && tokenAt(on, 2).value === '0'
  )
}
