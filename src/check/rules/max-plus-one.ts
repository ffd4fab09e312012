import { isRerun } from '../context.ts'
import type { SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { isLogTable, isStagingTable, leavesOutExisting } from '../sequence.ts'
import { afterBracket, isSymbol, isWord, type Tokens, tokenAt } from '../sql/tokens.ts'

/** The index of a `max(...)` to which something is added: `max(id) + 1`, `coalesce(max(id), 0) + row_number()`. */
function findMaxPlus(tokens: Tokens): number {
  for (let index = 0; index < tokens.length; index += 1) {
    if (!isWord(tokens, index, 'max') || !isSymbol(tokens, index + 1, '(')) continue
    if (isSymbol(tokens, index - 1, '+') && isNumbering(tokens, index - 2)) return index
    let after = afterBracket(tokens, index + 1)
    let open = index
    // Out of `coalesce(max(id), 0)` and of `(select max(id) from t)`, level by level.
    for (let level = 0; level < 4; level += 1) {
      if (isSymbol(tokens, after, '+') && isNumbering(tokens, after + 1)) return index
      open = openingBracket(tokens, open)
      if (open < 0) break
      const passes =
        isWord(tokens, open - 1, 'coalesce', 'ifnull', 'nvl', 'isnull', 'cast', 'safe_cast') ||
        isWord(tokens, open + 1, 'select', 'max')
      if (!passes) break
      after = afterBracket(tokens, open)
    }
  }
  return -1
}

function isNumbering(tokens: Tokens, at: number): boolean {
  if (tokenAt(tokens, at).value === '1' || isWord(tokens, at, 'row_number', 'rownum', 'rn')) return true
  return (isSymbol(tokens, at, '(') && isWord(tokens, at + 1, 'row_number')) || isSymbol(tokens, at, ')')
}

function openingBracket(tokens: Tokens, from: number): number {
  const depth = tokenAt(tokens, from).depth
  for (let index = from - 1; index >= 0; index -= 1) {
    if (isSymbol(tokens, index, '(') && tokenAt(tokens, index).depth === depth - 1) return index
  }
  return -1
}

export const maxPlusOne: Rule = {
  id: 'max-plus-one',
  title: 'Do not number rows from the highest number so far',
  anomaly: 'doubled',
  tier: 1,
  fix: 'advice',
  problem:
    'The next number depends on what is already there. A rerun gives the same row another number, so nothing recognises it, and two runs at once take the same one.',
  advice:
    'Derive the id from the natural key (a hash), or use a sequence and insert only rows that an anti-join does not find.',
  safeForms: [
    {
      for: 'any',
      code: 'insert into customer (customer_id, email)\nselect md5(lower(email)), email from stage_customer\non conflict (customer_id) do nothing;',
    },
  ],
  prove: '`stet prove` runs the load twice: the rows of the second run have new numbers (DOUBLED).',
  limits: 'Numbers that are counted on in the host language are not seen.',
  bad: [
    {
      why: 'the highest id and one',
      path: 'etl/dim.sql',
      lines: [2],
      code: 'insert into dim (id, name)\nselect (select coalesce(max(id), 0) from dim) + 1, name from s;\n',
    },
    {
      why: 'the highest id and the row number',
      path: 'etl/dim.sql',
      lines: [2],
      code: 'insert into dim (id, name)\nselect max_id.m + row_number() over (order by name), name from s cross join (select max(id) + 1 as m from dim) max_id;\n',
    },
    {
      why: 'asked for in a job',
      path: 'jobs/next.py',
      lines: [3],
      code: 'import psycopg2\ndef next_id(cur):\n    cur.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM dim")\n    return cur.fetchone()[0]\n',
    },
  ],
  fine: [
    {
      why: 'numbers of a work table, which each run makes anew',
      path: 'etl/changes.sql',
      lines: [],
      code: `insert into stg_changes (n, order_id)
select (select coalesce(max(n), 0) from stg_changes) + row_number() over (order by order_id), order_id
  from orders;
`,
    },
    {
      why: 'the highest value itself',
      path: 'etl/mark.sql',
      lines: [],
      code: 'insert into mark (at) select max(at) from s;\n',
    },
    {
      why: 'the number of a run in a run log',
      path: 'etl/log.sql',
      lines: [],
      code: 'insert into load_log (run_no) select max(run_no) + 1 from load_log;\n',
    },
    {
      why: 'only rows that are not there yet',
      path: 'etl/dim.sql',
      lines: [],
      code: 'insert into dim (id, name)\nselect (select max(id) from dim) + row_number() over (order by name), s.name from s left join dim d on d.name = s.name where d.name is null;\n',
    },
    {
      why: 'the next day of a range',
      path: 'etl/range.sql',
      lines: [],
      code: "select max(day) + interval '1 day' from orders;\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.language === 'dbt') return
    for (const use of file.sql) {
      if (['request', 'migration', 'test'].includes(use.context)) continue
      const { statement } = use
      if (!['insert', 'merge', 'select', 'create-table'].includes(statement.kind)) continue
      const at = findMaxPlus(statement.tokens)
      if (at < 0 || looksLikeRange(statement.tokens, at)) continue
      if (statement.kind === 'select' && use.origin === 'file') continue
      yield judge(
        use,
        at,
        isLogTable(statement.target, project) ||
          isStagingTable(statement.target, project) ||
          leavesOutExisting(statement.query, statement.target),
      )
    }
  },
}

/** `max(day) + 1`: dates and versions are counted on purpose. */
function looksLikeRange(tokens: Tokens, at: number): boolean {
  const column = tokenAt(tokens, afterBracket(tokens, at + 1) - 2).value.toLowerCase()
  return /date|day|time|_at$|_on$|month|year|version|batch|run|attempt|position|order|sort|rank|index|level|priority/.test(
    column,
  )
}

function judge(use: SqlUse, at: number, quiet: boolean): Report {
  const token = tokenAt(use.statement.tokens, at)
  const start = use.mapped.at(token.start)
  const loud = isRerun(use.context) && !quiet
  const writes = use.statement.kind !== 'select'
  return {
    start,
    end: start + token.text.length,
    message:
      'The number of a row is the highest one so far and more: a rerun gives the same row another number, and two runs at once collide',
    class: loud ? 'unsafe' : 'info',
    severity: loud ? (writes ? 'error' : 'warning') : 'info',
    confidence: writes ? 'medium' : 'low',
  }
}
