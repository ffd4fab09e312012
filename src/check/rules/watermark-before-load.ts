import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { together } from '../sequence.ts'
import { sameTable } from '../sql/name.ts'
import { usesBeside } from '../uses-index.ts'
import { watermarkWrites } from './watermark-store.ts'

export const watermarkBeforeLoad: Rule = {
  id: 'watermark-before-load',
  title: 'Move the watermark with the rows, not before them',
  anomaly: 'lost',
  tier: 2,
  fix: 'advice',
  problem:
    'The position is stored before the rows are. When the load fails behind it, the next run starts beyond the rows that never arrived.',
  advice: 'Store the position in the transaction of the rows, or behind it.',
  safeForms: [
    {
      for: 'any',
      code: "begin;\ninsert into orders select * from stage_orders on conflict (order_no) do nothing;\nupdate load_state set last_loaded = (select max(updated_at) from stage_orders) where job = 'orders';\ncommit;",
    },
  ],
  prove: '`stet prove` cuts between the two; the rerun reads nothing (LOST).',
  limits: 'The load has to stand in the same function or file.',
  bad: [
    {
      why: 'the position goes first',
      path: 'etl/load.sql',
      lines: [1],
      code: "update load_state set last_loaded = (select max(at) from s) where job = 't';\ninsert into t select * from s where at > (select prev_loaded from load_state where job = 't') on conflict do nothing;\n",
    },
    {
      why: 'two commits of a hook',
      path: 'dags/load.py',
      lines: [5],
      code: 'from airflow.providers.postgres.hooks.postgres import PostgresHook\ndef load():\n    hook = PostgresHook("dwh")\n    since = hook.get_first("SELECT last_loaded FROM load_state")\n    hook.run("UPDATE load_state SET last_loaded = (SELECT max(at) FROM s)")\n    hook.run("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n',
    },
  ],
  fine: [
    {
      why: 'one transaction',
      path: 'etl/load.sql',
      lines: [],
      code: "begin;\nupdate load_state set last_loaded = (select max(at) from s) where job = 't';\ninsert into t select * from s where at > (select prev_loaded from load_state where job = 't') on conflict do nothing;\ncommit;\n",
    },
    {
      why: 'behind the rows',
      path: 'etl/load.sql',
      lines: [],
      code: "insert into t select * from s where at > (select last_loaded from load_state where job = 't') on conflict do nothing;\nupdate load_state set last_loaded = (select max(at) from s) where job = 't';\n",
    },
  ],
  *check(file): Iterable<Report> {
    for (const { use, name } of watermarkWrites(file)) {
      if (use === undefined || ['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      // Constants of a module: in which order they run is not seen.
      if (use.origin === 'text' && use.call === undefined) continue
      const loads = usesBeside(file, use.fn, use.origin).filter(
        (one) =>
          ['insert', 'merge', 'copy', 'load'].includes(one.statement.kind) &&
          !sameTable(one.statement.target, use.statement.target),
      )
      const after = loads.find((one) => one.order > use.order)
      if (after === undefined || loads.some((one) => one.order < use.order)) continue
      const relation = together(use, after)
      if (relation === 'yes') continue
      yield {
        start: use.start,
        end: use.end,
        message: `The position in ${name} is stored before the rows are: if the load behind it fails, they are never read again`,
        class: 'unsafe',
        severity: 'error',
        confidence: relation === 'no' || use.origin === 'file' ? 'medium' : 'low',
      }
    }
  },
}
