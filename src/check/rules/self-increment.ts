import { isRerun } from '../context.ts'
import type { FileFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { claimed, clearedBy, earlierOnTable, madeAnewElsewhere, nameOf } from '../sequence.ts'
import { sameTable } from '../sql/name.ts'
import type { Assignment, Statement } from '../sql/statement.ts'
import { conjuncts, findWords, isSymbol, isWord, type Tokens, tokenAt } from '../sql/tokens.ts'

/** Columns that are meant to move with every attempt. */
export const COUNTS_ATTEMPTS: RegExp =
  /^__v$|attempt|retr(?:y|ies)|version|revision|^seq|sequence|next_|_next|failures?|tries|lock|nonce|generation|epoch|counter_id|run_count|proc(?:ess(?:ed|ing)?)?_count|current_value|last_id/
/** Columns that count what people do: one more is a request, a sum from another table is a load. */
const COUNTS_ACTIONS = /views?|hits?|clicks?|visits?/
const GROWS = new Set([
  'array_append',
  'array_cat',
  'concat',
  'jsonb_insert',
  'array_concat',
  'list_append',
  'string_agg',
  'json_array_append',
  'concat_ws',
  'dateadd',
  'date_add',
])

/** Whether the value moves away from the column's own value each time: `n + 1`, `a || b`, `array_append(a, b)`. */
export function growsFromItself(assignment: Assignment, statement: Statement): boolean {
  const known = growing.get(assignment) ?? isGrowing(assignment, statement)
  growing.set(assignment, known)
  return known
}

const growing = new WeakMap<Assignment, boolean>()

function isGrowing({ column, value }: Assignment, statement: Statement): boolean {
  const own = value.flatMap((token, at) =>
    (token.kind === 'word' || token.kind === 'quoted') &&
    token.value.toLowerCase() === column &&
    !isSymbol(value, at + 1, '(') &&
    !isSymbol(value, at + 1, '.') &&
    !comesFromSource(value, at, statement)
      ? [at]
      : [],
  )
  if (own.length === 0) return false
  const first = tokenAt(value, 0)
  if (first.kind === 'word' && isSymbol(value, 1, '(') && GROWS.has(first.value)) return true
  if (value.some((token) => token.kind === 'word' && ['greatest', 'least', 'case'].includes(token.value)))
    return false
  return movesOn(value, own)
}

/** Whether an operator works on the column itself: in `coalesce(a + b, total)` it does not work on `total`. */
function movesOn(value: Tokens, own: readonly number[]): boolean {
  return value.some((token, index) => {
    if (index === 0 || token.kind !== 'symbol' || !['+', '-', '*', '||', '+='].includes(token.value))
      return false
    if (!own.some((at) => isOperand(value, at, index))) return false
    const next = tokenAt(value, index + 1)
    if (isWord(value, index - 1, 'interval') || (next.kind === 'symbol' && next.value !== '(')) return false
    // `data - 'key'` and `data || '{"a": 1}'` of jsonb do the same the second time.
    if (token.value === '-' && next.kind === 'string') return false
    return !(token.value === '||' && (next.value.trimStart().startsWith('{') || isDocument(value, index)))
  })
}

function isOperand(value: Tokens, at: number, operator: number): boolean {
  const { depth } = tokenAt(value, operator)
  return value
    .slice(Math.min(at, operator) + 1, Math.max(at, operator))
    .every((token) => token.depth >= depth && !(token.depth === depth && token.value === ','))
}

/** `||` of two jsonb or hstore documents sets the same keys the second time. */
function isDocument(value: Tokens, operator: number): boolean {
  return [...value.keys()].some(
    (index) =>
      (index > operator &&
        /^(?:jsonb_\w+|hstore|to_jsonb|json_object|row_to_json)$/.test(tokenAt(value, index).value)) ||
      (tokenAt(value, index).value === '::' && isWord(value, index + 1, 'jsonb', 'hstore')),
  )
}

/** `excluded.n` and `s.n` of a merge are the new row, not the old one. */
function comesFromSource(value: Tokens, at: number, { kind, target, tokens }: Statement): boolean {
  if (!isSymbol(value, at - 1, '.')) return false
  const qualifier = tokenAt(value, at - 2).value.toLowerCase()
  // `update p set end_at = next.end_at - 1 from provider p join next`: `next` is another table of the join.
  if (kind === 'update' && target !== undefined && qualifier !== target.parts.at(-1)) {
    const isTarget = tokens.some(
      (token, index) =>
        token.value.toLowerCase() === target.parts.at(-1) &&
        tokenAt(tokens, isWord(tokens, index + 1, 'as') ? index + 2 : index + 1).value.toLowerCase() ===
          qualifier,
    )
    if (!isTarget && findWords(tokens, ['from']) >= 0) return true
  }
  return /^(?:excluded|new|values|src|source|s|stg|stage|staging|updates|u|b|delta|incoming|tmp)$/.test(
    tokenAt(value, at - 2).value,
  )
}

function assignmentsOf(use: SqlUse): readonly Assignment[] {
  const { statement } = use
  if (statement.kind === 'update') return statement.set
  if (statement.conflict?.action === 'update') return statement.conflict.set
  return statement.merge?.branches.flatMap((branch) => (branch.matched ? branch.set : [])) ?? []
}

/** `set name = 'old ' || name where name = 'office'`, `where tags not like '%x%'`: the new value fails the condition. */
function leavesItsCondition(use: SqlUse, column: string): boolean {
  return conjuncts(use.statement.where ?? []).some((part) => {
    const at = part.findIndex((token) => token.value.toLowerCase() === column && token.kind !== 'string')
    if (at < 0) return false
    if (isSymbol(part, at + 1, '=') && tokenAt(part, at + 2).kind === 'string') return true
    return (
      findWords(part, ['not', 'like']) >= 0 ||
      findWords(part, ['not', 'ilike']) >= 0 ||
      (isWord(part, 0, 'not') &&
        part.some((token) => ['any', '@>', '~', 'like', 'contains'].includes(token.value)))
    )
  })
}

/** `set n = n + 1, last_batch = 7 where last_batch < 7`: the condition closes behind itself. */
function closesBehindItself(use: SqlUse): boolean {
  const { where, set } = use.statement
  const condition =
    where ??
    use.statement.conflict?.where ??
    use.statement.merge?.branches.flatMap((branch) => [...branch.condition]) ??
    []
  return set.concat(use.statement.conflict?.set ?? []).some(({ column, value }) => {
    if (value.some((token) => token.value === column)) return false
    return condition.some((token, index) => {
      if (token.value.toLowerCase() !== column) return false
      return (
        isWord(condition, index + 1, 'is') ||
        isWord(condition, index - 1, 'not') ||
        ['<', '<>', '!=', '>', '='].includes(tokenAt(condition, index + 1).value)
      )
    })
  })
}

export const selfIncrement: Rule = {
  id: 'self-increment',
  title: 'Compute a total anew instead of adding to it',
  anomaly: 'doubled',
  tier: 1,
  fix: 'advice',
  problem:
    'The new value starts from the old one, so each run moves it on. A retry after a lost answer, or a second run of one day, counts the same rows twice.',
  advice:
    'Compute the value from the source rows, or note the applied batch in the same transaction and skip it the next time.',
  safeForms: [
    {
      for: 'any',
      code: 'update account as a\n   set balance = t.balance\n  from (select account_no, sum(amount) as balance from movement group by account_no) as t\n where t.account_no = a.account_no;',
    },
    {
      for: 'any, with a mark',
      code: 'update account\n   set balance = balance + 5,\n       last_batch = 17\n where account_no = 3\n   and last_batch < 17;',
    },
  ],
  prove:
    '`stet prove` runs the job twice and compares the column (DOUBLED); `stet check --witness` shows it on three rows.',
  limits:
    'Whether a guard exists in another function or a trigger is not seen; nor is what a parameter holds: `a || %(b)s` doubles a text and changes nothing of a JSON document, so its confidence is low.',
  bad: [
    {
      why: 'a total that is added to',
      path: 'etl/totals.sql',
      lines: [1],
      code: 'update account set balance = balance + m.amount from movement m where m.account_no = account.account_no;\n',
    },
    {
      why: 'an upsert that adds',
      path: 'etl/totals.sql',
      lines: [1],
      code: 'insert into total (k, n) values (%s, %s)\non conflict (k) do update set n = total.n + excluded.n;\n',
    },
    {
      why: 'a merge that adds',
      path: 'etl/totals.sql',
      lines: [1],
      code: 'merge into total t using (select k, sum(n) as n from s group by k) s on t.k = s.k\nwhen matched then update set t.n = t.n + s.n\nwhen not matched then insert (k, n) values (s.k, s.n);\n',
    },
    {
      why: 'in the SQL of a job',
      path: 'jobs/count.py',
      lines: [3],
      code: 'import psycopg2\ndef count(cur, n):\n    cur.execute("UPDATE stats SET total = total + %s WHERE id = 1", (n,))\n',
    },
    {
      why: 'counters that a load adds up are no single clicks',
      path: 'etl/stats.sql',
      lines: [1],
      code: 'merge into item as t\nusing (select item_no, sum(views) as views from event group by item_no) as s\n   on t.item_no = s.item_no\n when matched then update set views = t.views + s.views;\n',
    },
  ],
  fine: [
    {
      why: 'the value of the other table of the join, one day before',
      path: 'etl/close.sql',
      lines: [],
      code: 'with next as (select id, min(start_at) as end_at from provider group by id)\nupdate p set end_at = next.end_at - 1 from provider p join next on next.id = p.id;\n',
    },
    {
      why: 'how often a row was taken up, and one click more',
      path: 'etl/mark.sql',
      lines: [],
      code: 'update file set proc_count = proc_count + 1 where id = 1;\nupdate page set views = views + 1 where id = 1;\n',
    },
    { why: 'a script variable', path: 'etl/loop.sql', lines: [], code: 'set i = i + 1;\n' },
    {
      why: 'the old value is only what is left if there is no new one',
      path: 'etl/totals.sql',
      lines: [],
      code: 'update clinic set total = coalesce(beds_a + beds_b, total);\n',
    },
    {
      why: 'the new value fails the condition',
      path: 'etl/names.sql',
      lines: [],
      code: "update site set name = concat(agency, ' ', name) where name = 'Office';\nupdate site set tags = array_append(tags, 'x') where array_to_string(tags, ';') not like '%x%';\n",
    },
    {
      why: 'documents are merged key by key',
      path: 'etl/form.sql',
      lines: [],
      code: 'insert into form (id, answers) values (%s, %s)\non conflict (id) do update set answers = form.answers || jsonb_strip_nulls(excluded.answers);\n',
    },
    {
      why: 'another step makes the table anew',
      path: 'etl/2_merge.sql',
      lines: [],
      beside: {
        'etl/1_make.sql': 'drop table if exists area, site;\ncreate table site (id int, load int);\n',
      },
      code: 'update site set load = load + u.load from u where u.id = site.id;\n',
    },
    {
      why: 'greatest is the same the second time',
      path: 'etl/totals.sql',
      lines: [],
      code: 'update t set seen = greatest(seen, 5), v = coalesce(v, 0);\n',
    },
    {
      why: 'an attempt counter',
      path: 'jobs/retry.sql',
      lines: [],
      code: 'update job set attempts = attempts + 1 where id = 3;\n',
    },
    {
      why: 'a condition that closes behind itself',
      path: 'etl/totals.sql',
      lines: [],
      code: 'update account set balance = balance + 5, last_batch = 17 where no = 3 and last_batch < 17;\n',
    },
    {
      why: 'the new row, not the old one',
      path: 'etl/totals.sql',
      lines: [],
      code: 'insert into t (k, n) values (1, 2) on conflict (k) do update set n = excluded.n + 0;\n',
    },
    {
      why: 'a request handler',
      path: 'src/api/like.ts',
      lines: [],
      code: 'import express from "express";\nexport const like = (req, res) => db.query("UPDATE post SET score = score + 1 WHERE id = $1", [req.params.id]);\n',
    },
    {
      why: 'the same script sets it anew before',
      path: 'etl/totals.sql',
      lines: [],
      code: 'update area set load = t.load from t where t.id = area.id;\nupdate area set load = load + u.load from u where u.id = area.id;\n',
    },
    {
      why: 'a key taken out of a document',
      path: 'etl/doc.sql',
      lines: [],
      code: "update doc set data = data - 'old_key';\nupdate doc set data = data || '{\"seen\": true}';\n",
    },
    {
      why: 'applied with a claim in the same transaction',
      path: 'jobs/apply.py',
      lines: [],
      code: 'import psycopg2\ndef apply(conn):\n    cur = conn.cursor()\n    cur.execute("SELECT id, amount FROM movement WHERE applied = false")\n    for row in cur.fetchall():\n        cur.execute("UPDATE account SET balance = balance + %s", (row[1],))\n        cur.execute("UPDATE movement SET applied = true WHERE id = %s", (row[0],))\n    conn.commit()\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      if (use.context === 'request' || use.context === 'migration' || use.context === 'test') continue
      const grows = assignmentsOf(use).find((one) => growsFromItself(one, use.statement))
      if (
        grows === undefined ||
        closesBehindItself(use) ||
        claimed(file, use) ||
        leavesItsCondition(use, grows.column) ||
        startsAnew(file, use, grows.column)
      )
        continue
      yield judge(file, use, grows, madeAnewElsewhere(file, use, project))
    }
    yield* hostIncrements(file)
  },
}

function judge(file: FileFacts, use: SqlUse, { column, value }: Assignment, madeAnew: boolean): Report {
  const attempt =
    COUNTS_ATTEMPTS.test(column) ||
    (COUNTS_ACTIONS.test(column) && value.some((token) => token.kind === 'number'))
  const loud = isRerun(use.context) && !attempt && use.context !== 'seed' && !madeAnew
  const unsure = use.origin === 'routine' || joinsParameter(value)
  return {
    start: use.start,
    end: use.end,
    message: `"${column}" of ${nameOf(use.statement.target)} is computed from its own old value: a second run moves it on again`,
    class: loud ? 'unsafe' : 'info',
    severity: loud ? (unsure ? 'warning' : 'error') : 'info',
    confidence: loud
      ? unsure
        ? 'low'
        : file.language === 'sql' || use.context === 'task'
          ? 'high'
          : 'medium'
      : 'low',
  }
}

/** `facts || %(facts)s`: a text grows, a JSON document is merged, and what the parameter holds is not seen. */
function joinsParameter(value: Tokens): boolean {
  return value.at(-1)?.kind === 'hole' && value.at(-2)?.value === '||'
}

/** An earlier statement of the same run sets the column to a value of its own, or makes the table anew. */
function startsAnew(file: FileFacts, use: SqlUse, column: string): boolean {
  if (clearedBy(file, use) !== undefined) return true
  return earlierOnTable(file, use).some(
    ({ statement }) =>
      statement.kind === 'update' &&
      sameTable(statement.target, use.statement.target) &&
      statement.set.some((one) => one.column === column && !growsFromItself(one, statement)),
  )
}

/** Prisma's `increment`, MongoDB's `$inc`, Django's `F('n') + 1`. */
function* hostIncrements(file: FileFacts): Iterable<Report> {
  const { host } = file
  if (host === undefined) return
  for (const call of host.calls) {
    if (
      !/^(?:update|updateMany|upsert|updateOne|update_one|update_many|findOneAndUpdate|find_one_and_update|bulkWrite)$/.test(
        call.name,
      )
    )
      continue
    const source = host.source(call.node)
    const found =
      /\bincrement\s*:\s*[^,}]+|['"]?\$inc['"]?\s*:|\b(\w+)\s*=\s*F\(\s*['"]\1['"]\s*\)\s*[+-]/.exec(source)
    if (
      found === null ||
      [found[0], source.slice(Math.max(0, found.index - 40), found.index + 60)].some(
        (text) => COUNTS_ATTEMPTS.test(text) || COUNTS_ACTIONS.test(text),
      )
    )
      continue
    const context = file.contextOf(call.fn)
    if (context === 'request' || context === 'migration' || context === 'test') continue
    const loud = context === 'task'
    yield {
      start: call.start + found.index,
      end: call.start + found.index + found[0].length,
      message: 'A stored number is increased by each run: a second run of the same input counts it again',
      class: loud ? 'unsafe' : 'info',
      severity: loud ? 'warning' : 'info',
      confidence: 'low',
    }
  }
}
