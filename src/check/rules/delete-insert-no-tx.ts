import { clearedByHelper } from '../cleared-by-helper.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Fix, Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { Rule } from '../rule.ts'
import { clearedBy, isTemporary, nameOf, together } from '../sequence.ts'
import { hasWords } from '../sql/tokens.ts'
import { usesOfTable } from '../uses-index.ts'
import { beforeHostAppends, betweenTasks } from './delete-then-append.ts'

export const deleteInsertNoTx: Rule = {
  id: 'delete-insert-no-tx',
  title: 'Delete and insert in one transaction',
  anomaly: 'gap',
  tier: 1,
  fix: 'auto',
  problem:
    'The rows are deleted and committed before the new ones are there. A crash in between leaves the slice empty until somebody runs the job again, and a reader in between sees it empty.',
  advice:
    'Put both between begin and commit, or replace the slice by one statement (overwrite of a partition, merge, swap).',
  safeForms: [
    {
      for: 'PostgreSQL, MySQL, Snowflake',
      code: "begin;\ndelete from orders_daily where day = '2025-02-03';\ninsert into orders_daily select * from stage_orders where day = '2025-02-03';\ncommit;",
    },
    {
      for: 'Python',
      code: 'with engine.begin() as conn:\n    conn.execute(delete_day)\n    conn.execute(insert_day)',
    },
    {
      for: 'Spark, Hive',
      code: "insert overwrite table orders_daily partition (day = '2025-02-03')\nselect order_no, amount from stage_orders where day = '2025-02-03';",
    },
  ],
  prove: '`stet prove` cuts between the two statements and reads the table there (GAP); the rerun heals it.',
  limits:
    'Whether a runner or a caller opens a transaction around a file or a function is not seen; the confidence is then low.',
  bad: [
    {
      why: 'two statements of a script, two commits',
      path: 'etl/day.sql',
      lines: [1],
      code: "delete from orders_daily where day = '2025-02-03';\ninsert into orders_daily select * from stage_orders where day = '2025-02-03';\n",
    },
    {
      why: 'a hook commits after each call',
      path: 'dags/day.py',
      lines: [4],
      code: 'from airflow.hooks.postgres_hook import PostgresHook\ndef load(ds):\n    hook = PostgresHook("dwh")\n    hook.run(f"DELETE FROM orders_daily WHERE day = \'{ds}\'")\n    hook.run(f"INSERT INTO orders_daily SELECT * FROM stage WHERE day = \'{ds}\'")\n',
    },
    {
      why: 'a commit in between',
      path: 'jobs/day.py',
      lines: [4],
      code: 'import psycopg2\ndef load(conn, rows):\n    cur = conn.cursor()\n    cur.execute("delete from board where name = \'top\'")\n    conn.commit()\n    cur.execute("insert into board (name, data) values (\'top\', %s)", rows)\n    conn.commit()\n',
    },
    {
      why: 'delete by one statement, append of a frame by another',
      path: 'jobs/frame.py',
      lines: [3],
      code: 'import pandas as pd\ndef load(conn, df, source):\n    conn.execute("DELETE FROM events WHERE source = :s", s=source)\n    df.to_sql("events", conn, if_exists="append")\n',
    },
    {
      why: 'emptied by a helper, filled behind it',
      path: 'etl/load.py',
      lines: [9],
      code: 'import psycopg2\n\ndef empty(schema, table):\n    with connect() as conn:\n        conn.cursor().execute(f"TRUNCATE TABLE {table}")\n\ndef load(schema, table):\n    empty(schema, table)\n    run(f"COPY {table} FROM \'s3://bucket/{table}.csv\'")\n',
    },
    {
      why: 'an insert that SQLAlchemy builds, behind an engine that commits each statement',
      path: 'etl/trips.py',
      lines: [4],
      code: 'import sqlalchemy\nfrom sqlalchemy.dialects.postgresql import insert\ndef reload(engine, trips, rows):\n    engine.execute("TRUNCATE TABLE trips")\n    statement = insert(trips)\n    engine.connect().execute(statement, rows)\n',
    },
    {
      why: 'the block of the delete has ended before the helper loads the table',
      path: 'etl/copy_table.py',
      lines: [5],
      code: 'import psycopg2\nclass Loader:\n    def load(self, job):\n        with self.engine.begin() as conn:\n            conn.execute(f"TRUNCATE TABLE {job.table}")\n        for rows in self.read(job):\n            self.bulk_insert(job.table, rows)\n',
    },
    {
      why: 'one task empties, another one appends',
      path: 'dags/promo.py',
      lines: [8],
      code: 'from airflow import DAG\nfrom sqlalchemy import text\n\ndef empty(connection):\n    connection.execute(text("TRUNCATE TABLE shop.promo"))\n\ndef fill(frame, conn):\n    frame.to_sql(name="promo", con=conn, schema="shop", if_exists="append")\n',
    },
  ],
  fine: [
    {
      why: 'a client fills in its parameters: what it sends together, it commits together',
      path: 'etl/vendors.sql',
      lines: [],
      code: 'delete from vendor_raw where job_id = %(job_id)s;\ninsert into vendor_raw (no, job_id) select no, %(job_id)s from source_vendor;\n',
    },
    {
      why: 'rows of a mock',
      path: 'pipelines/utils/mock_rows.sql',
      lines: [],
      code: "delete from appointment where true;\ninsert into appointment (no) values ('12test');\n",
    },
    {
      why: 'one task deletes what is old, another one appends',
      path: 'dags/promo.py',
      lines: [],
      code: 'from airflow import DAG\nfrom sqlalchemy import text\n\ndef clean(connection):\n    connection.execute(text("DELETE FROM promo WHERE day < 20250101"))\n\ndef fill(cur):\n    cur.execute("INSERT INTO promo SELECT * FROM s ON CONFLICT (no) DO NOTHING")\n',
    },
    {
      why: 'a work table that takes the name of the other one at the end',
      path: 'etl/swap.sql',
      lines: [],
      code: 'truncate table orders_next;\ninsert into orders_next select * from raw_orders;\ndrop table orders;\nalter table orders_next rename to orders;\n',
    },
    {
      why: 'tables are emptied one after the other and left so',
      path: 'etl/clean.py',
      lines: [],
      code: 'import psycopg2\nfrom sqlalchemy import text\nconn.autocommit = True\ndef clean(conn):\n    conn.execute(text("DELETE FROM a"))\n    conn.execute(text("DELETE FROM b"))\n',
    },
    {
      why: 'the helper empties another table',
      path: 'etl/load.py',
      lines: [],
      code: 'import psycopg2\n\ndef empty(table):\n    run(f"TRUNCATE TABLE {table}")\n\ndef load(cur):\n    empty("queue")\n    cur.execute("INSERT INTO d SELECT * FROM s ON CONFLICT (id) DO NOTHING")\n',
    },
    {
      why: 'between begin and commit',
      path: 'etl/day.sql',
      lines: [],
      code: "begin;\ndelete from d where day = '2025-02-03';\ninsert into d select * from s where day = '2025-02-03';\ncommit;\n",
    },
    {
      why: 'one commit behind both',
      path: 'jobs/day.py',
      lines: [],
      code: 'import psycopg2\ndef load(conn, rows):\n    cur = conn.cursor()\n    cur.execute("DELETE FROM report")\n    for row in rows:\n        cur.execute("INSERT INTO report (a) VALUES (%s)", row)\n    conn.commit()\n',
    },
    {
      why: 'the connection as a block is a transaction',
      path: 'jobs/day.py',
      lines: [],
      code: 'import psycopg2\ndef load(conn, ds):\n    with conn, conn.cursor() as cur:\n        cur.execute("DELETE FROM d WHERE day = %s", (ds,))\n        cur.execute("INSERT INTO d SELECT * FROM s WHERE day = %s", (ds,))\n',
    },
    {
      why: 'engine.begin() opens one',
      path: 'jobs/day.py',
      lines: [],
      code: 'from sqlalchemy import text\nimport pandas as pd\ndef load(engine, ds):\n    with engine.begin() as conn:\n        conn.execute(text("DELETE FROM d WHERE day = :d"), {"d": ds})\n        conn.execute(text("INSERT INTO d SELECT * FROM s WHERE day = :d"), {"d": ds})\n',
    },
    {
      why: 'a client between BEGIN and COMMIT',
      path: 'jobs/day.ts',
      lines: [],
      code: 'export async function day(client: Client, d: string) {\n  await client.query("BEGIN");\n  await client.query("DELETE FROM m WHERE day = $1", [d]);\n  await client.query("INSERT INTO m SELECT * FROM s WHERE day = $1", [d]);\n  await client.query("COMMIT");\n}\n',
    },
    {
      why: 'a transaction callback',
      path: 'jobs/day.ts',
      lines: [],
      code: 'export const day = (d: string) => db.tx(async (t) => {\n  await t.none("DELETE FROM m WHERE day = $1", [d]);\n  await t.none("INSERT INTO m SELECT * FROM s WHERE day = $1", [d]);\n});\n',
    },
    {
      why: 'a list is run in one transaction',
      path: 'dags/day.py',
      lines: [],
      code: 'from airflow.hooks.postgres_hook import PostgresHook\ndef load(ds):\n    PostgresHook("dwh").run(["DELETE FROM d WHERE day = 1", "INSERT INTO d SELECT * FROM s WHERE day = 1"])\n',
    },
    {
      why: 'a PL/pgSQL function is atomic',
      path: 'etl/fn.sql',
      lines: [],
      code: 'create function load_day() returns void language plpgsql as $$\nbegin\n  delete from d;\n  insert into d select * from s;\nend $$;\n',
    },
    {
      why: 'another table is deleted from',
      path: 'etl/day.sql',
      lines: [],
      code: "delete from queue where day = '2025-02-03';\ninsert into d select * from s on conflict do nothing;\n",
    },
    {
      why: 'a staging table is only for this run',
      path: 'etl/day.sql',
      lines: [],
      code: 'truncate table stg_orders;\ninsert into stg_orders select * from raw_orders;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.language === 'dbt') return
    const told = new Set<number>()
    for (const use of file.sql) {
      if (use.statement.kind !== 'insert' && use.statement.kind !== 'copy' && use.statement.kind !== 'load')
        continue
      if (use.statement.overwrite || isTemporary(file, use)) continue
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      const cleared = clearedBy(file, use)
      const helper = cleared === undefined ? clearedByHelper(file, use) : undefined
      if (helper !== undefined && !told.has(helper.start) && use.transaction === undefined) {
        told.add(helper.start)
        yield apart(use, helper.name)
        continue
      }
      if (
        cleared === undefined ||
        (cleared.statement.kind !== 'delete' && cleared.statement.kind !== 'truncate')
      )
        continue
      if (told.has(cleared.start) || isScratch(use, file, project)) continue
      const relation = together(cleared, use)
      if (relation === 'yes') continue
      told.add(cleared.start)
      yield report(file, cleared, use, relation)
    }
    if (file.host !== undefined) {
      yield* beforeHostAppends(file, file.host, told)
      yield* betweenTasks(file, file.host)
    }
  },
}

/** Emptied by a helper that has come back by then. */
function apart(use: SqlUse, helper: string): Report {
  return {
    start: use.start,
    end: use.end,
    message: `${helper}() has emptied ${nameOf(use.statement.target)} before: a crash in between leaves the rows missing, unless both share a transaction`,
    class: 'window',
    severity: 'warning',
    confidence: 'medium',
  }
}

/** Emptied work tables nobody reads between two statements. */
function isScratch(use: SqlUse, file: FileFacts, project: ProjectFacts): boolean {
  const last = use.statement.target?.parts.at(-1) ?? ''
  const takesAnotherName = usesOfTable(file, use.statement.target).some(
    ({ statement, order }) =>
      order > use.order && statement.kind === 'alter-table' && hasWords(statement.tokens, 'rename', 'to'),
  )
  return (
    takesAnotherName ||
    /(?:^|_)(?:stg|stage|staging|tmp|temp|work|scratch)(?:_|$)|^#/.test(last) ||
    project.settings.stagingTables.some((pattern) => pattern.test(last))
  )
}

function report(file: FileFacts, cleared: SqlUse, use: SqlUse, relation: 'no' | 'unknown'): Report {
  const swallowed =
    relation === 'no' &&
    file.host !== undefined &&
    use.call !== undefined &&
    insertFailureIsSwallowed(file.host, use.call)
  const sure = relation === 'no' && cleared.origin !== 'file'
  const fix = wrap(file, cleared, use)
  // `%(name)s` is filled in by a driver of Python, which opens a transaction by itself.
  const byDriver = relation === 'unknown' && cleared.origin === 'file' && /%\(\w+\)s/.test(file.text)
  return {
    start: cleared.start,
    end: cleared.end,
    message: swallowed
      ? `Rows of ${nameOf(use.statement.target)} are deleted and committed, and a failure of the insert is only printed: the table stays empty and the run turns green`
      : `Rows of ${nameOf(use.statement.target)} are deleted in another transaction than they are inserted in: a crash in between leaves them missing`,
    class: swallowed ? 'unsafe' : byDriver ? 'info' : 'window',
    severity: swallowed ? 'error' : byDriver ? 'info' : 'warning',
    confidence:
      swallowed || sure
        ? 'high'
        : byDriver
          ? 'low'
          : relation === 'unknown' && cleared.origin !== 'file'
            ? 'low'
            : 'medium',
    ...(fix === undefined ? {} : { fix }),
  }
}

/** `except: print(error)` around the insert. */
function insertFailureIsSwallowed(host: HostFacts, call: HostCall): boolean {
  return host.catches.some(
    (one) =>
      one.body.start <= call.start &&
      call.end <= one.body.end &&
      !/\braise\b|\bthrow\b|sys\.exit|process\.exit|reject\(|exit\(/.test(host.source(one.handler)),
  )
}

/** In a plain SQL file the two are wrapped, if nothing but they themselves stands in between. */
function wrap(file: FileFacts, cleared: SqlUse, use: SqlUse): Fix | undefined {
  if (file.language !== 'sql' || cleared.origin !== 'file' || use.origin !== 'file') return undefined
  if (!['postgres', 'sqlite', 'duckdb', 'redshift', 'snowflake', 'unknown'].includes(file.dialect))
    return undefined
  const first = file.sql.indexOf(cleared)
  const last = file.sql.indexOf(use)
  if (
    file.sql
      .slice(first, last + 1)
      .some(
        (one) => !['delete', 'insert', 'truncate', 'select', 'update', 'copy'].includes(one.statement.kind),
      )
  )
    return undefined
  if (file.sql.some((one) => ['begin', 'commit', 'meta'].includes(one.statement.kind))) return undefined
  const semicolon = file.text.indexOf(';', use.end - 1)
  if (semicolon < 0 || file.text.slice(use.end, semicolon).trim() !== '') return undefined
  return {
    title: 'Wrap both in one transaction',
    safe: true,
    edits: [
      { start: cleared.start, end: cleared.start, text: 'begin;\n' },
      { start: semicolon + 1, end: semicolon + 1, text: '\ncommit;' },
    ],
  }
}
