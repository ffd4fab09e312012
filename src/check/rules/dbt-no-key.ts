import type { FileFacts, ProjectFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import { type DbtModel, inIncremental } from '../languages/dbt.ts'
import type { Rule } from '../rule.ts'
import { isLogTable } from '../sequence.ts'
import type { Token } from '../sql/lexer.ts'
import { nameFromText } from '../sql/name.ts'
import { findWords, hasWords, isWord } from '../sql/tokens.ts'
import { hasClock } from './clock.ts'
import { watermarkFilters } from './watermark.ts'

/** Strategies that replace a slice instead of adding rows. `delete+insert` is none: without a key it deletes nothing. */
const REPLACES =
  /^(?:insert_overwrite|microbatch|replace_where|dbt_date_range_replace|insert_overwrite_table|scd2|table_overwrite|dynamic_insert_overwrite|insert_by_period|static_insert_overwrite|delete_insert)$/

/** An incremental model that only ever adds rows; undefined where something replaces or guards them. */
export function addsOnly(file: FileFacts): DbtModel | undefined {
  const { model } = file
  if (model === undefined || file.context === 'test') return undefined
  const { config } = model
  if (config.materialized !== 'incremental' || config.opaque || model.snapshot) return undefined
  if (config.uniqueKey === undefined || config.uniqueKey.length > 0) return undefined
  if (REPLACES.test(config.strategy ?? '') || config.values.has('incremental_predicates')) return undefined
  // BigQuery and Spark replace partitions where the strategy is set for a whole project by a variable.
  if (config.values.has('incremental_strategy') && config.strategy === undefined) return undefined
  if (/\bdelete\s+from\s+\{\{\s*this/i.test(file.text)) return undefined
  // ClickHouse keeps one row of each sorting key itself.
  if (/replacing\w*mergetree/i.test(String(config.values.get('engine') ?? ''))) return undefined
  if (config.values.get('full_refresh') === true || config.values.get('enabled') === false) return undefined
  const tokens = file.sql.flatMap((use) => [...use.statement.tokens])
  return guarded(tokens, model) ? undefined : model
}

/**
 * Every filter of the incremental run is strictly beyond what the model holds. A plain rerun then adds nothing; what
 * still doubles is a row that comes again with a later stamp, and a filter that is widened one day.
 */
function onlyBeyond(file: FileFacts): boolean {
  const filters = watermarkFilters(file.sql.flatMap((use) => use.statement.tokens)).filter((filter) =>
    filter.source.some((token) => token.kind === 'hole' && /^this\b/.test(token.value)),
  )
  return (
    filters.length > 0 &&
    filters.every((filter) => filter.operator.value === '>' && !filter.lookback && !filter.orBranch)
  )
}

/** An anti-join on `{{ this }}`, or the clock compared with the last snapshot. */
function guarded(tokens: readonly Token[], model: DbtModel): boolean {
  const readsThis = tokens.some((token) => token.kind === 'hole' && /^this\b/.test(token.value))
  if (!readsThis) return false
  const inside = tokens.filter((token) => inIncremental(model, token))
  const scope = inside.length > 0 ? inside : tokens
  if (hasWords(scope, 'not', 'exists') || hasWords(scope, 'not', 'in') || hasWords(scope, 'except'))
    return true
  const filters = watermarkFilters(tokens)
  if (filters.some((filter) => filter.leftIsClock)) return true
  const antiJoin =
    hasWords(scope, 'left') &&
    (findWords(scope, ['is', 'null']) >= 0 || findWords(tokens, ['is', 'null']) >= 0)
  if (!antiJoin) return false
  // A join partner that holds only rows beyond the maximum is always empty.
  const empty = filters.some(
    (filter) =>
      filter.operator.depth > 0 &&
      filter.source.some((token) => /^this\b/.test(token.value)) &&
      readsThisBefore(tokens, filter.operator),
  )
  return !empty
}

function readsThisBefore(tokens: readonly Token[], operator: Token): boolean {
  return tokens.some(
    (token) =>
      token.kind === 'hole' &&
      /^this\b/.test(token.value) &&
      token.depth === operator.depth &&
      token.start < operator.start &&
      operator.start - token.start < 200,
  )
}

/** A model that is nothing but a call of a macro: what it reads and how is not seen here. */
function isOnlyMacro(file: FileFacts): boolean {
  return !file.sql.some((use) =>
    use.statement.tokens.some((token) => token.kind === 'word' && token.value === 'select'),
  )
}

/** Whether an incremental run reads less than the whole source. */
export function isFiltered(file: FileFacts, model: DbtModel, project: ProjectFacts): boolean {
  if (model.incremental.length === 0) {
    const all = file.sql.flatMap((use) => use.statement.tokens)
    const called = all.flatMap((token) =>
      token.kind === 'hole' ? (/^(?:\w+\.)?(\w+)\s*\(/.exec(token.value)?.[1] ?? []) : [],
    )
    if (called.some((name) => project.incrementalMacros.has(name))) return true
    // A model that is nothing but a call of a macro shows nothing of its query.
    if (!all.some((token) => token.kind === 'word' && token.value === 'select')) return true
    const byMacro = all.some(
      (token) =>
        token.kind === 'hole' &&
        /incremental|filter|lookback|since|watermark|event_time/i.test(token.value) &&
        !/^(?:config|ref|source)\b/.test(token.value),
    )
    return (
      byMacro ||
      all.some(
        (token, index) =>
          token.kind === 'hole' && /^this\b/.test(token.value) && isWord(all, index - 1, 'from', 'join'),
      )
    )
  }
  const tokens = file.sql
    .flatMap((use) => use.statement.tokens)
    .filter((token) => inIncremental(model, token))
  return (
    tokens.some(
      (token) =>
        (token.kind === 'word' &&
          ['where', 'and', 'having', 'qualify', 'join', 'limit', 'between'].includes(token.value)) ||
        token.kind === 'hole',
    ) || hasClock(tokens)
  )
}

export const dbtNoKey: Rule = {
  id: 'dbt-no-key',
  title: 'Give an incremental model a unique_key',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Without a unique_key dbt appends what the query returns. Rows that are read twice, by a rerun, a look-back or a full source, are in the table twice.',
  advice:
    "Add unique_key to the config, or replace whole slices with incremental_strategy='insert_overwrite' or 'microbatch'.",
  safeForms: [
    { for: 'dbt, by key', code: "{{ config(materialized='incremental', unique_key='order_id') }}" },
    {
      for: 'dbt on BigQuery, by slice',
      code: "{{ config(\n  materialized='incremental',\n  incremental_strategy='insert_overwrite',\n  partition_by={'field': 'day', 'data_type': 'date'}\n) }}",
    },
  ],
  prove: '`stet prove` runs `dbt run` twice and compares the table (DOUBLED).',
  limits:
    'A key that a macro sets is not seen: where the configuration goes through a macro or a variable, nothing is said.',
  bad: [
    {
      why: 'a filter, but no key',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ source('shop', 'orders') }}\n{% if is_incremental() %}\nwhere updated_at >= (select max(updated_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'only a strict filter stands between a rerun and doubles',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ source('shop', 'orders') }}\n{% if is_incremental() %}\nwhere updated_at > (select max(updated_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'delete+insert deletes by the key: without one it only inserts',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental', incremental_strategy='delete+insert') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere d >= current_date - 3\n{% endif %}\n",
    },
    {
      why: 'incremental by the folder of dbt_project.yml',
      path: 'models/ev/o.sql',
      lines: [1],
      beside: {
        'dbt_project.yml': 'name: shop\nmodels:\n  shop:\n    ev:\n      +materialized: incremental\n',
      },
      code: "select * from {{ ref('s') }}\n{% if is_incremental() %}where d >= (select max(d) from {{ this }}){% endif %}\n",
    },
    {
      why: 'an anti-join that never matches',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental') }}\nselect p.* from {{ source('s', 'pages') }} p\n{% if is_incremental() %}\nleft join (select distinct id as k from {{ this }} where received_at > (select max(received_at) from {{ this }})) a on p.id = a.k\n{% endif %}\n{% if is_incremental() %}\nwhere p.received_at > (select max(received_at) from {{ this }}) and a.k is null\n{% endif %}\n",
    },
  ],
  fine: [
    {
      why: 'ClickHouse keeps one row of each sorting key',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', incremental_strategy='append', engine='ReplacingMergeTree()', order_by='id') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'a log of what was decided is only ever added to',
      path: 'models/resolution_log.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'a key',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'delete+insert with its key',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'the key is in the properties',
      path: 'models/o.sql',
      lines: [],
      beside: { 'models/o.yml': 'models:\n  - name: o\n    config:\n      unique_key: id\n' },
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'the key is in dbt_project.yml',
      path: 'models/o.sql',
      lines: [],
      beside: { 'dbt_project.yml': 'name: shop\nmodels:\n  shop:\n    +unique_key: id\n' },
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a >= (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'partitions are replaced',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by={'field': 'd'}) }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where d >= current_date - 3 {% endif %}\n",
    },
    {
      why: 'not exists on the model itself',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config({'materialized': 'incremental'}) }}\nselect * from {{ ref('s') }} s {% if is_incremental() %} where not exists (select 1 from {{this}} where id = s.id) {% endif %}\n",
    },
    {
      why: 'a second run of the day adds nothing',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect current_date as d, * from {{ ref('s') }} {% if is_incremental() %} where current_date > (select max(d) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'the configuration comes from a macro',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(**incremental_defaults()) }}\nselect * from {{ ref('s') }}\n",
    },
    {
      why: 'a table is built anew',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='table') }}\nselect * from {{ ref('s') }}\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    const model = addsOnly(file)
    if (model === undefined || !isFiltered(file, model, project) || isOnlyMacro(file)) return
    const strict = onlyBeyond(file)
    const log = isLogTable(nameFromText(model.name), project)
    yield {
      start: model.config.start,
      end: model.config.end,
      message: strict
        ? `"${model.name}" appends, and only its strict filter keeps a rerun from doubling rows: one that the source sends again later, or a look-back, is in the table twice`
        : `Each run of "${model.name}" appends what it reads: without a unique_key a row that is read twice is in the table twice`,
      class: log ? 'info' : 'unsafe',
      severity: log ? 'info' : strict ? 'warning' : 'error',
      confidence: log ? 'low' : strict ? 'medium' : model.incremental.length > 0 ? 'high' : 'medium',
    }
  },
}
