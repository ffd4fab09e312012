import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'
import type { Merge } from '../sql/statement.ts'
import { conjuncts, isWord, type Tokens, tokenAt } from '../sql/tokens.ts'

export const mergeNarrowedKey: Rule = {
  id: 'merge-narrowed-key',
  title: 'Merge on the key alone',
  anomaly: 'doubled',
  tier: 2,
  fix: 'advice',
  problem:
    'The condition holds a bound on the target besides the key. A row of the target that lies outside of the bound is not met, so the same key is inserted a second time.',
  advice:
    'Match by the key alone, or bound only a column that is part of the key and is compared with the source as well.',
  safeForms: [
    {
      for: 'BigQuery, Snowflake, Spark',
      code: 'merge into orders as t\nusing stage_orders as s\n   on t.order_no = s.order_no\n  and t.day = s.day\n when not matched then insert (order_no, day) values (s.order_no, s.day);',
    },
  ],
  prove: '`stet prove` sends a row of an old day again; it is there twice afterwards (DOUBLED).',
  limits:
    'Whether the bounded column can differ between two deliveries of one key is known to the source only: the finding is a warning.',
  bad: [
    {
      why: 'old rows are not met',
      path: 'etl/merge.sql',
      lines: [2],
      code: "merge into orders t using stage s\n  on t.id = s.id and t.received_at >= '2025-01-01'\nwhen not matched then insert (id) values (s.id);\n",
    },
    {
      why: 'the bound is moved by the clock',
      path: 'etl/merge.sql',
      lines: [2],
      code: 'merge into orders t using stage s\n  on s.id = t.id and t.received_at > dateadd(day, -7, current_date)\nwhen matched then update set v = s.v\nwhen not matched then insert (id, v) values (s.id, s.v);\n',
    },
    {
      why: 'put together by SQLAlchemy',
      path: 'dags/merge.py',
      lines: [3],
      code: 'from snowflake.sqlalchemy import MergeInto\ndef merge(t, s, first):\n    m = MergeInto(target=t, source=s, on=and_(t.c.id == s.c.id, t.c.received_at >= first))\n    m.when_not_matched_then_insert().values(id=s.c.id)\n',
    },
  ],
  fine: [
    {
      why: 'the bounded column is part of the key',
      path: 'etl/merge.sql',
      lines: [],
      code: "merge into orders t using stage s\n  on t.id = s.id and t.day = s.day and t.day >= '2025-01-01'\nwhen not matched then insert (id, day) values (s.id, s.day);\n",
    },
    {
      why: 'the bound is on the source',
      path: 'etl/merge.sql',
      lines: [],
      code: "merge into orders t using stage s\n  on t.id = s.id and s.day >= '2025-01-01'\nwhen not matched then insert (id) values (s.id);\n",
    },
    {
      why: 'a range join is the key itself',
      path: 'etl/merge.sql',
      lines: [],
      code: 'merge into periods t using stage s\n  on t.id = s.id and t.valid_from <= s.at and t.valid_to > s.at\nwhen not matched then insert (id) values (s.id);\n',
    },
    {
      why: 'nothing is inserted',
      path: 'etl/merge.sql',
      lines: [],
      code: "merge into orders t using stage s\n  on t.id = s.id and t.day >= '2025-01-01'\nwhen matched then update set v = s.v;\n",
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      const { merge, target } = use.statement
      if (merge === undefined || ['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      if (!merge.branches.some((branch) => !branch.matched && branch.action === 'insert')) continue
      const column = narrowedBy(merge, target?.parts.at(-1))
      const [first] = merge.on
      const last = merge.on.at(-1)
      if (column === undefined || first === undefined || last === undefined) continue
      yield report(
        use.mapped.at(first.start),
        use.mapped.at(last.end - 1) + 1,
        `A row of ${nameOf(target)} whose "${column}" lies outside of the bound is not met and is inserted again`,
      )
    }
    yield* inPython(file)
  },
}

function report(start: number, end: number, message: string): Report {
  return { start, end, message, class: 'unsafe', severity: 'warning', confidence: 'medium' }
}

/** The column of the target that is bounded by something else than the source, and not compared for equality. */
function narrowedBy(merge: Merge, table: string | undefined): string | undefined {
  const parts = conjuncts(merge.on)
  const ofTarget = (part: Tokens, at: number): string | undefined => {
    const alias = tokenAt(part, at).value.toLowerCase()
    return (alias === merge.targetAlias?.toLowerCase() || alias === table) &&
      tokenAt(part, at + 1).value === '.'
      ? tokenAt(part, at + 2).value.toLowerCase()
      : undefined
  }
  const readsSource = (part: Tokens): boolean =>
    part.some(
      (token, index) =>
        tokenAt(part, index + 1).value === '.' &&
        (token.value.toLowerCase() === merge.sourceAlias?.toLowerCase() ||
          token.value.toLowerCase() === merge.sourceName?.parts.at(-1)),
    )
  const equal = new Set(
    parts
      .filter((part) => part.some((token) => token.value === '='))
      .flatMap((part) => part.flatMap((_, index) => ofTarget(part, index) ?? [])),
  )
  // Without an equality there is no key to narrow.
  if (equal.size === 0) return undefined
  for (const part of parts) {
    const bounds = part.some(
      (token, index) => ['>', '>=', '<', '<='].includes(token.value) || isWord(part, index, 'between'),
    )
    if (!bounds || readsSource(part)) continue
    const column = part.flatMap((_, index) => ofTarget(part, index) ?? [])[0]
    if (column !== undefined && !equal.has(column)) return column
  }
  return undefined
}

/** `MergeInto(on=and_(t.c.id == s.c.id, t.c.at >= first))`, `DeltaTable.merge(s, "t.id = s.id and t.at > ...")`. */
function* inPython(file: FileFacts): Iterable<Report> {
  const { host } = file
  if (host?.language !== 'python') return
  for (const call of host.calls) {
    const on = call.name === 'MergeInto' ? call.named.get('on') : undefined
    if (on === undefined || !/when_not_matched_then_insert/.test(host.text)) continue
    const source = host.source(on)
    const equal = new Set([...source.matchAll(/\.(\w+)\s*==/g)].map((match) => match[1]))
    const bound = /\b([\w.]+)\.(\w+)\s*(?:>=|<=|>|<)(?!\s*\w+\.c\.)/.exec(source)
    if (equal.size === 0 || bound === null || equal.has(bound[2])) continue
    yield report(
      on.start,
      on.end,
      `A row of the target whose "${bound[2]}" lies outside of the bound is not met and is inserted again`,
    )
  }
}
