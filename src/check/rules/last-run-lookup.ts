import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'

export const lastRunLookup: Rule = {
  id: 'last-run-lookup',
  title: 'Take the range of a run from the run itself',
  anomaly: 'moved',
  tier: 1,
  fix: 'suggestion',
  problem:
    "The newest run is another one each time. When an old run is repeated it finds today's, and reads or writes another range than the first time.",
  advice: 'Use data_interval_start and data_interval_end of the run itself.',
  safeForms: [
    {
      for: 'Airflow',
      code: 'def load(data_interval_start, data_interval_end):\n    extract(data_interval_start, data_interval_end)',
    },
  ],
  prove: '`stet prove` repeats an old run after a newer one: it loads another range (NONDETERMINISTIC).',
  limits: 'A query for the newest run in a table of the project is not seen.',
  bad: [
    {
      why: 'the newest run gives the range',
      path: 'dags/m.py',
      lines: [3],
      code: 'from airflow.models import DagRun\ndef since(dag, time):\n    last = dag.get_last_dagrun()\n    return time - last.execution_date\n',
    },
  ],
  fine: [
    {
      why: 'the interval of the run itself',
      path: 'dags/m.py',
      lines: [],
      code: 'from airflow.decorators import task\ndef since(data_interval_start):\n    return data_interval_start\n',
    },
    {
      why: 'monitoring',
      path: 'dags/monitor.py',
      lines: [],
      code: 'from airflow.models import DagRun\ndef check_alive(dag):\n    last = dag.get_last_dagrun()\n    print(last.state)\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test') return
    for (const call of host.calls) {
      if (
        !/^(?:get_last_dagrun|get_latest_execution_date|get_last_ti|find_latest_run|get_previous_dagrun|get_latest_runs?)$/.test(
          call.name,
        )
      )
        continue
      const around = `${file.path} ${call.fn?.name ?? ''}`
      if (/monitor|alert|health|notify|sensor|watch|status|callback/i.test(around)) continue
      yield {
        start: call.start,
        end: call.end,
        message: 'The range comes from whichever run is newest: an old run that is repeated gets another one',
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}
