import { clearedByHelper } from '../cleared-by-helper.ts'
import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostFacts } from '../languages/host.ts'
import type { ShellCommand } from '../languages/shell.ts'
import { ancestor, child } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { clearedBy, isStagingTable, isTemporary, madeAnewElsewhere, nameOf } from '../sequence.ts'
import { hasWords, isWord } from '../sql/tokens.ts'
import { type AppendCall, appendCalls } from './append-calls.ts'

const APPENDS = /^(?:['"]?|.*\.)(?:WRITE_APPEND)['"]?$/

export const appendLoad: Rule = {
  id: 'append-load',
  title: 'Load a slice by replacing it, not by appending',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The bulk load adds the rows of the file to the table. A retry of the task, or a second run of the day, adds them again: bulk loads know no key.',
  advice:
    'Write to the partition of the day with WRITE_TRUNCATE (table$20250203), or load into an emptied stage table and merge.',
  safeForms: [
    {
      for: 'BigQuery',
      code: 'bq load --replace dataset.orders\\$20250203 gs://bucket/orders/2025-02-03/*.json',
    },
    {
      for: 'Redshift',
      code: "begin;\ncreate temp table stage (like orders);\ncopy stage from 's3://bucket/orders/2025-02-03/' iam_role default;\ndelete from orders using stage where orders.order_no = stage.order_no;\ninsert into orders select * from stage;\ncommit;",
    },
    {
      for: 'Airflow',
      code: 'GCSToBigQueryOperator(\n    destination_project_dataset_table="shop.orders${{ ds_nodash }}",\n    write_disposition="WRITE_TRUNCATE",\n)',
    },
  ],
  prove:
    '`stet prove` runs the load twice and cuts it before its answer arrives; the rows are there twice (DOUBLED).',
  limits: 'Whether another task deletes the slice first is not seen.',
  bad: [
    {
      why: 'an operator that appends',
      path: 'dags/load.py',
      lines: [6],
      code: 'from airflow.providers.google.cloud.transfers.gcs_to_bigquery import GCSToBigQueryOperator\ndef build(dag):\n    return GCSToBigQueryOperator(\n        task_id="load",\n        destination_project_dataset_table="p.d.t",\n        write_disposition="WRITE_APPEND",\n    )\n',
    },
    {
      why: 'Redshift COPY',
      path: 'dags/stage.py',
      lines: [3],
      code: "from airflow.hooks.postgres_hook import PostgresHook\nclass Stage:\n    copy_query = \"COPY {} FROM '{}' ACCESS_KEY_ID '{}'\"\n",
    },
    {
      why: 'bq load without --replace',
      path: 'scripts/load.sh',
      lines: [2],
      code: '#!/bin/bash\nbq load --source_format=CSV shop.orders gs://b/orders.csv\n',
    },
    {
      why: 'load data',
      path: 'etl/load.sql',
      lines: [1],
      code: "load data local infile 'x.csv' into table orders;\n",
    },
    {
      why: 'a job configuration',
      path: 'jobs/bq.py',
      lines: [3],
      code: 'from google.cloud import bigquery\ndef load(client):\n    config = bigquery.LoadJobConfig(write_disposition=bigquery.WriteDisposition.WRITE_APPEND)\n    client.load_table_from_uri("gs://x", "d.t", job_config=config).result()\n',
    },
    {
      why: 'an operator of the repository that is told to append',
      path: 'dags/events.py',
      lines: [6],
      code: 'from airflow import DAG\nfrom plugins.spark import SparkSQLOperator\n\nappend = SparkSQLOperator(\n    task_id="append_events", sql="select * from staging.events",\n    mode="WRITE_APPEND", output_table="events",\n)\n',
    },
  ],
  fine: [
    {
      why: 'how many records a file of MonetDB has, and a table with a key',
      path: 'etl/load.sql',
      lines: [],
      beside: { 'etl/schema.sql': 'create table clinic.patients (row_no int primary key, name text);\n' },
      code: "copy 46520 offset 2 records into clinic.patients from '/in/patients.csv' using delimiters ',';\n",
    },
    {
      why: 'help that begins with the word',
      path: 'jobs/cli.py',
      lines: [],
      code: 'import click\nfrom google.cloud import bigquery\n@click.command("copy", help="""Copy a day\'s rows from the live tables to the stable ones\n""")\ndef run(client):\n    client.query("select 1")\n',
    },
    {
      why: 'only what the table does not hold is appended',
      path: 'jobs/sync.py',
      lines: [],
      code: 'from google.cloud import bigquery\ndef sync(client, table, wanted):\n    held = read_all(client, table)\n    missing = difference(wanted, held)\n    config = bigquery.LoadJobConfig(write_disposition="WRITE_APPEND")\n    client.load_table_from_json(missing, table, job_config=config).result()\n',
    },
    {
      why: 'an operator of the repository that is told to replace',
      path: 'dags/events.py',
      lines: [],
      code: 'from airflow import DAG\nfrom plugins.spark import SparkSQLOperator\n\nreplace = SparkSQLOperator(task_id="x", sql="select 1 from e", mode="WRITE_TRUNCATE", output_table="events")\n',
    },
    {
      why: 'a table that another file of the run drops and makes anew',
      path: 'sql/31_load.sql',
      lines: [],
      beside: {
        'sql/11_drop.sql': 'drop table if exists notes_day;\n',
      },
      code: "copy notes_day (id, body) from '/in/notes.csv' csv;\n",
    },
    {
      why: 'the table is replaced',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.x import GCSToBigQueryOperator\nt = GCSToBigQueryOperator(write_disposition="WRITE_TRUNCATE")\n',
    },
    {
      why: 'a default that every caller overrides',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.x import BigQueryInsertJobOperator\ndef build(table, write_disposition="WRITE_APPEND"):\n    return BigQueryInsertJobOperator(configuration={"d": write_disposition})\nbuild("t", write_disposition="WRITE_TRUNCATE")\n',
    },
    {
      why: 'the batch is deleted before',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.x import BigQueryInsertJobOperator, GCSToBigQueryOperator\ndef build(dag, table):\n    q = f"DELETE FROM {table} WHERE batch = 1"\n    a = BigQueryInsertJobOperator(configuration={"query": q})\n    b = GCSToBigQueryOperator(destination_project_dataset_table=f"{table}", write_disposition="WRITE_APPEND")\n    return a >> b\n',
    },
    {
      why: 'Snowflake skips files it has loaded',
      path: 'etl/load.sql',
      lines: [],
      code: "copy into orders from @landing/orders/ on_error = 'CONTINUE';\n",
    },
    {
      why: 'bq load --replace',
      path: 'scripts/load.sh',
      lines: [],
      code: '#!/bin/bash\nbq load --replace --source_format=CSV shop.orders gs://b/orders.csv\n',
    },
    {
      why: 'emptied before',
      path: 'etl/load.sql',
      lines: [],
      code: "truncate table orders;\nload data local infile 'x.csv' into table orders;\n",
    },
    {
      why: 'an export',
      path: 'etl/out.sql',
      lines: [],
      code: "copy (select * from t) to 's3://x';\ncopy t to '/tmp/x.csv';\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      const found = inSql(use, file, project)
      if (found !== undefined) yield found
    }
    if (file.host !== undefined) yield* inHost(file, file.host, project)
    for (const command of file.shell?.commands ?? []) {
      const found = inShell(command, file)
      if (found !== undefined) yield found
    }
  },
}

function inSql(use: SqlUse, file: FileFacts, project: ProjectFacts): Report | undefined {
  const { statement } = use
  if (['request', 'migration', 'test', 'seed'].includes(use.context) || statement.overwrite) return undefined
  if (statement.kind === 'copy') {
    // Snowflake's COPY INTO remembers its files; COPY of Redshift and PostgreSQL does not.
    if (isWord(statement.tokens, 1, 'into')) return undefined
    if (statement.tokens.some((token) => token.value === 'stdin') && use.origin === 'file') return undefined
  } else if (statement.kind !== 'load' || hasWords(statement.tokens, 'replace')) return undefined
  if (
    clearedBy(file, use) !== undefined ||
    clearedByHelper(file, use) !== undefined ||
    isTemporary(file, use)
  )
    return undefined
  const key = project.catalogue.find(statement.target, file.path)?.keys.some((one) => !one.generated) ?? false
  if (key) return undefined
  const staging = isStagingTable(statement.target, project)
  const loud = isRerun(use.context) && !madeAnewElsewhere(file, use, project)
  return {
    start: use.start,
    end: use.end,
    message: `A second run loads the same files into ${nameOf(statement.target)} again`,
    class: loud ? 'unsafe' : 'info',
    severity: loud ? (staging ? 'warning' : 'error') : 'info',
    confidence: staging || statement.target?.unknown ? 'low' : 'medium',
  }
}

function* inHost(file: FileFacts, host: HostFacts, project: ProjectFacts): Iterable<Report> {
  for (const append of appendCalls(host)) {
    if (append.kind !== 'load' || ['test', 'migration'].includes(file.contextOf(append.call.fn))) continue
    if (
      deletesBefore(file, append.call.fn?.node.start, append.start) ||
      countsFirst(host, append.start, append.call.fn?.node.start ?? 0)
    )
      continue
    if (appendsDifference(host, append)) continue
    if (
      /existing|not exists|left join/i.test(host.source(append.call.node)) &&
      /is null|not exists/i.test(host.source(append.call.node))
    )
      continue
    const staging = /stg|staging|stage|tmp|temp/i.test(append.target ?? '')
    yield report(append.start, append.end, staging ? 'low' : 'medium', staging ? 'warning' : 'error')
  }
  // `config.write_disposition = 'WRITE_APPEND'`, and the default of a parameter.
  for (const one of host.assignments) {
    if (
      !/\.write_disposition$/.test(one.name) ||
      !APPENDS.test(host.source(one.value)) ||
      file.context === 'test'
    )
      continue
    if (deletesBefore(file, one.fn?.node.start, one.start)) continue
    yield report(one.start, one.value.end, 'medium', 'error')
  }
  for (const fn of host.functions) {
    const list = child(fn.node, 'parameters')
    for (const parameter of list?.children ?? []) {
      const value = child(parameter, 'value')
      const name = child(parameter, 'name')
      if (
        value === undefined ||
        name === undefined ||
        !APPENDS.test(host.source(value)) ||
        file.context === 'test'
      )
        continue
      if (project.overridden.has(`${fn.name}/${host.source(name)}`)) continue
      yield { ...report(parameter.start, parameter.end, 'low', 'warning'), class: 'info', severity: 'info' }
    }
  }
}

function report(
  start: number,
  end: number,
  confidence: Report['confidence'],
  severity: Report['severity'],
): Report {
  return {
    start,
    end,
    message: 'A retry or a second run of this load appends the same rows again',
    class: 'unsafe',
    severity,
    confidence,
  }
}

/** `DELETE` in the same function: a window, which `delete-insert-no-tx` reports. */
function deletesBefore(file: FileFacts, fn: number | undefined, start: number): boolean {
  return file.sql.some(
    (use) =>
      (use.statement.kind === 'delete' || use.statement.kind === 'truncate') &&
      use.fn?.node.start === fn &&
      use.start < start,
  )
}

/** `held = read(client, table)`, `missing = difference(rows, held)`, and `missing` is appended to `table`. */
function appendsDifference(host: HostFacts, { call, start }: AppendCall): boolean {
  const { fn } = call
  const given = host.assignments.filter((one) => one.fn === fn && one.start < start)
  const loads = host.calls.filter(
    (one) => one.fn === fn && one.end > start && /^(?:load_table_from_|insert_rows)/.test(one.name),
  )
  return loads.some(({ args: [rows, table] }) => {
    if (rows?.type !== 'identifier' || table?.type !== 'identifier') return false
    const held = given.find(
      ({ value }) => host.callOf(value)?.args.some((one) => host.source(one) === host.source(table)) === true,
    )
    const made = given.findLast(({ name }) => name === host.source(rows))
    return (
      held !== undefined &&
      made !== undefined &&
      host.callOf(made.value)?.args.some((one) => host.source(one) === held.name) === true
    )
  })
}

/** `if count == 0:` around it. */
function countsFirst(host: HostFacts, start: number, from: number): boolean {
  const call = host.calls.find((one) => one.start <= start && one.end >= start)
  const branch = call === undefined ? undefined : ancestor(call.node, 'if_statement')
  if (branch === undefined || branch.start < from) return false
  const condition = child(branch, 'condition')
  return (
    condition !== undefined &&
    /count|exists|num_rows|total_rows|not\s+\w*(?:loaded|exists|found)/i.test(host.source(condition))
  )
}

function inShell(command: ShellCommand, file: FileFacts): Report | undefined {
  if (command.name !== 'bq' || file.context === 'test') return undefined
  const args = command.args.map((one) => one.text)
  const verb = args.find((one) => !one.startsWith('-'))
  const partition = args.some((one) => /\$\{?\w*\d{6,8}|\\?\$\d{8}/.test(one))
  if (
    verb === 'load' &&
    !args.some((one) => /^--?replace(?:=true)?$|^--?noappend|replace_data/.test(one)) &&
    !partition
  ) {
    return report(command.start, command.end, 'medium', 'error')
  }
  if (verb === 'query' && args.some((one) => /^--?append_table(?:=true)?$/.test(one)))
    return report(command.start, command.end, 'high', 'error')
  return undefined
}
