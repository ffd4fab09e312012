import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { addsOnly, isFiltered } from './dbt-no-key.ts'

export const dbtUnfiltered: Rule = {
  id: 'dbt-unfiltered',
  title: 'Filter what an incremental model adds',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The model appends and no is_incremental() block narrows what it reads: every run adds the whole result to the table again.',
  advice: 'Add a unique_key, or filter new rows in an is_incremental() block, or make it a table.',
  safeForms: [
    {
      for: 'dbt',
      code: "{{ config(materialized='incremental', unique_key='order_id') }}\nselect * from {{ ref('stg_orders') }}\n{% if is_incremental() %}\nwhere updated_at >= (select coalesce(max(updated_at), '1900-01-01') from {{ this }})\n{% endif %}",
    },
  ],
  prove: '`stet prove` runs `dbt run` twice: the table holds all rows twice (DOUBLED).',
  limits:
    'A filter inside a macro or in a referenced view is not seen; any macro that is named like a filter counts as one.',
  bad: [
    {
      why: 'the whole source at each run',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }}\n",
    },
    {
      why: 'the whole source at each run, and delete+insert has no key to delete by',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental', incremental_strategy='delete+insert') }}\nselect * from {{ ref('s') }}\n",
    },
    {
      why: 'an incremental block that filters nothing',
      path: 'models/o.sql',
      lines: [1],
      code: "{{ config(materialized='incremental') }}\nselect * {% if is_incremental() %}, 1 as again{% endif %} from {{ ref('s') }}\n",
    },
  ],
  fine: [
    {
      why: 'a key takes the rows',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n",
    },
    {
      why: 'a filter',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }} {% if is_incremental() %} where a > (select max(a) from {{ this }}) {% endif %}\n",
    },
    {
      why: 'a filter by a macro',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }} where {{ incremental_filter('a') }}\n",
    },
    {
      why: 'a macro of the repository filters',
      path: 'models/o.sql',
      lines: [],
      beside: {
        'macros/u.sql':
          '{% macro union_new(a) %}select * from {{ a }} {% if is_incremental() %} where t > (select max(t) from {{ this }}) {% endif %}{% endmacro %}',
      },
      code: "{{ config(materialized='incremental') }}\nselect * from ({{ union_new(ref('s')) }}) x\n",
    },
    {
      why: 'nothing but a macro of a package',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\n{{ union_relations(relations=r) }}\n",
    },
    {
      why: 'slices are replaced',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='incremental', incremental_strategy='insert_overwrite') }}\nselect * from {{ ref('s') }}\n",
    },
    {
      why: 'a view',
      path: 'models/o.sql',
      lines: [],
      code: "{{ config(materialized='view') }}\nselect * from {{ ref('s') }}\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    const model = addsOnly(file)
    if (model === undefined || isFiltered(file, model, project)) return
    yield {
      start: model.config.start,
      end: model.config.end,
      message: `Each run of "${model.name}" appends its whole result again: there is neither a unique_key nor a filter`,
      class: 'unsafe',
      severity: 'error',
      confidence: 'high',
    }
  },
}
