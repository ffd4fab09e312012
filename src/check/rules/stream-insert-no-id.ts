import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'

export const streamInsertNoId: Rule = {
  id: 'stream-insert-no-id',
  title: 'Give streamed rows an id',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'A streaming insert that is sent again after a lost answer adds its rows again. Only an id for each row lets BigQuery drop the second copy, and only for about a minute.',
  advice: 'Pass row_ids made of the natural key, or load by a job with a fixed job id and merge.',
  safeForms: [
    {
      for: 'Python',
      code: 'client.insert_rows_json(table, rows, row_ids=[row["order_no"] for row in rows])',
    },
  ],
  prove: '`stet prove` drops the answer of the insert and lets the job retry (DOUBLED).',
  limits: 'A row id protects against a retry within a minute, not against a rerun of the job.',
  bad: [
    {
      why: 'rows without ids',
      path: 'jobs/s.py',
      lines: [3],
      code: 'from google.cloud import bigquery\ndef f(client, rows):\n    client.insert_rows_json("d.t", rows)\n',
    },
    {
      why: 'in Node',
      path: 'jobs/s.ts',
      lines: [3],
      code: 'import { BigQuery } from "@google-cloud/bigquery";\nconst bq = new BigQuery();\nexport const f = (rows: object[]) => bq.dataset("d").table("t").insert(rows);\n',
    },
  ],
  fine: [
    {
      why: 'ids of the natural key',
      path: 'jobs/s.py',
      lines: [],
      code: 'from google.cloud import bigquery\ndef f(client, rows):\n    client.insert_rows_json("d.t", rows, row_ids=[r["id"] for r in rows])\n',
    },
    {
      why: 'switched off on purpose',
      path: 'jobs/s.py',
      lines: [],
      code: 'from google.cloud import bigquery\ndef f(client, rows):\n    client.insert_rows_json("d.t", rows, row_ids=[None] * len(rows))\n',
    },
    {
      why: 'raw rows with insertId',
      path: 'jobs/s.ts',
      lines: [],
      code: 'import { BigQuery } from "@google-cloud/bigquery";\nconst bq = new BigQuery();\nexport const f = (rows: any[]) => bq.dataset("d").table("t").insert(rows.map((r) => ({ insertId: r.id, json: r })), { raw: true });\n',
    },
    {
      why: 'another insert',
      path: 'jobs/s.ts',
      lines: [],
      code: 'export const f = (list: any, x: number) => list.table("t").insert(x);\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined) return
    for (const call of host.calls) {
      const context = file.contextOf(call.fn)
      if (context === 'test' || context === 'migration') continue
      const python =
        host.language === 'python' &&
        /^(?:insert_rows_json|insert_rows|insert_rows_from_dataframe|insert_all)$/.test(call.name) &&
        /bigquery|bq/i.test(host.imports + call.receiver) &&
        !call.named.has('row_ids') &&
        !call.named.has('insert_ids')
      const node =
        host.language === 'typescript' &&
        call.name === 'insert' &&
        /\.table\(\)$/.test(call.receiver) &&
        /@google-cloud\/bigquery/.test(host.text) &&
        !/insertId/.test(host.source(call.node))
      // Airflow's hook has a method of the same name that writes plain INSERT statements.
      if (!python && !node) continue
      if (/hook/i.test(call.receiver) && call.name === 'insert_rows') continue
      yield {
        start: call.start,
        end: call.end,
        message:
          'The rows are streamed without an id: sent again after a lost answer, they are in the table twice',
        class: context === 'request' ? 'info' : 'unsafe',
        severity: context === 'request' ? 'info' : 'warning',
        confidence: 'high',
      }
    }
  },
}
