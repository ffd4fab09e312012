import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { clearedBy } from '../sequence.ts'

const DML = /\b(insert\s+into|update\s+[\w."{}\s]+\s+set|merge\s+into)\b/i

export const dbtHookDml: Rule = {
  id: 'dbt-hook-dml',
  title: 'Keep inserts out of hooks and run_query',
  anomaly: 'doubled',
  tier: 1,
  fix: 'advice',
  problem:
    'A hook or a statement of a macro runs with each attempt of the model, also with one that fails later. Rows that it inserts are there once for every attempt.',
  advice:
    'Log in on-run-end with a key (invocation_id and node), or make the statement a merge on such a key.',
  safeForms: [
    {
      for: 'dbt',
      code: 'on-run-end:\n  - "merge into util.runs t using (select \'{{ invocation_id }}\' as id) s on t.id = s.id when not matched then insert (id) values (s.id)"',
    },
  ],
  prove: '`stet prove` fails the model once and runs it again (DOUBLED).',
  limits:
    'A macro that only builds text and is never run is told as well if it is called run_query or statement.',
  bad: [
    {
      why: 'a macro that inserts through run_query',
      path: 'macros/h.sql',
      lines: [3],
      code: "{% macro note(script) %}\n{% set query %}\ninsert into util.imports (at, script) values (current_timestamp, '{{ script }}')\n{% endset %}\n{% do run_query(query) %}\n{% endmacro %}\n",
    },
    {
      why: 'a post-hook that inserts',
      path: 'models/a.sql',
      lines: [1],
      code: "{{ config(materialized='table', post_hook=\"insert into audit.runs select '{{ this }}', current_timestamp\") }}\nselect 1 as a from {{ ref('s') }}\n",
    },
  ],
  fine: [
    {
      why: 'grants and statistics',
      path: 'models/a.sql',
      lines: [],
      code: "{{ config(post_hook='grant select on {{ this }} to reporter') }}\nselect 1 as a from {{ ref('s') }}\n",
    },
    {
      why: 'a delete finds nothing the second time',
      path: 'macros/h.sql',
      lines: [],
      code: '{% macro clean() %}\n{% set query %}\ndelete from {{ this }} where old\n{% endset %}\n{% do run_query(query) %}\n{% endmacro %}\n',
    },
    {
      why: 'a merge on a key',
      path: 'macros/h.sql',
      lines: [],
      code: '{% macro note() %}\n{% set query %}\nmerge into t using s on t.id = s.id when not matched then insert (id) values (s.id)\n{% endset %}\n{% do run_query(query) %}\n{% endmacro %}\n',
    },
    {
      why: 'guarded by not exists',
      path: 'macros/h.sql',
      lines: [],
      code: '{% macro note() %}\n{% set query %}\ninsert into t select 1 where not exists (select 1 from t where id = 1)\n{% endset %}\n{% do run_query(query) %}\n{% endmacro %}\n',
    },
    {
      why: 'a tool for a table that is its parameter',
      path: 'macros/t.sql',
      lines: [],
      code: '{% macro put(relation) %}\n{% set query %}\ninsert into {{ relation }} select 1\n{% endset %}\n{% do run_query(query) %}\n{% endmacro %}\n',
    },
    {
      why: 'the macro of a materialization',
      path: 'macros/materializations/m.sql',
      lines: [],
      code: '{% macro get_insert_sql(target) %}\ninsert into {{ target }} select * from s\n{% endmacro %}\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (file.language !== 'dbt' || file.context === 'test') return
    yield* inHooks(file)
    yield* inMacros(file)
  },
}

function* inHooks(file: FileFacts): Iterable<Report> {
  const { model } = file
  if (model === undefined) return
  for (const name of ['post_hook', 'pre_hook', 'post-hook', 'pre-hook']) {
    const value = model.config.values.get(name)
    const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(';') : ''
    if (!/\binsert\s+into\b/i.test(text) || /not\s+exists|on\s+conflict|except/i.test(text)) continue
    yield report(
      model.config.start,
      model.config.end,
      'The hook inserts a row with each attempt of the model',
    )
  }
}

/** `insert` in a macro that runs it itself. */
function* inMacros(file: FileFacts): Iterable<Report> {
  if (
    /materiali[sz]ation|incremental_strategies|\/adapters?\/|migrat|backfill|seed/i.test(file.path) ||
    !/\brun_query\s*\(|\bstatement\s*\(|{%-?\s*call\s+statement/.test(file.text)
  )
    return
  for (const use of file.sql) {
    const { statement } = use
    if (statement.kind !== 'insert' || statement.overwrite || statement.conflict !== undefined) continue
    // A macro whose table is its parameter is a tool; its callers decide what it is for.
    if (statement.target === undefined || statement.target.unknown || clearedBy(file, use) !== undefined)
      continue
    const text = file.text.slice(use.start, use.end)
    if (!DML.test(text) || /not\s+exists|not\s+in\b|is\s+null|except/i.test(text)) continue
    yield report(use.start, use.end, 'The macro inserts rows with each attempt of the model that calls it')
  }
}

function report(start: number, end: number, message: string): Report {
  return {
    start,
    end,
    message: `${message}: after a retry they are there twice`,
    class: 'unsafe',
    severity: 'warning',
    confidence: 'medium',
  }
}
