import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { DbtModel } from '../languages/dbt.ts'
import type { Rule } from '../rule.ts'

const VOLATILE =
  /\b(?:current_date|current_timestamp|current_time|getdate|sysdate|now\s*\(|gen_random_uuid|uuid_string|generate_uuid|newid|uuid\s*\(|random\s*\(|rand\s*\(|row_number)/i
const KEY_ALIAS = /(?:^|_)(?:id|key|sk|pk|hash|uid)$/i

export const dbtVolatileKey: Rule = {
  id: 'dbt-volatile-key',
  title: 'Build a unique_key from source columns only',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The key holds the clock, a random value or a row number, so a row of the source has another key in the next run. Nothing is met, and the row is added again.',
  advice:
    'Make the key of columns of the source; a date that belongs to it should come from the data or from a variable of the run.',
  safeForms: [{ for: 'dbt', code: "{{ dbt_utils.generate_surrogate_key(['sfid', 'valid_from']) }} as id" }],
  prove: '`stet prove` runs the model on two days over the same rows (DOUBLED).',
  limits: 'A snapshot a day may be meant so; where a filter lets the day in only once, nothing is said.',
  bad: [
    {
      why: 'the clock in the surrogate key',
      path: 'models/a.sql',
      lines: [2],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect {{ dbt_utils.surrogate_key(['current_date', 'sfid']) }} as id, * from {{ ref('s') }}\n",
    },
    {
      why: 'a random key',
      path: 'models/a.sql',
      lines: [2],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect uuid_string() as id, * from {{ ref('s') }}\n",
    },
    {
      why: 'the clock as unique_key',
      path: 'models/a.sql',
      lines: [1],
      code: "{{ config(materialized='incremental', unique_key='current_date') }}\nselect * from {{ ref('s') }}\n",
    },
  ],
  fine: [
    {
      why: 'columns of the source',
      path: 'models/a.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect {{ dbt_utils.surrogate_key(['sfid', 'valid_from']) }} as id, current_timestamp as loaded_at from {{ ref('s') }}\n",
    },
    {
      why: 'a random value beside the key',
      path: 'models/a.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect id, uuid_string() as trace from {{ ref('s') }}\n",
    },
    {
      why: 'a position within its parent',
      path: 'models/a.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key=['tx', 'sub_id']) }}\nselect tx, row_number() over (partition by tx order by evt_index) as sub_id from {{ ref('s') }}\n",
    },
    {
      why: 'a table is built anew',
      path: 'models/a.sql',
      lines: [],
      code: "{{ config(materialized='table') }}\nselect uuid_string() as id, * from {{ ref('s') }}\n",
    },
  ],
  *check(file): Iterable<Report> {
    const { model } = file
    if (model === undefined || file.context === 'test') return
    if (model.config.materialized !== 'incremental' && !model.snapshot) return
    const key = model.config.uniqueKey ?? []
    if (key.length === 0) return
    const direct = key.find((column) => VOLATILE.test(column))
    if (direct !== undefined) {
      yield report(model.config.start, model.config.end, direct, 'high')
      return
    }
    yield* definitions(file, model, key)
  },
}

/** The expression whose alias is the key. */
function* definitions(file: FileFacts, model: DbtModel, key: readonly string[]): Iterable<Report> {
  for (const column of key) {
    if (!/^\w+$/.test(column)) continue
    if (!KEY_ALIAS.test(column) && key.length > 1) continue
    const pattern = new RegExp(
      `((?:\\{\\{[^{}]*\\}\\}|[\\w.]+\\s*\\((?:[^()]|\\([^()]*\\))*\\)(?:\\s*over\\s*\\([^()]*\\))?|current_\\w+)(?:::\\w+)?)\\s+as\\s+["\`]?${column}\\b`,
      'gi',
    )
    for (const match of file.text.matchAll(pattern)) {
      const expression = match[1] ?? ''
      // A position within its parent is part of a key made of both.
      if (key.length > 1 && /row_number[\s\S]*partition\s+by/i.test(expression)) continue
      if (!VOLATILE.test(expression) || match.index < model.config.end) continue
      yield report(match.index, match.index + match[0].length, column, 'medium')
    }
  }
}

function report(start: number, end: number, column: string, confidence: 'high' | 'medium'): Report {
  return {
    start,
    end,
    message: `The key "${column}" changes with the run: a row of the source has another key the next time and is added again`,
    class: 'unsafe',
    severity: 'error',
    confidence,
  }
}
