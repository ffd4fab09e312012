import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { Rule } from '../rule.ts'
import { duplicateIsCaught, textBefore } from '../sequence.ts'
import { type AppendCall, appendCalls } from './append-calls.ts'
import { clockBehind } from './clock-trace.ts'

export const dataframeAppend: Rule = {
  id: 'dataframe-append',
  title: 'Write a frame by key or by slice, not by append',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Appending a frame knows no key. A retried task writes its rows a second time; with a unique key in the table the retry fails for ever once a part of the rows is in.',
  advice:
    'Delete the slice and append in one transaction, write to a stage table and merge, or overwrite the partition.',
  safeForms: [
    {
      for: 'pandas',
      code: 'with engine.begin() as conn:\n    conn.execute(text("delete from sensor where hour = :h"), {"h": hour})\n    df.to_sql("sensor", conn, if_exists="append", index=False)',
    },
    {
      for: 'Spark',
      code: 'spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")\ndf.write.mode("overwrite").partitionBy("day").insertInto("sensor")',
    },
  ],
  prove: '`stet prove` runs the task twice (DOUBLED), and cuts it between two chunks.',
  limits: 'A delete in another task or function is not seen.',
  bad: [
    {
      why: 'a frame appended in a task that retries',
      path: 'dags/s.py',
      lines: [6],
      code: 'import pandas as pd\nfrom airflow.decorators import task\n@task(retries=5)\ndef load(ds=None):\n    df = pd.read_csv(f"/in/{ds}.csv")\n    df.to_sql("sensor_raw", engine, if_exists="append", index=False)\n',
    },
    {
      why: 'a Spark table',
      path: 'jobs/s.py',
      lines: [3],
      code: 'from pyspark.sql import SparkSession\ndef load(df):\n    df.write.format("delta").mode("append").saveAsTable("sales")\n',
    },
    {
      why: 'BigQuery',
      path: 'jobs/s.py',
      lines: [3],
      code: 'import pandas_gbq\ndef load(df):\n    df.to_gbq("shop.sales", if_exists="append")\n',
    },
  ],
  fine: [
    {
      why: 'an empty frame brings new columns into the table',
      path: 'jobs/columns.py',
      lines: [],
      code: 'from pyspark.sql import SparkSession\ndef widen(spark, schema, table):\n    nothing = spark.sparkContext.emptyRDD()\n    frame = spark.createDataFrame(data=nothing, schema=schema)\n    frame.write.option("mergeSchema", "true").format("delta").mode("append").saveAsTable(table)\n',
    },
    {
      why: 'each run has a table of its own',
      path: 'jobs/quality.py',
      lines: [],
      code: 'from datetime import datetime\nfrom pyspark.sql import SparkSession\ndef note(frame, source):\n    stamp = datetime.now().strftime("%Y%m%d_%H%M%S")\n    table = f"{source}_{stamp}"\n    full = full_name("quality", table)\n    frame.write.format("delta").mode("append").saveAsTable(full)\n',
    },
    {
      why: 'replaced as a whole',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(df, e):\n    df.to_sql("s", e, if_exists="replace")\n',
    },
    {
      why: 'the slice is deleted before',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(df, conn, day):\n    with conn.begin():\n        conn.execute("DELETE FROM s WHERE day = 1")\n        df.to_sql("s", conn, if_exists="append")\n',
    },
    {
      why: 'chunks into a fresh table',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(chunks, e):\n    for i, c in enumerate(chunks):\n        c.to_sql("s", e, if_exists="replace" if i == 0 else "append")\n',
    },
    {
      why: 'the head of the frame makes the table anew',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(df, chunks, e):\n    df.head(0).to_sql("s", e, if_exists="replace")\n    for c in chunks:\n        c.to_sql("s", e, if_exists="append")\n',
    },
    {
      why: 'partitions are overwritten',
      path: 'jobs/s.py',
      lines: [],
      code: 'from pyspark.sql import SparkSession\ndef load(df):\n    df.write.mode("overwrite").insertInto("s")\n',
    },
    {
      why: 'a test',
      path: 'tests/test_s.py',
      lines: [],
      code: 'import pandas as pd\ndef test_load(df, e):\n    df.to_sql("s", e, if_exists="append")\n',
    },
    {
      why: 'rows that are there are dropped before',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(df, e):\n    existing = pd.read_sql("select id from s", e)\n    df = df[~df.id.isin(existing.id)]\n    df.to_sql("s", e, if_exists="append")\n',
    },
    {
      why: 'a work table that is merged and emptied',
      path: 'jobs/s.py',
      lines: [],
      code: 'import pandas as pd\ndef load(df, e):\n    e.execute("TRUNCATE TABLE s_stage")\n    df.to_sql("s_stage", e, if_exists="append")\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    const { host } = file
    if (host === undefined) return
    for (const append of appendCalls(host)) {
      if (append.kind !== 'frame') continue
      const context = file.contextOf(append.call.fn)
      if (['request', 'migration', 'test'].includes(context) || madeSafe(file, host, append)) continue
      const loud = isRerun(context) && !emptiedElsewhere(file, append)
      const staging = isStaging(append, project)
      yield {
        start: append.start,
        end: append.end,
        message: `A retry or a second run appends the same rows${append.target === undefined ? '' : ` to "${append.target.replace(/[⟦⟧]/g, '').slice(0, 60)}"`} again`,
        class: loud ? 'unsafe' : 'info',
        severity: loud ? (staging ? 'warning' : 'error') : 'info',
        confidence: staging ? 'low' : 'medium',
      }
    }
  },
}

/** The file drops or empties tables in another function, which is usually the task before. */
function emptiedElsewhere(file: FileFacts, append: AppendCall): boolean {
  if (/__table__\.drop\(|drop_all\(|create_all\(/.test(file.text)) return true
  const table = (append.target ?? '').toLowerCase().split('.').at(-1) ?? ''
  return file.sql.some(
    (use) =>
      use.fn !== append.call.fn &&
      ['delete', 'truncate', 'drop'].includes(use.statement.kind) &&
      (use.statement.target?.parts.at(-1) === table || use.statement.target?.text.includes('{') === true),
  )
}

function isStaging(append: AppendCall, project: ProjectFacts): boolean {
  const target = append.target ?? ''
  return (
    /(?:^|[_.])(?:stg|stage|staging|tmp|temp)(?:[_.]|$)/i.test(target) ||
    project.settings.stagingTables.some((pattern) => pattern.test(target))
  )
}

/** Something of the same function empties the slice, makes the table anew, or leaves known rows out. */
function madeSafe(file: FileFacts, host: HostFacts, append: AppendCall): boolean {
  const { fn } = append.call
  const cleared = file.sql.some(
    (use) =>
      use.fn === fn &&
      use.order < append.start &&
      (use.statement.kind === 'delete' ||
        use.statement.kind === 'truncate' ||
        use.statement.kind === 'drop' ||
        use.statement.orReplace),
  )
  if (cleared || duplicateIsCaught(host, append.call.node)) return true
  if (isEmptyFrame(host, append.call) || isOfThisRun(host, append.call)) return true
  const before = textBefore(host, fn, append.start)
  if (/if_exists\s*=\s*['"]replace['"]|\.mode\(\s*['"]overwrite['"]/.test(before)) return true
  if (/\b(?:delete_|truncate|drop_table|clear_|remove_existing|delete\()\w*/i.test(before)) return true
  if (/__table__\.drop\(|drop_all\(/.test(before)) return true
  return /\b(?:existing|already|known)\w*\b[\s\S]*(?:isin|not in|difference|merge|anti|drop_duplicates|subtract|filter)|left_anti|~\w+\[?.*\.isin/i.test(
    before,
  )
}

/** `spark.createDataFrame(data=nothing, schema=wider)`, appended to bring in its columns. */
function isEmptyFrame(host: HostFacts, { receiver, fn, start }: HostCall): boolean {
  const empty =
    /\bemptyRDD\(|\.limit\(\s*0\s*\)|\.head\(\s*0\s*\)|\biloc\[\s*:\s*0\s*\]|createDataFrame\(\s*(?:data\s*=\s*)?\[\s*\]/
  const made = (name: string): string => {
    const given = host.assignments.findLast((one) => one.name === name && one.fn === fn && one.start < start)
    return given === undefined ? '' : host.source(given.value)
  }
  const frame = made(/^\(?\s*(\w+)\b/.exec(receiver)?.[1] ?? '')
  const data = /createDataFrame\(\s*(?:data\s*=\s*)?(\w+)/.exec(frame)?.[1]
  return empty.test(frame) || (data !== undefined && empty.test(made(data)))
}

/** The name of the table holds the clock: a second run has another one, which `clock-in-path` tells of. */
function isOfThisRun(host: HostFacts, call: HostCall): boolean {
  const [table] = call.args
  return (
    call.name === 'saveAsTable' && table !== undefined && clockBehind(table, host, call.fn, 4) !== undefined
  )
}
