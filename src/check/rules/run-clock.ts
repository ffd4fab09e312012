import type { SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { isLogTable } from '../sequence.ts'
import { isWord, splitByComma, type Tokens, tokenAt } from '../sql/tokens.ts'
import { readsClock } from './clock.ts'

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
  limits: 'Only a clock that is stored as a period is judged; one in a filter is a hint.',
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
  ],
  fine: [
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
