import { isRerun } from '../context.ts'
import type { FileFacts, SqlUse } from '../facts.ts'
import type { Fix, Report } from '../finding.ts'
import { inIncremental } from '../languages/dbt.ts'
import type { Rule } from '../rule.ts'
import { readsTable } from '../sequence.ts'
import { type WatermarkFilter, watermarkFilters } from './watermark.ts'

/** A number that only grows, one row each: nothing can come late with the same value. */
const UNIQUE_CURSOR =
  /(?:^|_)(?:id|seq|sequence|offset|lsn|block|block_number|height|ledger|ledger_sequence|version|rowid|checkpoint|slot|epoch|round|scn|xid|position|nr|no|number)$/i
const DAY_COLUMN =
  /^(?:data|mes|ano|dia|fecha)(?:_|$)|(?:^|_)(?:year|quarter|dia|mes|ano|fecha|datum|jour|monat|jahr)$|(?:^|_)(?:date|day|dt|ds|week|month|partition|partition_date|logdate|datekey|date_key)$|date$|^_?partitiondate$/i

export const strictWatermark: Rule = {
  id: 'strict-watermark',
  title: 'Read a little back behind the watermark',
  anomaly: 'lost',
  tier: 1,
  fix: 'auto',
  problem:
    'Only rows beyond the highest stamp in the target are read. A row that arrives late, or with the very same stamp, is never read. On an empty table the highest stamp is NULL and nothing is read at all.',
  advice:
    'Read from the watermark minus a look-back, with >=, with coalesce for the empty table, and a unique_key (or merge) that takes the rows read twice.',
  safeForms: [
    {
      for: 'dbt',
      code: "{{ config(materialized='incremental', unique_key='event_id') }}\nselect * from {{ ref('stg_event') }}\n{% if is_incremental() %}\nwhere loaded_at >= (select coalesce(max(loaded_at), '1900-01-01') from {{ this }}) - interval '1 day'\n{% endif %}",
    },
  ],
  prove: '`stet prove` adds a row with an older stamp between two runs; it never arrives (LOST).',
  limits:
    'Whether stamps are unique and arrive in order is known to nobody but the source; columns that look like a growing number or a closed day are left out.',
  bad: [
    {
      why: 'strictly beyond, no look-back',
      path: 'models/ev.sql',
      lines: [4],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere loaded_at > (select max(loaded_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: '>= without a key adds the last instant again, and NULL stops an empty table',
      path: 'models/ev.sql',
      lines: [4],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere updated_at >= (select max(updated_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: '>= with delete+insert, which has no key to delete by',
      path: 'models/ev.sql',
      lines: [4],
      code: "{{ config(materialized='incremental', incremental_strategy='delete+insert') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere updated_at >= (select max(updated_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'in an insert',
      path: 'etl/ev.sql',
      lines: [2],
      code: 'insert into ev select * from s\nwhere s.loaded_at > (select max(loaded_at) from ev);\n',
    },
  ],
  fine: [
    {
      why: 'a day, in another language',
      path: 'models/firms.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ source('s', 'firms') }}\n{% if is_incremental() %}\nwhere data > (select max(data) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'whole months are closed',
      path: 'models/fleet.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect * from {{ source('s', 'fleet') }}\n{% if is_incremental() %}\nwhere date(cast(year as int64), cast(month as int64), 1)\n    > (select max(date(cast(year as int64), cast(month as int64), 1)) from {{ this }})\n{% endif %}\n",
    },
    {
      why: '>= with a unique_key reads the last instant again',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere created_at >= (select max(created_at) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'a look-back',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere created_at > (select max(created_at) - interval '3 days' from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'a look-back by a macro',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere created_at > (select {{ dbt.dateadd('day', -3, 'max(created_at)') }}, max(1) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'a number that only grows',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere ledger_sequence > (select max(ledger_sequence) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'a closed day',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere event_date > (select max(event_date) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'a guard of a snapshot by the clock',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental') }}\nselect current_date as day, * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere current_date > (select max(day) from {{ this }})\n{% endif %}\n",
    },
    {
      why: 'another way in for late rows',
      path: 'models/ev.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ ref('s') }}\n{% if is_incremental() %}\nwhere (created_at > (select max(created_at) from {{ this }}) or id in (select id from {{ ref('late') }}))\n{% endif %}\n",
    },
    {
      why: 'not about the target',
      path: 'etl/ev.sql',
      lines: [],
      code: 'insert into ev select * from s where s.price > (select max(price) from limits) on conflict do nothing;\n',
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      if (['request', 'migration', 'test'].includes(use.context)) continue
      for (const filter of watermarkFilters(use.statement.tokens)) {
        const found = judge(filter, use, file)
        if (found !== undefined) yield found
      }
    }
  },
}

function judge(filter: WatermarkFilter, use: SqlUse, file: FileFacts): Report | undefined {
  const { model } = file
  const { target } = use.statement
  const ofThis = filter.source.some((token) => token.kind === 'hole' && /^this\b/.test(token.value))
  if (
    model === undefined
      ? target === undefined || !readsTable(filter.source, target)
      : !ofThis || !inIncremental(model, filter.operator)
  )
    return undefined
  if (filter.leftIsClock || filter.lookback || filter.orBranch || filter.column === undefined)
    return undefined
  const strict = filter.operator.value === '>'
  const keyed =
    model === undefined
      ? use.statement.conflict !== undefined || use.statement.kind === 'merge'
      : model.config.uniqueKey === undefined || model.config.uniqueKey.length > 0
  const replaces = model !== undefined && /insert_overwrite|microbatch/.test(model.config.strategy ?? '')
  if (!strict && (keyed || replaces || filter.coalesced)) return undefined
  // A macro is used by models with and without a key.
  if (!strict && model !== undefined && model.config.materialized !== 'incremental') return undefined
  const quiet =
    UNIQUE_CURSOR.test(filter.column) ||
    DAY_COLUMN.test(filter.column) ||
    filter.castToDate ||
    !isRerun(use.context === 'unknown' ? 'script' : use.context)
  const start = use.mapped.at(filter.start)
  const fix = strict && keyed && model !== undefined ? atLeastFix(filter, use) : undefined
  return {
    start,
    end: use.mapped.at(filter.end - 1) + 1,
    message: strict
      ? `Rows that come late, or with the same "${filter.column}" as the last one, are never read`
      : `The rows of the last "${filter.column}" are read again by each run and nothing takes them for the same; on an empty table the maximum is NULL and nothing is read`,
    class: quiet ? 'info' : 'unsafe',
    severity: quiet ? 'info' : 'warning',
    confidence: quiet ? 'low' : strict ? 'high' : 'medium',
    ...(fix === undefined ? {} : { fix }),
  }
}

/** With a unique_key the rows of the last instant are met, so `>=` reads them without doubling. */
function atLeastFix(filter: WatermarkFilter, use: SqlUse): Fix {
  const at = use.mapped.at(filter.operator.start)
  return {
    title: 'Read the last instant again (>=)',
    safe: true,
    edits: [{ start: at, end: at + 1, text: '>=' }],
  }
}
