import type { SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { earlierOnTable, nameOf } from '../sequence.ts'
import { conjuncts, findWords, isWord, plainText, type Tokens, tokenAt } from '../sql/tokens.ts'
import { hasClock } from './clock.ts'

interface Bound {
  readonly column: string
  readonly operator: string
  readonly value: string
  readonly clock: boolean
}

export const deleteInsertRange: Rule = {
  id: 'delete-insert-range',
  title: 'Delete exactly the slice that is inserted',
  anomaly: 'doubled',
  tier: 2,
  fix: 'advice',
  problem:
    'The slice that is deleted and the one that is inserted differ at an end: `>` against `>=`, `between` against `<`, the clock against a parameter. Rows at that end are doubled, or deleted and never inserted.',
  advice: 'Write one predicate with one parameter for both.',
  safeForms: [
    {
      for: 'any',
      code: "begin;\ndelete from orders_daily where day >= '2025-02-01' and day < '2025-03-01';\ninsert into orders_daily select * from stage_orders where day >= '2025-02-01' and day < '2025-03-01';\ncommit;",
    },
  ],
  prove: '`stet prove` runs the job twice with a row at the end of the slice (DOUBLED or LOST).',
  limits: 'Only bounds on columns of the same name are compared, and only where they are written out.',
  bad: [
    {
      why: 'the last day is inserted and not deleted',
      path: 'etl/load.sql',
      lines: [2],
      code: "delete from d where day >= '2025-02-01' and day < '2025-03-01';\ninsert into d select * from s where day between '2025-02-01' and '2025-03-01';\n",
    },
    {
      why: 'the first day stays',
      path: 'jobs/load.py',
      lines: [4],
      code: 'import psycopg2\ndef load(cur, first):\n    cur.execute("DELETE FROM d WHERE day > %s", (first,))\n    cur.execute("INSERT INTO d SELECT * FROM s WHERE day >= %s", (first,))\n',
    },
    {
      why: 'one end is the clock, the other a parameter',
      path: 'etl/load.sql',
      lines: [2],
      code: "delete from d where day = current_date - 1;\ninsert into d select * from s where day = '{{ ds }}';\n",
    },
  ],
  fine: [
    {
      why: 'the same predicate',
      path: 'etl/load.sql',
      lines: [],
      code: "delete from d where day >= '2025-02-01';\ninsert into d select * from s where day >= '2025-02-01';\n",
    },
    {
      why: 'all is deleted',
      path: 'etl/load.sql',
      lines: [],
      code: "delete from d;\ninsert into d select * from s where day >= '2025-02-01';\n",
    },
    {
      why: 'the source is narrowed by more than the slice',
      path: 'etl/load.sql',
      lines: [],
      code: "delete from d where day = '2025-02-01';\ninsert into d select * from s where s.day = '2025-02-01' and s.amount > 0;\n",
    },
    {
      why: 'old rows are thrown away as well',
      path: 'etl/load.sql',
      lines: [],
      code: "delete from d where day < '2020-01-01' or day = '2025-02-01';\ninsert into d select * from s where day = '2025-02-01';\n",
    },
    {
      why: 'a retention, and then a load of another slice',
      path: 'etl/load.sql',
      lines: [],
      code: "delete from d where day < current_date - 365;\ninsert into d select * from s where day = '2025-02-01';\n",
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      if (statement.kind !== 'insert' || statement.rows !== 'select' || statement.conflict !== undefined)
        continue
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      const cleared = earlierOnTable(file, use).find((one) => one.statement.kind === 'delete')
      if (cleared?.statement.where === undefined) continue
      const column = differs(boundsOf(cleared.statement.where), boundsOf(whereOf(statement.query)))
      if (column === undefined || runsApart(cleared, use)) continue
      yield {
        start: use.start,
        end: use.end,
        message: `The slice of ${nameOf(statement.target)} that is deleted ends elsewhere on "${column}" than the one that is inserted: rows at that end are doubled or lost`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
  },
}

/** Constants of a module: which of them run together is not seen. */
function runsApart(left: SqlUse, right: SqlUse): boolean {
  return left.origin === 'text' && (left.call === undefined || right.call === undefined)
}

function whereOf(query: Tokens): Tokens {
  const depth = tokenAt(query, 0).depth
  const where = findWords(query, ['where'], 0, depth)
  if (where < 0) return []
  const ends = [['group', 'by'], ['order', 'by'], ['limit'], ['union'], ['qualify'], ['having']]
    .map((words) => findWords(query, words, where, depth))
    .filter((at) => at > 0)
  return query.slice(where + 1, ends.length > 0 ? Math.min(...ends) : query.length)
}

/** Comparisons that are joined by `and`; none where an `or` makes more of them. */
function boundsOf(condition: Tokens): Bound[] {
  const depth = tokenAt(condition, 0).depth
  if (condition.some((token, index) => token.depth === depth && isWord(condition, index, 'or', 'not')))
    return []
  return conjuncts(condition).flatMap((part) => {
    const between = findWords(part, ['between'], 0, depth)
    if (between > 0) {
      const and = findWords(part, ['and'], between, depth)
      const column = nameAt(part.slice(0, between))
      return column === undefined || and < 0
        ? []
        : [bound(column, '>=', part.slice(between + 1, and)), bound(column, '<=', part.slice(and + 1))]
    }
    const operator = part.findIndex((token) => ['=', '>', '>=', '<', '<='].includes(token.value))
    const column = operator > 0 ? nameAt(part.slice(0, operator)) : undefined
    return column === undefined ? [] : [bound(column, part[operator]?.value ?? '', part.slice(operator + 1))]
  })
}

function bound(column: string, operator: string, value: Tokens): Bound {
  return { column, operator, value: plainText(value), clock: hasClock(value) }
}

/** A bare column, its alias left out. */
function nameAt(tokens: Tokens): string | undefined {
  const last = tokens.at(-1)
  if (last === undefined || tokens.length > 3 || (tokens.length === 3 && tokenAt(tokens, 1).value !== '.'))
    return undefined
  return tokens.length === 2 || (last.kind !== 'word' && last.kind !== 'quoted')
    ? undefined
    : last.value.toLowerCase()
}

/** The column on which one end is written differently in the two. */
function differs(left: readonly Bound[], right: readonly Bound[]): string | undefined {
  const lower = (one: Bound): boolean => one.operator.startsWith('>')
  for (const one of left) {
    for (const other of right) {
      if (one.column !== other.column) continue
      const sameSide = one.operator !== '=' && other.operator !== '=' && lower(one) === lower(other)
      if (sameSide && one.value === other.value && one.operator !== other.operator) return one.column
      // A slice of the clock's day against one of the run's.
      if (one.operator === '=' && other.operator === '=' && one.clock !== other.clock) return one.column
    }
  }
  return undefined
}
