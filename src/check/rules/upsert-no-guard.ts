import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Fix, Report } from '../finding.ts'
import type { HostFacts } from '../languages/host.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'
import { nameOf, textBefore } from '../sequence.ts'
import { nameFromText } from '../sql/name.ts'
import type { Assignment } from '../sql/statement.ts'
import { hasWords, isSymbol, plainText } from '../sql/tokens.ts'
import { HOST_CLOCK, hasClock } from './clock.ts'
import { STORE } from './watermark-store.ts'

const TOUCH_COLUMN =
  /^(?:updated?_?(?:at|on|time|timestamp|date|ts|dt)?|modified_?(?:at|on|date|time)?|last_?(?:updated?|modified|changed)(?:_?(?:at|on|date|time|ts|dt|timestamp))?|dw_?updated?\w*|etl_?updated?\w*|changed_?at|(?:row_)?update_(?:dt|ts|time|date|timestamp)|dt_update|sys_?updated?\w*|meta_updated\w*|refreshed_at)$/i
/** Columns that mean the run, not the row. */
const MEANS_THE_RUN =
  /last_?(?:seen|run|check|sync|load|attempt|poll|fetch|ping|login|active|import|crawl|scan|heartbeat|used|access)|heartbeat|seen_at|checked_at|synced_at|run_at|polled_at/i

export const upsertNoGuard: Rule = {
  id: 'upsert-no-guard',
  title: 'Update a row only where it changed',
  anomaly: 'touched',
  tier: 1,
  fix: 'auto',
  problem:
    'The upsert sets the change stamp of every row it meets, also of those that are equal. After a rerun the whole table looks changed, and every reader that goes by the stamp reads it all again.',
  advice:
    'Add a condition that compares the values: where (t.a, t.b) is distinct from (excluded.a, excluded.b).',
  safeForms: [
    {
      for: 'PostgreSQL',
      code: 'insert into product as t (sku, price, updated_at)\nselect sku, price, now() from stage_product\non conflict (sku) do update\n   set price = excluded.price,\n       updated_at = excluded.updated_at\n where t.price is distinct from excluded.price;',
    },
    {
      for: 'Snowflake, BigQuery, Spark',
      code: 'merge into product as t\nusing stage_product as s on t.sku = s.sku\n when matched and t.content_hash <> s.content_hash then update set price = s.price, updated_at = current_timestamp()\n when not matched then insert (sku, price) values (s.sku, s.price);',
    },
  ],
  prove:
    '`stet prove` compares the rows before and after the rerun, on PostgreSQL also their xmin (TOUCHED); `stet check --witness` shows it on three rows.',
  limits:
    'A trigger that stamps rows is known only from DDL in the repository. A guard inside the source select is seen only if it names the target.',
  bad: [
    {
      why: 'the stamp of every row moves',
      path: 'etl/up.sql',
      lines: [1],
      code: 'insert into product (sku, price, updated_at) select sku, price, now() from s\non conflict (sku) do update set price = excluded.price, updated_at = now();\n',
    },
    {
      why: 'a merge without a condition',
      path: 'etl/up.sql',
      lines: [1],
      code: 'merge into product t using (select distinct sku, price from s) s on t.sku = s.sku\nwhen matched then update set t.price = s.price, t.updated_at = current_timestamp()\nwhen not matched then insert (sku, price) values (s.sku, s.price);\n',
    },
    {
      why: 'on duplicate key',
      path: 'etl/up.sql',
      lines: [1],
      code: 'insert into product (sku, price) select sku, price from s on duplicate key update price = values(price), updated_at = now();\n',
    },
    {
      why: 'a trigger stamps every update',
      path: 'etl/up.sql',
      lines: [1],
      beside: {
        'db/schema.sql':
          'create table product (sku text primary key, price numeric, updated_at timestamptz);\ncreate trigger touch before update on product for each row execute function set_updated_at();',
      },
      code: 'insert into product (sku, price) select sku, price from s on conflict (sku) do update set price = excluded.price;\n',
    },
    {
      why: 'the clock goes into the row by a parameter',
      path: 'src/jobs/load.ts',
      lines: [5],
      code: 'import { pool } from "../pool"\nexport async function load(rows) {\n  const now = new Date()\n  for (const row of rows)\n    await pool.query("insert into shop (no, name, updated_at) values ($1, $2, $3) on conflict (no) do update set name = excluded.name, updated_at = excluded.updated_at", [row.no, row.name, now])\n}\n',
    },
    {
      why: 'the clock goes into the row by its name',
      path: 'dags/load.py',
      lines: [4],
      code: 'from datetime import datetime\nfrom airflow.decorators import task\ndef load(cur, row, **kwargs):\n    cur.execute("INSERT INTO shop (no, name, updated_at) VALUES (%(no)s, %(name)s, %(updated_at)s) ON CONFLICT (no) DO UPDATE SET name = excluded.name, updated_at = excluded.updated_at", {"no": row["no"], "name": row["name"], "updated_at": datetime.now()})\n',
    },
  ],
  fine: [
    {
      why: 'the stamp of the source',
      path: 'src/jobs/load.ts',
      lines: [],
      code: 'import { pool } from "../pool"\nexport async function load(rows) {\n  const started = Date.now()\n  for (const row of rows)\n    await pool.query("insert into shop (no, name, updated_at) values ($1, $2, $3) on conflict (no) do update set name = excluded.name, updated_at = excluded.updated_at", [row.no, row.name, row.updated_at])\n  console.log(Date.now() - started)\n}\n',
    },
    {
      why: 'a row that says how far a job has come',
      path: 'etl/state.sql',
      lines: [],
      code: 'insert into chunk_sync_state (id, last_seq, updated_at) values (1, %s, now()) on conflict (id) do update set last_seq = excluded.last_seq, updated_at = now();\n',
    },
    {
      why: 'a condition on the values',
      path: 'etl/up.sql',
      lines: [],
      code: 'insert into product as t (sku, price) select sku, price from s\non conflict (sku) do update set price = excluded.price, updated_at = now() where t.price is distinct from excluded.price;\n',
    },
    {
      why: 'no stamp is set',
      path: 'etl/up.sql',
      lines: [],
      code: "insert into member (no, name) values ('M1', 'Ada') on conflict (no) do update set name = excluded.name;\n",
    },
    {
      why: 'last seen means the run',
      path: 'etl/up.sql',
      lines: [],
      code: 'insert into host (name, last_seen_at) select name, now() from s on conflict (name) do update set last_seen_at = now();\n',
    },
    {
      why: 'a guarded branch of a merge',
      path: 'etl/up.sql',
      lines: [],
      code: 'merge into t using s on t.id = s.id when matched and t.hash <> s.hash then update set v = s.v, updated_at = now() when not matched then insert (id) values (s.id);\n',
    },
    {
      why: 'one constant row of a control table',
      path: 'etl/up.sql',
      lines: [],
      code: "insert into job_state (job, updated_at) values ('orders', now()) on conflict (job) do update set updated_at = now();\n",
    },
    {
      why: 'the source already leaves equal rows out',
      path: 'etl/up.sql',
      lines: [],
      code: 'insert into t (id, v, updated_at) select s.id, s.v, now() from s left join t on t.id = s.id where t.v is distinct from s.v on conflict (id) do update set v = excluded.v, updated_at = now();\n',
    },
    {
      why: 'the stamp comes from the source',
      path: 'etl/up.sql',
      lines: [],
      code: 'insert into t (id, v, updated_at) select id, v, updated_at from s on conflict (id) do update set v = excluded.v, updated_at = excluded.updated_at;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.language === 'dbt') return
    for (const use of file.sql) {
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      const found = inspect(use, file, project)
      if (found !== undefined) yield found
    }
    yield* builtByHelper(file, project)
  },
}

function inspect(use: SqlUse, file: FileFacts, project: ProjectFacts): Report | undefined {
  const { statement } = use
  const { conflict, merge } = statement
  let set: readonly Assignment[]
  if (conflict?.action === 'update') {
    if (conflict.where !== undefined) return undefined
    set = conflict.set
  } else if (merge !== undefined) {
    const updates = merge.branches.filter((branch) => branch.matched && branch.action === 'update')
    if (updates.length === 0 || updates.some((branch) => branch.condition.length > 0)) return undefined
    set = updates.flatMap((branch) => [...branch.set])
  } else return undefined
  if (
    set.some(({ value }) =>
      value.some((token) => token.value === 'case' || token.value === 'iff' || token.value === 'if'),
    )
  )
    return undefined
  // `a is distinct from b`, `a <> b` in the source select already leave equal rows out.
  const query = statement.query
  if (
    hasWords(query, 'is', 'distinct', 'from') ||
    hasWords(query, 'except') ||
    hasWords(query, 'minus') ||
    /hash\w* (?:<>|!=)/.test(plainText(query))
  )
    return undefined
  const constant =
    statement.kind === 'insert' &&
    statement.rows === 'values' &&
    !query.some((token) => token.kind === 'hole')
  if (constant) return undefined
  const touch = set.find(
    ({ column, value }) =>
      TOUCH_COLUMN.test(column) &&
      !MEANS_THE_RUN.test(column) &&
      (stampsTheRun(use, column, value) || isGivenTheClock(use, column, value, file.host)),
  )
  const trigger = project.catalogue.find(statement.target, file.path)?.touchTrigger ?? false
  if (touch === undefined && !trigger) return undefined
  // Nothing but the stamp is set: the table is about the run.
  if (touch !== undefined && set.length === 1) return undefined
  // A row that says how far a job has come is meant to move.
  if (STORE.test(statement.target?.parts.at(-1) ?? '')) return undefined
  const loud = isRerun(use.context)
  const fix = guardFix(use, file, touch?.column)
  return {
    start: use.start,
    end: use.end,
    message: `Every run moves ${touch === undefined ? 'the change stamp (by a trigger)' : `"${touch.column}"`} of all rows it meets in ${nameOf(statement.target)}, changed or not`,
    class: loud ? 'unsafe' : 'info',
    severity: loud ? 'warning' : 'info',
    confidence: touch !== undefined && stampsTheRun(use, touch.column, touch.value) ? 'high' : 'medium',
    ...(fix === undefined ? {} : { fix }),
  }
}

/** `updated_at = now()`, or `excluded.updated_at` where the row was given `now()`. */
function stampsTheRun(use: SqlUse, column: string, value: Assignment['value']): boolean {
  if (hasClock(value)) return true
  const { columns, query } = use.statement
  const fromRow = value.some((token) => ['excluded', 'values', 'new'].includes(token.value))
  return fromRow && columns?.includes(column) === true && hasClock(query)
}

/** `excluded.updated_at` of a row whose values the function makes, with the clock among them. */
function isGivenTheClock(
  use: SqlUse,
  column: string,
  value: Assignment['value'],
  host: HostFacts | undefined,
): boolean {
  const { columns, rows } = use.statement
  const fromRow = value.some((token) => ['excluded', 'values', 'new'].includes(token.value))
  if (
    host === undefined ||
    use.fn === undefined ||
    !fromRow ||
    rows === 'select' ||
    !columns?.includes(column)
  )
    return false
  const body = host.source(use.fn.node).replace(use.text === undefined ? '' : host.source(use.text.node), '')
  const key = `['"]?\\b${literally(column)}\\b['"]?\\s*[:=]`
  const named = new RegExp(key).test(body)
  return host.calls.some((call) => {
    if (
      call.fn !== use.fn ||
      !HOST_CLOCK.test(call.callee) ||
      (call.callee === 'Date' && call.args.length > 0)
    )
      return false
    const given = host.assignments.find(
      (one) => one.fn === use.fn && one.value.start <= call.start && call.end <= one.value.end,
    )
    const word = given === undefined || /[{[]/.test(host.source(given.value)) ? undefined : given.name
    // As the value of that name, or, where the values have no names, as one of a list.
    const from = literally(word ?? host.source(call.node))
    return named
      ? new RegExp(`${key}\\s*${from}`).test(body)
      : new RegExp(`[,([]\\s*${from}\\s*[,)\\]]`).test(body)
  })
}

/** PostgreSQL: `where (t.a, t.b) is distinct from (excluded.a, excluded.b)`. */
function guardFix(use: SqlUse, file: FileFacts, touch: string | undefined): Fix | undefined {
  const { conflict, target } = use.statement
  if (conflict?.how !== 'on-conflict' || target === undefined || target.unknown || file.language !== 'sql')
    return undefined
  if (use.statement.tokens.some((token) => token.kind === 'word' && token.value === 'returning'))
    return undefined
  const plain = conflict.set.filter(
    ({ column, value }) =>
      column !== touch && value.length === 3 && value[0]?.value === 'excluded' && isSymbol(value, 1, '.'),
  )
  // A value that is not simply the new one could change although the compared ones do not.
  if (plain.length === 0 || plain.length + (touch === undefined ? 0 : 1) !== conflict.set.length)
    return undefined
  const table = aliasOf(use) ?? target.parts.at(-1) ?? ''
  if (table.includes('{')) return undefined
  const mine = plain.map(({ column }) => `${table}.${column}`).join(', ')
  const theirs = plain.map(({ column }) => `excluded.${column}`).join(', ')
  const at = use.mapped.at(use.statement.end - 1) + 1
  const compare =
    plain.length === 1 ? `${mine} is distinct from ${theirs}` : `(${mine}) is distinct from (${theirs})`
  return {
    title: 'Update only rows that differ',
    safe: true,
    edits: [{ start: at, end: at, text: `\n where ${compare}` }],
  }
}

function aliasOf(use: SqlUse): string | undefined {
  const { tokens, target } = use.statement
  const after = tokens.findIndex((token) => target !== undefined && token.start >= target.end)
  return tokens[after]?.value === 'as' ? tokens[after + 1]?.value : undefined
}

/** `pgp.helpers.insert(rows, cs) + ' ON CONFLICT ... DO UPDATE SET ' + cs.assignColumns(...)`. */
function* builtByHelper(file: FileFacts, project: ProjectFacts): Iterable<Report> {
  const { host } = file
  if (host === undefined) return
  for (const one of host.texts) {
    const { text } = one.mapped
    if (
      !/helpers\.insert\(/.test(text) ||
      !/on\s+conflict[\s\S]*do\s+update\s+set/i.test(text) ||
      /\bwhere\b/i.test(text)
    )
      continue
    const inFunction = textBefore(host, one.fn, one.end)
    const tableArgument = /\btable\s*:\s*(?:['"`]([\w.]+)['"`]|(\w+))/.exec(inFunction)
    const given = tableArgument?.[2]
    const table =
      tableArgument?.[1] ?? host.assignments.find((assignment) => assignment.name === given)?.value
    const name = typeof table === 'string' ? table : table === undefined ? undefined : host.textOf(table)
    if (name === undefined) continue
    const found = project.catalogue.find(nameFromText(name), file.path)
    const stamped =
      found?.touchTrigger === true || found?.columns.some((column) => TOUCH_COLUMN.test(column.name))
    if (stamped !== true) continue
    yield {
      start: one.start,
      end: one.end,
      message: `Every run updates all rows it meets in "${name}", changed or not, and with them the change stamp`,
      class: 'unsafe',
      severity: 'warning',
      confidence: 'medium',
    }
  }
}
