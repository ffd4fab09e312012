import type { SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { isLogTable } from '../sequence.ts'
import { isWord, splitByComma, type Tokens, tokenAt } from '../sql/tokens.ts'
import { readsClock } from './clock.ts'
import { clocksOfRange } from './clock-of-range.ts'

/** Columns that say what period a row is about. */
const PERIOD =
  /^(?:day|date|dt|ds|d|month|week|year|timestamp|ts|period|as_?of|snapshot|report_?day)$|(?:^|_)(?:day|date|dt|ds|month|week|snapshot|period|as_of|partition)$|^(?:snapshot|as_of|partition|report|business|effective|valid)_/i
/** Columns that say when it was written. */
const AUDIT =
  /load|insert|updat|creat|process|etl|ingest|sync|refresh|export|modif|audit|import|extract|record|added|run|last|generated|batch|dbt|start|end|expire|valid_to|valid_from|effective|stamp_/i

export const runClock: Rule = {
  id: 'run-clock',
  title: 'Let the run say which day it is about',
  anomaly: 'moved',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The period of the rows is whatever day the statement runs on. A run that is repeated tomorrow, or a day that is made up for, gets the wrong day, and a missed day can never be rebuilt.',
  advice:
    'Pass the logical date of the run as a parameter and store that; keep the clock for columns such as loaded_at.',
  safeForms: [
    {
      for: 'Airflow',
      code: "insert into median_daily (day, project, apy)\nselect date '{{ ds }}', project, avg(apy)\n  from yield\n where day = date '{{ ds }}'\n group by project;",
    },
  ],
  prove: '`stet prove` runs the job for one day on two dates: the column differs (NONDETERMINISTIC).',
  limits:
    'A clock is followed through variables of one function into a column that names a period, a filter by equality, a condition of a statement and the range of a request. A look-back such as now() - interval is not judged.',
  bad: [
    {
      why: 'the day is the day of the run',
      path: 'etl/m.sql',
      lines: [2],
      code: 'insert into median_daily (day, project)\nselect current_date, project from yield on conflict (day, project) do nothing;\n',
    },
    {
      why: 'a snapshot model',
      path: 'models/h.sql',
      lines: [2],
      code: "{{ config(materialized='incremental', unique_key=['snapshot_date', 'id']) }}\nselect current_date as snapshot_date, id from {{ ref('s') }}\n",
    },
    {
      why: 'the rows of the day before the run',
      path: 'etl/m.sql',
      lines: [4],
      code: 'insert into median_daily (day, project)\nselect day, project\n  from yield\n where day = current_date - 1\non conflict (day, project) do nothing;\n',
    },
    {
      why: 'a task that computes its own range',
      path: 'dags/orders.py',
      lines: [6],
      code: 'from datetime import datetime, timedelta\nimport requests\nfrom airflow.decorators import task\n@task\ndef fetch():\n    end = datetime.now()\n    start = end - timedelta(days=1)\n    query = {"startTime": start.isoformat(), "endTime": end.isoformat()}\n    return requests.get("https://example.org/orders", params=query).json()\n',
    },
    {
      why: 'a task that deletes and reads the day of the clock',
      path: 'dags/orders.py',
      lines: [5],
      code: 'from datetime import date, timedelta\nfrom airflow.decorators import task\n@task\ndef clear(cur):\n    day = date.today() - timedelta(days=1)\n    cur.execute(f"DELETE FROM orders_daily WHERE day = \'{day}\'")\n',
    },
    {
      why: 'an id that hashes the clock',
      path: 'dags/import_scooters.py',
      lines: [6],
      code: 'from datetime import datetime\nfrom airflow.decorators import task\n@task\ndef read(rows):\n    for row in rows:\n        at = datetime.now().isoformat()\n        yield Scooter(id=make_hash([row["no"], at]), place=row["place"])\n',
    },
    {
      why: 'a handler that asks for the day of the clock',
      path: 'src/handlers/rates.ts',
      lines: [2],
      code: 'export const handler = async () => {\n  const day = new Date(Date.now()).toISOString().slice(0, 10)\n  const { data } = await axios.get(`https://example.org/historical/${day}.json`)\n  await table.put(data)\n  await db.query("insert into rate values ($1) on conflict (day) do nothing", [data])\n}\n',
    },
  ],
  fine: [
    {
      why: 'rows that are kept for some time, by a name that says so further up',
      path: 'dags/clean.py',
      lines: [],
      code: 'from datetime import datetime, timedelta\nimport airflow\ndef clean(cur):\n    cutoff = datetime.now() - timedelta(days=30)\n    day = cutoff.date()\n    cur.execute(f"update events set archived = true where at < \'{day}\'")\n',
    },
    {
      why: 'the moment only makes the statement another one',
      path: 'dags/orders.py',
      lines: [],
      code: 'import time\nfrom airflow.decorators import task\n@task\ndef clear(cur):\n    now = int(time.time())\n    cur.execute(f"DELETE FROM orders_daily WHERE {now} = {now} AND day = \'2025-02-03\'")\n',
    },
    {
      why: 'a day that the caller may give',
      path: 'dags/orders.py',
      lines: [],
      code: 'from datetime import date\nfrom airflow.decorators import task\n@task\ndef clear(cur, day=None):\n    if day is None:\n        day = date.today()\n    cur.execute(f"DELETE FROM orders_daily WHERE day = \'{day}\'")\n',
    },
    {
      why: 'rows that are kept for a while, and a time that is only sent along',
      path: 'dags/clean.py',
      lines: [],
      code: 'from datetime import datetime, timedelta\nimport requests\nfrom airflow.decorators import task\n@task\ndef clean(cur):\n    cutoff = datetime.now() - timedelta(days=30)\n    cur.execute(f"DELETE FROM metric WHERE at < \'{cutoff}\'")\n    requests.get("https://example.org/ping", params={"nonce": datetime.now().timestamp()})\n',
    },
    {
      why: 'the day of the run, given by the scheduler',
      path: 'dags/orders.py',
      lines: [],
      code: 'from airflow.decorators import task\n@task\ndef clear(cur, ds=None):\n    cur.execute(f"DELETE FROM orders_daily WHERE day = \'{ds}\'")\n',
    },
    {
      why: 'a look-back that overlaps',
      path: 'etl/m.sql',
      lines: [],
      code: 'insert into t (id, v) select id, v from s where changed_at >= current_date - 3 on conflict (id) do nothing;\n',
    },
    {
      why: 'a branch of a value',
      path: 'etl/m.sql',
      lines: [],
      code: 'insert into t (id, fresh) select id, case when day = current_date then 1 else 0 end from s where id > 0 on conflict (id) do nothing;\n',
    },
    {
      why: 'an audit column',
      path: 'etl/m.sql',
      lines: [],
      code: 'insert into t (id, loaded_at) select id, now() from s on conflict (id) do nothing;\n',
    },
    {
      why: 'a parameter',
      path: 'etl/m.sql',
      lines: [],
      code: "insert into median_daily (day, project) select date '{{ ds }}', project from yield on conflict do nothing;\n",
    },
    {
      why: 'a column of that name',
      path: 'etl/m.sql',
      lines: [],
      code: 'insert into t (day, id) select s.current_date, id from s on conflict do nothing;\n',
    },
    {
      why: 'nothing is stored',
      path: 'models/v.sql',
      lines: [],
      code: "{{ config(materialized='view') }}\nselect current_date as day from {{ ref('s') }}\n",
    },
    {
      why: 'computed with it, not stored',
      path: 'etl/m.sql',
      lines: [],
      code: 'insert into t (id, age) select id, datediff(day, born, current_date) from s on conflict (id) do nothing;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    const incremental = file.model?.config.materialized === 'incremental'
    for (const use of file.sql) {
      const { statement } = use
      if (
        ['request', 'migration', 'test', 'seed'].includes(use.context) ||
        isLogTable(statement.target, project)
      )
        continue
      if (statement.kind !== 'insert' && !(incremental && statement.kind === 'select')) continue
      const query = statement.kind === 'select' ? statement.tokens : statement.query
      yield* periods(query, use)
      yield* filters(query, use)
    }
    for (const clock of clocksOfRange(file)) {
      yield {
        start: clock.start,
        end: clock.end,
        message:
          'The clock says which rows this run is about: repeated later it is about others, and a missed run cannot be made up for',
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}

/** Items of every select list that are the clock alone and go to a column that names a period. */
function* periods(query: Tokens, use: SqlUse): Iterable<Report> {
  for (let select = 0; select < query.length; select += 1) {
    if (!isWord(query, select, 'select')) continue
    const { depth } = tokenAt(query, select)
    const end = query.findIndex(
      (token, index) =>
        index > select &&
        (token.depth < depth || (token.depth === depth && isWord(query, index, 'from', 'union'))),
    )
    const items = splitByComma(query.slice(select + 1, end < 0 ? query.length : end))
    for (const [index, item] of items.entries()) {
      if (!readsClock(item, 0)) continue
      const alias = item.findIndex((token) => token.value === 'as')
      const last = tokenAt(item, item.length - 1)
      // `current_date`, `current_date()`, `current_date::date`, `current_date as day`; not what is computed from it.
      const bare = item
        .slice(1, alias < 0 ? item.length : alias)
        .every((token) => ['(', ')', '::', 'date', 'timestamp'].includes(token.value) || token === last)
      const column =
        alias >= 0 || (item.length > 1 && last.kind === 'word' && last.value !== 'date' && bare)
          ? last.value.toLowerCase()
          : depth === (query[0]?.depth ?? 0)
            ? use.statement.columns?.[index]
            : undefined
      if (!bare || column === undefined || !PERIOD.test(column) || AUDIT.test(column)) continue
      const clock = tokenAt(item, 0)
      const start = use.mapped.at(clock.start)
      yield {
        start,
        end: start + clock.text.length,
        message: `"${column}" is the day of the run: repeated on another day the run is about that day, and a missed one cannot be rebuilt`,
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  }
}

/** `where day = current_date - 1` in a statement that stores what it reads. */
function* filters(query: Tokens, use: SqlUse): Iterable<Report> {
  if (use.statement.kind !== 'insert') return
  for (const [index, token] of query.entries()) {
    if (token.value !== '=' || token.kind !== 'symbol' || !isCondition(query, index)) continue
    const { depth } = token
    const end = query.findIndex(
      (one, at) =>
        at > index &&
        (one.depth < depth ||
          (one.depth === depth &&
            isWord(
              query,
              at,
              'and',
              'or',
              'group',
              'order',
              'limit',
              'union',
              'having',
              'qualify',
              'on',
              'returning',
            ))),
    )
    const to = end < 0 ? query.length : end
    const at = query.findIndex((_, place) => place > index && place < to && readsClock(query, place))
    if (at < 0) continue
    const clock = tokenAt(query, at)
    const start = use.mapped.at(clock.start)
    yield {
      start,
      end: start + clock.text.length,
      message:
        'The clock says which rows this run is about: repeated later it is about others, and a missed run cannot be made up for',
      class: 'unsafe',
      severity: 'warning',
      confidence: 'medium',
    }
    return
  }
}

/** Stands behind `where`, not in a `case` or a join. */
function isCondition(query: Tokens, index: number): boolean {
  const { depth } = tokenAt(query, index)
  for (let at = index - 1; at >= 0; at -= 1) {
    if (tokenAt(query, at).depth < depth) return false
    if (tokenAt(query, at).depth > depth) continue
    if (isWord(query, at, 'where')) return true
    if (isWord(query, at, 'select', 'on', 'when', 'case', 'set', 'or', 'from')) return false
  }
  return false
}
