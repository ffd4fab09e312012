import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { hasClock } from './clock.ts'
import { watermarkWrites } from './watermark-store.ts'

const HOST_CLOCK = /\b(?:now|utcnow|today)\(|\btime\.time\(\)|new Date\(\)|Date\.now\(\)/

export const watermarkFromClock: Rule = {
  id: 'watermark-from-clock',
  title: 'Keep the highest value that was read, not the time of the run',
  anomaly: 'lost',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The position for the next run is the clock at the end of this one. Rows that were written while it ran, or that carry an older stamp, lie behind it and are never read.',
  advice: 'Store the maximum of the rows that were read, or a time that was taken before the read.',
  safeForms: [
    {
      for: 'any',
      code: "update load_state\n   set last_loaded = (select max(updated_at) from stage_orders)\n where job = 'orders';",
    },
  ],
  prove: '`stet prove` adds a row while the job runs; the next run leaves it out (LOST).',
  limits: 'A position that is kept in a file or by a function of another module is not seen.',
  bad: [
    {
      why: 'the clock is stored',
      path: 'etl/load.sql',
      lines: [2],
      code: "insert into t select * from s where at > (select last_loaded from load_state where job = 't') on conflict do nothing;\nupdate load_state set last_loaded = now() where job = 't';\n",
    },
    {
      why: 'in a variable of Airflow',
      path: 'dags/load.py',
      lines: [5],
      code: 'from airflow.models import Variable\ndef load():\n    since = Variable.get("orders_since")\n    run(since)\n    Variable.set("orders_since", datetime.now().isoformat())\n',
    },
  ],
  fine: [
    {
      why: 'the highest value that was read',
      path: 'etl/load.sql',
      lines: [],
      code: "insert into t select * from s where at > (select last_loaded from load_state where job = 't') on conflict do nothing;\nupdate load_state set last_loaded = (select max(at) from t) where job = 't';\n",
    },
    {
      why: 'nothing reads it: a note about the run',
      path: 'etl/load.sql',
      lines: [],
      code: "update load_state set last_run = now() where job = 't';\n",
    },
    {
      why: 'taken before the read',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.models import Variable\ndef load():\n    started = datetime.now()\n    since = Variable.get("orders_since")\n    run(since, started)\n    Variable.set("orders_since", started.isoformat())\n',
    },
  ],
  *check(file): Iterable<Report> {
    for (const write of watermarkWrites(file)) {
      const context = write.use?.context ?? file.contextOf(write.call?.fn)
      if (['request', 'migration', 'test', 'seed'].includes(context)) continue
      const clock = write.value === undefined ? HOST_CLOCK.test(write.source) : hasClock(write.value)
      if (!clock) continue
      yield {
        start: write.start,
        end: write.end,
        message: `The position in ${write.name} becomes the time of the run: rows written while it ran are never read`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
  },
}
