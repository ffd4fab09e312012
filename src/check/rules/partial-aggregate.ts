import type { Report } from '../finding.ts'
import { inIncremental } from '../languages/dbt.ts'
import type { Rule } from '../rule.ts'
import { isSymbol, isWord, tokenAt } from '../sql/tokens.ts'
import { watermarkFilters } from './watermark.ts'

const PERIOD =
  /(?:^|_)(?:date|day|dt|ds|week|month|quarter|year|hour|period|at|ts|time|timestamp|start|end)(?:_|$)|date$|day$/i

export const partialAggregate: Rule = {
  id: 'partial-aggregate',
  title: 'Aggregate whole groups in an incremental model',
  anomaly: 'lost',
  tier: 2,
  fix: 'advice',
  problem:
    'Only new rows are summed, and the sum is merged over the one that is there. The total of a group becomes the total of its last rows.',
  advice:
    'Read all rows of the groups that have new ones, or make the period of the filter part of the unique_key and of the group by.',
  safeForms: [
    {
      for: 'dbt',
      code: "{{ config(materialized='incremental', unique_key='shop') }}\nselect shop, sum(qty) as qty from {{ ref('stg_stock') }}\n{% if is_incremental() %}\nwhere shop in (select shop from {{ ref('stg_stock') }} where loaded_at >= (select max(loaded_at) from {{ this }}))\n{% endif %}\ngroup by shop",
    },
  ],
  prove: '`stet prove` adds a row to an old group and compares with a full refresh (LOST).',
  limits: 'A filter behind a macro or in another model is not seen.',
  bad: [
    {
      why: 'the sum of the new rows replaces the total',
      path: 'models/stock.sql',
      lines: [2],
      code: "{{ config(materialized='incremental', unique_key=['shop']) }}\nselect shop, sum(qty) as qty, max(loaded_at) as loaded_at from {{ ref('s') }}\n{% if is_incremental() %}\nwhere loaded_at > (select max(loaded_at) from {{ this }})\n{% endif %}\ngroup by 1\n",
    },
  ],
  fine: [
    {
      why: 'whole days are read and the day is in the key',
      path: 'models/stock.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key=['shop', 'sale_day']) }}\nselect shop, date(sold_at) as sale_day, sum(qty) as qty from {{ ref('s') }}\n{% if is_incremental() %}\nwhere date(sold_at) >= (select max(sale_day) from {{ this }})\n{% endif %}\ngroup by 1, 2\n",
    },
    {
      why: 'whole groups are read',
      path: 'models/stock.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='shop') }}\nselect shop, sum(qty) as qty from {{ ref('s') }}\n{% if is_incremental() %}\nwhere shop in (select shop from {{ ref('s') }} where loaded_at > (select max(loaded_at) from {{ this }}))\n{% endif %}\ngroup by 1\n",
    },
    {
      why: 'the old total is added',
      path: 'models/stock.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='shop') }}\nselect s.shop, sum(s.qty) + coalesce(max(t.qty), 0) as qty from {{ ref('s') }} s left join {{ this }} t on t.shop = s.shop\n{% if is_incremental() %}\nwhere s.loaded_at > (select max(loaded_at) from {{ this }})\n{% endif %}\ngroup by 1\n",
    },
    {
      why: 'the newest value of a group needs no older row',
      path: 'models/stock.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='shop') }}\nselect shop, max(loaded_at) as loaded_at from {{ ref('s') }}\n{% if is_incremental() %}\nwhere loaded_at > (select max(loaded_at) from {{ this }})\n{% endif %}\ngroup by 1\n",
    },
  ],
  *check(file): Iterable<Report> {
    const { model } = file
    const keys = model?.config.uniqueKey ?? []
    if (model === undefined || model.config.materialized !== 'incremental' || keys.length === 0) return
    if (/insert_overwrite|microbatch/.test(model.config.strategy ?? '')) return
    if (keys.some((key) => PERIOD.test(key) || /[({]/.test(key))) return
    for (const use of file.sql) {
      const { tokens } = use.statement
      // One mention is the watermark; another one may bring the old total in.
      const mentions = tokens.filter((token) => token.kind === 'hole' && /^this\b/.test(token.value)).length
      const filter = watermarkFilters(tokens).find(
        (one) => inIncremental(model, one.operator) && one.operator.depth === tokenAt(tokens, 0).depth,
      )
      if (
        mentions !== 1 ||
        filter === undefined ||
        !tokens.some((_, index) => isWord(tokens, index, 'group') && isWord(tokens, index + 1, 'by'))
      )
        continue
      const at = tokens.findIndex(
        (token, index) =>
          token.depth === filter.operator.depth &&
          isWord(tokens, index, 'sum', 'count', 'avg') &&
          isSymbol(tokens, index + 1, '('),
      )
      const sum = tokens[at]
      if (sum === undefined) continue
      const start = use.mapped.at(sum.start)
      yield {
        start,
        end: start + sum.text.length,
        message: `"${model.name}" merges the ${sum.value} of new rows over the one of all rows: a group that gets a row later loses what it had`,
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}
