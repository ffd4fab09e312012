import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'
import { isWord, type Tokens, tokenAt } from '../sql/tokens.ts'

/** A template expression that names the day of the run. */
const RUN_DAY =
  /\bds\b|ds_nodash|execution_date|logical_date|data_interval|partition_date|run_date|process(?:ing)?_date|\b(?:date|day|dt)\b|yesterday/i

export const overwriteTooWide: Rule = {
  id: 'overwrite-too-wide',
  title: 'Overwrite the slice of the run, not the table',
  anomaly: 'lost',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The query reads one day, and the whole table is replaced by it. A backfill of an old day leaves that day and nothing else.',
  advice:
    'Name the partition, write to `table$yyyymmdd`, or use replace where and dynamic partition overwrite.',
  safeForms: [
    {
      for: 'Hive, Spark',
      code: "insert overwrite table orders partition (day = '{{ ds }}')\nselect id, amount from stage where day = '{{ ds }}';",
    },
    {
      for: 'Delta',
      code: "insert into orders replace where day = '{{ ds }}'\nselect * from stage where day = '{{ ds }}';",
    },
  ],
  prove: '`stet prove` runs two days one after the other; the first is gone (LOST).',
  limits: 'Only a query that picks a single day of the run is told from a snapshot of all rows.',
  bad: [
    {
      why: 'one day replaces the table',
      path: 'etl/load.hql',
      lines: [1],
      code: "insert overwrite table orders\nselect id, amount from stage where day = '${ds}';\n",
    },
    {
      why: 'WRITE_TRUNCATE of a query over one day',
      path: 'dags/load.py',
      lines: [2],
      code: 'from airflow.providers.google.cloud.operators.bigquery import BigQueryOperator\nload = BigQueryOperator(task_id="x", sql="select * from s where day = \'{{ ds }}\'", destination_dataset_table="p.d.t", write_disposition="WRITE_TRUNCATE")\n',
    },
  ],
  fine: [
    {
      why: 'the partition is named',
      path: 'etl/load.hql',
      lines: [],
      code: "insert overwrite table orders\npartition (day)\nselect id, amount, day from stage where day = '${ds}';\n",
    },
    {
      why: 'partitions are overwritten one by one',
      path: 'etl/load.hql',
      lines: [],
      code: "set spark.sql.sources.partitionOverwriteMode=dynamic;\ninsert overwrite table orders select id, amount, day from stage where day = '${ds}';\n",
    },
    {
      why: 'a snapshot of all up to that day',
      path: 'etl/load.hql',
      lines: [],
      code: "insert overwrite table totals select id, sum(amount) from orders where day <= '${ds}' group by id;\n",
    },
    {
      why: 'a work table holds one day at a time',
      path: 'etl/load.hql',
      lines: [],
      code: "insert overwrite table stage_orders select * from raw where day = '${ds}';\n",
    },
    {
      why: 'the table of the day',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.providers.google.cloud.operators.bigquery import BigQueryOperator\nload = BigQueryOperator(task_id="x", sql="select * from s where day = \'{{ ds }}\'", destination_dataset_table="p.d.t${{ ds_nodash }}", write_disposition="WRITE_TRUNCATE")\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (
      /partitionOverwriteMode["',\s=:]*dynamic|dynamic\.partition(?:\.mode)?\s*=\s*(?:true|nonstrict)/i.test(
        file.text,
      )
    )
      return
    for (const use of file.sql) {
      const { statement } = use
      if (statement.kind !== 'insert' || !statement.overwrite || statement.partition) continue
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      if (isOfOneRun(statement.target?.text ?? '') || !picksOneDay(statement.query)) continue
      yield {
        start: use.start,
        end: use.end,
        message: `One day is read and all of ${nameOf(statement.target)} is replaced by it: a run of another day loses this one`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
    const { host } = file
    for (const call of host?.language === 'python' ? host.calls : []) {
      const disposition = call.named.get('write_disposition')
      const target = call.named.get('destination_dataset_table')
      const query = call.named.get('sql') ?? call.named.get('bql')
      if (host === undefined || disposition === undefined || target === undefined || query === undefined)
        continue
      const sql = host.textOf(query)
      const name = host.textOf(target)
      if (!/WRITE_TRUNCATE/.test(host.source(disposition)) || sql === undefined || name === undefined)
        continue
      if (
        isOfOneRun(name) ||
        !/=\s*['"]?\{\{\s*(?:ds|macros\.ds_add)[^}]*\}\}/.test(sql) ||
        /[<>]=?\s*['"]?\{\{/.test(sql)
      )
        continue
      yield {
        start: call.start,
        end: call.end,
        message: `One day is read and all of "${name}" is replaced by it: a run of another day loses this one`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
  },
}

/** A name that holds the day, or that of a work table. */
function isOfOneRun(name: string): boolean {
  return /[$⟦{]|(?:^|[._])(?:stg|stage|staging|tmp|temp|work|scratch|daily_snapshot|latest|current)(?:[._]|$)/i.test(
    name,
  )
}

/** `day = '{{ ds }}'` and no wider comparison with the day of the run. */
function picksOneDay(query: Tokens): boolean {
  let picks = false
  for (let index = 2; index < query.length; index += 1) {
    const token = tokenAt(query, index)
    const isDay =
      (token.kind === 'hole' || (token.kind === 'string' && /[{$⟦]/.test(token.value))) &&
      RUN_DAY.test(token.value)
    if (!isDay) continue
    const before = tokenAt(query, index - 1).value
    if (['<', '<=', '>', '>=', 'between', 'and'].includes(before) || isWord(query, index - 1, 'in'))
      return false
    if (before === '=' && tokenAt(query, index - 2).kind === 'word') picks = true
  }
  return picks
}
