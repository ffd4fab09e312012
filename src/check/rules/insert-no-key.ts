import { clearedByHelper } from '../cleared-by-helper.ts'
import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Confidence, Report, Severity } from '../finding.ts'
import type { HostFunction } from '../languages/host.ts'
import type { SyntaxNode } from '../languages/tree.ts'
import { literally } from '../literally.ts'
import { oncePer } from '../per-file.ts'
import type { Rule } from '../rule.ts'
import {
  checkedBefore,
  claimed,
  clearedBy,
  duplicateIsCaught,
  isLogTable,
  isStagingTable,
  isTemporary,
  leavesOutExisting,
  madeAnewElsewhere,
  nameOf,
} from '../sequence.ts'
import type { Statement } from '../sql/statement.ts'
import { hasWords } from '../sql/tokens.ts'
import { hasClock } from './clock.ts'
import { deletedBehind } from './copy-then-delete.ts'

/**
 * A plain insert that a second run repeats, with how sure that is; undefined if something makes it safe. Shared with
 * `sequence-key`, which speaks of the table where this speaks of the statement.
 */
export function repeatedInsert(
  use: SqlUse,
  file: FileFacts,
  project: ProjectFacts,
): { severity: Severity; confidence: Confidence; generatedKey: boolean } | undefined {
  const { statement } = use
  if (statement.kind !== 'insert' || statement.overwrite || statement.target === undefined) return undefined
  if (use.context === 'request' || use.context === 'migration' || use.context === 'test') return undefined
  if (file.dialect === 'cassandra' || isTemporary(file, use)) return undefined
  // A streaming job of Flink is one statement that never ends; its sink decides about keys.
  if (isOfFlink(file)) return undefined
  const table = project.catalogue.find(statement.target, file.path)
  if (table?.upsertStore || table?.temporary) return undefined
  const realKey = table?.keys.some((key) => !key.generated && !key.partial) ?? false
  const generatedKey = table !== undefined && !realKey && table.keys.some((key) => key.generated)
  const knownWithoutKey = table !== undefined && !table.fromQuery && !realKey
  if (conflictIsAdded(use, file)) return undefined
  if (statement.conflict !== undefined) {
    // A conflict clause without columns rests on whatever keys there are: with generated ones alone it never fires.
    const never =
      knownWithoutKey &&
      generatedKey &&
      statement.conflict.columns === undefined &&
      !statement.conflict.constraint
    const generatedIsGiven =
      table?.columns.some((column) => column.generated && statement.columns?.includes(column.name)) ?? false
    return never && !generatedIsGiven && statement.columns !== undefined
      ? { severity: 'error', confidence: 'high', generatedKey }
      : undefined
  }
  if (realKey) return undefined
  if (leavesOutExisting(statement.query, statement.target)) return undefined
  // `with moved as (delete ... returning *) insert ...` moves rows in one statement.
  if (hasWords(statement.tokens, 'returning') && hasWords(statement.tokens, 'delete', 'from'))
    return undefined
  if (clearedBy(file, use) !== undefined || clearedByHelper(file, use) !== undefined || claimed(file, use))
    return undefined
  // Rows that are moved away are not there for a second run; `copy-then-delete` tells of the gap in between.
  if (deletedBehind(file, use) !== undefined) return undefined
  if (checkedBefore(file, use) || duplicateIsCaught(file.host, use.call?.node)) return undefined
  // A text that is never seen to be run may be anything from an example to the base of another text.
  if (use.origin === 'text' && use.call === undefined && use.text?.variable === undefined)
    return { severity: 'warning', confidence: 'low', generatedKey }
  if (statement.rows === 'unknown' && use.origin !== 'file')
    return { severity: 'warning', confidence: 'low', generatedKey }
  const constant =
    statement.rows === 'values' &&
    !statement.query.some(
      (token) => token.kind === 'hole' || (token.kind === 'word' && token.value === 'select'),
    )
  // Where another file or function makes room for it, the order of the two is not seen; of eight such places that were
  // read, eight ran behind it.
  if (madeAnewElsewhere(file, use, project)) return { severity: 'info', confidence: 'low', generatedKey }
  if (isLogTable(statement.target, project) || isJournal(statement) || use.context === 'seed')
    return { severity: 'info', confidence: 'low', generatedKey }
  if (!isRerun(use.context))
    return { severity: statement.rows === 'select' ? 'warning' : 'info', confidence: 'low', generatedKey }
  if (use.origin === 'routine') return { severity: 'warning', confidence: 'low', generatedKey }
  if (isStagingTable(statement.target, project))
    return { severity: 'warning', confidence: 'low', generatedKey }
  if (isGivenStaging(use, file)) return { severity: 'info', confidence: 'low', generatedKey }
  // Constant rows of a script are set-up that somebody runs by hand.
  if (constant && use.origin === 'file') return { severity: 'warning', confidence: 'low', generatedKey }
  if (knownWithoutKey) return { severity: 'error', confidence: 'high', generatedKey }
  return { severity: 'error', confidence: statement.target.unknown ? 'low' : 'medium', generatedKey }
}

/** `values (now(), 4, 'rolled over ' || year)` into a date, a kind and a message: what a run has to say of itself. */
function isJournal({ rows, columns, query }: Statement): boolean {
  return (
    rows === 'values' &&
    hasClock(query) &&
    (columns ?? []).some((column) => /(?:^|_)(?:message|msg|comment|remark)$|message$/i.test(column))
  )
}

/** `start + values + ' on conflict (no) do nothing'`: the clause stands in another piece of the text. */
function conflictIsAdded({ text, fn }: SqlUse, { host }: FileFacts): boolean {
  const variable = text?.variable
  if (text === undefined || variable === undefined || host === undefined) return false
  const joined = new RegExp(`\\b${literally(variable)}\\b[^;]*\\bon\\s+(?:conflict|duplicate\\s+key)\\b`, 'i')
  const joins = (one: { readonly fn: HostFunction | undefined }, node: SyntaxNode): boolean =>
    one.fn === fn && node.end - node.start < 2000 && joined.test(host.source(node))
  return (
    host.assignments.some((one) => one.start > text.end && joins(one, one.value)) ||
    host.calls.some((one) => one.start > text.end && /^execute/.test(one.name) && joins(one, one.node))
  )
}

const isOfFlink = oncePer(({ text }: FileFacts): boolean => /\bpyflink\b|'connector'\s*=/.test(text))

/** `sql.SQL("insert into {t} ...").format(t=sql.Identifier(TMP_TABLE))` */
function isGivenStaging({ statement, text }: SqlUse, { host }: FileFacts): boolean {
  const hole = /^\{(\w+)\}$/.exec(statement.target?.parts.at(-1) ?? '')?.[1]
  if (hole === undefined || host === undefined || text === undefined) return false
  return host.calls.some(
    (call) =>
      call.name === 'format' &&
      call.start <= text.start &&
      text.end <= call.end &&
      [...call.named].some(
        ([name, value]) => name.toLowerCase() === hole && /tmp|temp|stag|stg/i.test(host.source(value)),
      ),
  )
}

export const insertNoKey: Rule = {
  id: 'insert-no-key',
  title: 'Give an insert a key to meet its own rows by',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The statement only ever adds rows. When the task is retried, or a day is loaded again, the rows of the first run are still there and come a second time.',
  advice:
    'Insert with on conflict or merge on the natural key, or delete the same slice first in the same transaction.',
  safeForms: [
    {
      for: 'PostgreSQL, DuckDB, SQLite',
      code: 'insert into orders (order_no, amount)\nselect order_no, amount from stage_orders\non conflict (order_no) do nothing;',
    },
    {
      for: 'BigQuery, Snowflake, Spark',
      code: 'merge into orders as t\nusing (select distinct order_no, amount from stage_orders) as s\n   on t.order_no = s.order_no\n when not matched then insert (order_no, amount) values (s.order_no, s.amount);',
    },
    {
      for: 'any, by slice',
      code: "begin;\ndelete from orders_daily where day = '2025-02-03';\ninsert into orders_daily select * from stage_orders where day = '2025-02-03';\ncommit;",
    },
  ],
  prove:
    '`stet prove` runs the job twice and once more after each cut; the table then holds the rows twice (DOUBLED).',
  limits:
    'Keys are known only from DDL in the repository, `--schema`, or dbt properties. Where the table is not found there, the confidence is medium.',
  bad: [
    {
      why: 'another task throws away what is old, and leaves what the last run added',
      path: 'dags/visits.py',
      lines: [9],
      code: 'from airflow.decorators import task\nimport psycopg2\n@task\ndef clean(cur):\n    cur.execute("DELETE FROM visits WHERE at < now() - interval \'90 days\'")\n\n@task\ndef load(cur, day):\n    cur.execute("INSERT INTO visits SELECT * FROM raw_visits WHERE day = %s", (day,))\n',
    },
    {
      why: 'another file of the run keeps the last days only',
      path: 'etl/2_load.sql',
      lines: [1],
      beside: { 'etl/1_clean.sql': "delete from visits where at < now() - interval '90 days';\n" },
      code: 'insert into visits select * from raw_visits;\n',
    },
    {
      why: 'the day is added again by each run',
      path: 'etl/load.sql',
      lines: [1],
      code: 'insert into orders_daily (day, shop, amount)\nselect day, shop, amount from stage_orders;\n',
    },
    {
      why: 'the only key is generated, so no row is ever met again',
      path: 'etl/load_plays.py',
      lines: [4],
      beside: {
        'etl/schema.sql': 'create table plays (play_id serial primary key, song_id text, at timestamp);',
      },
      code: 'import psycopg2\n\ndef load(cur, rows):\n    cur.executemany("INSERT INTO plays (song_id, at) VALUES (%s, %s)", rows)\n',
    },
    {
      why: 'on conflict do nothing can never fire on a generated key',
      path: 'etl/log.sql',
      lines: [1],
      beside: { 'etl/schema.sql': 'create table load_mark (id bigserial primary key, what text);' },
      code: "insert into load_mark (what) values ('loaded') on conflict do nothing;\n",
    },
    {
      why: 'an insert ... select in a scheduled handler',
      path: 'src/handlers/daily.js',
      lines: [4],
      code: 'module.exports.handler = async () => {\n  const conn = await connect();\n  await conn.query(`\n    INSERT INTO median_daily (day, v)\n    SELECT day, avg(v) FROM raw GROUP BY day`);\n};\n',
    },
  ],
  fine: [
    {
      why: 'another task deletes the day',
      path: 'dags/visits.py',
      lines: [],
      code: 'from airflow.decorators import task\nimport psycopg2\n@task\ndef clean(cur, day):\n    cur.execute("DELETE FROM visits WHERE day = %s", (day,))\n\n@task\ndef load(cur, day):\n    cur.execute("INSERT INTO visits SELECT * FROM raw_visits WHERE day = %s", (day,))\n',
    },
    {
      why: 'a table variable',
      path: 'etl/grades.sql',
      lines: [],
      code: "declare @grades table (grade varchar(3));\ninsert into @grades values ('PK'), ('KG');\ninsert into @grades select code from extra_grade;\n",
    },
    {
      why: 'a line of a journal, with its moment and its text',
      path: 'etl/rollover.sql',
      lines: [],
      code: "insert into app.migration_steps (step_date, kind, step_message) values (getutcdate(), 4, 'rolled over ' + @year);\n",
    },
    {
      why: 'the conflict clause is added to the text below',
      path: 'jobs/members.py',
      lines: [],
      code: 'import psycopg2\ndef store(cur, rows):\n    start = "INSERT INTO member (gene_no, locus_no) VALUES "\n    values = ",".join(cur.mogrify("(%s,%s)", row).decode() for row in rows)\n    cur.execute(start + values + " ON CONFLICT (gene_no, locus_no) DO NOTHING")\n',
    },
    {
      why: 'a text whose own lines delete the slice first',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow import DAG\ndef load(chain, task):\n    sql = """create table {schema}.{table}_new (like {schema}.{table});"""\n    sql += """\n        BEGIN TRANSACTION;\n        DELETE FROM {schema}.{table} USING {schema}.{table}_new WHERE {schema}.{table}.day = {schema}.{table}_new.day;\n        INSERT INTO {schema}.{table} SELECT * FROM {schema}.{table}_new;\n        END TRANSACTION;\n    """\n    return Operator(sql=sql.format(schema=chain, table=task))\n',
    },
    {
      why: 'rows of a test',
      path: 'pipelines/queries_test/confirm.sql',
      lines: [],
      code: "insert into appointment (no, name) values ('12test', 'Maria');\ninsert into appointment select * from sample_appointment;\n",
    },
    {
      why: 'what a run found missing is noted each time',
      path: 'etl/note.sql',
      lines: [],
      code: "insert into data_gaps (kind, missing) select 'day', count(*) from expected where day is null;\n",
    },
    {
      why: 'the table of the shards is emptied, the front over them is filled',
      path: 'etl/sync.sql',
      lines: [],
      code: "truncate table mail_local on cluster replicated;\ninsert into table default.mail select * from remote('10.0.0.1', 'default.mail');\n",
    },
    {
      why: 'a front of ClickHouse over tables that keep one row a key',
      path: 'etl/sync.sql',
      lines: [],
      beside: {
        'ddl/mail.sql':
          "create table mail_local on cluster replicated (no Int64, body String) engine = ReplicatedReplacingMergeTree('/t/mail', '{replica}') order by no;\ncreate table mail on cluster replicated as mail_local engine = Distributed('replicated', 'default', 'mail_local', no);\n",
      },
      code: "insert into mail (no, body) values (1, 'a');\n",
    },
    {
      why: 'a temporary table that is named where the text is filled in',
      path: 'dags/load.py',
      lines: [],
      code: 'from psycopg2 import sql\nfrom airflow import DAG\ndef load(cur, rows):\n    statement = sql.SQL("INSERT INTO {table} ({columns}) VALUES (%s)").format(\n        table=sql.Identifier(f"{TABLE}{TMP_POSTFIX}"), columns=sql.SQL(","))\n    cur.executemany(statement, rows)\n',
    },
    {
      why: 'a routine that looked for the row before',
      path: 'etl/mark.sql',
      lines: [],
      code: 'do $$\ndeclare seen timestamp;\nbegin\n  select at into seen from load_mark;\n  if (seen is null) then\n    insert into load_mark (at) values (seen);\n  else\n    update load_mark set at = seen;\n  end if;\nend $$;\n',
    },
    {
      why: 'into or overwrite, as its caller says',
      path: 'etl/std.sql',
      lines: [],
      code: 'INSERT {{ params.mode }} {{ params.target }}\nSELECT a, b FROM {{ params.source }}\n',
    },
    {
      why: 'a conflict clause on the natural key',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into song (song_id, title) values (%s, %s) on conflict (song_id) do nothing;\n',
    },
    {
      why: 'the same slice is deleted before it',
      path: 'etl/load.sql',
      lines: [],
      code: "begin;\ndelete from orders_daily\n where day = '2025-02-03';\ninsert into orders_daily select * from stage_orders where day = '2025-02-03';\ncommit;\n",
    },
    {
      why: 'made anew by the same text',
      path: 'jobs/status.py',
      lines: [],
      code: 'import psycopg2\ndef f(cur):\n    cur.execute("""DROP TABLE IF EXISTS s;\n        CREATE TABLE s (m TEXT);\n        INSERT INTO s SELECT m FROM r;""")\n',
    },
    {
      why: 'asked for before, in Transact-SQL',
      path: 'etl/t.sql',
      lines: [],
      code: 'IF NOT EXISTS (SELECT 1 FROM dbo.x WHERE id = 1)\nBEGIN\n  INSERT INTO dbo.x (id) VALUES (1);\nEND\n',
    },
    {
      why: 'an anti-join on the target',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into t (id, v)\nselect s.id, s.v from s\nwhere not exists (select 1 from t where t.id = s.id);\n',
    },
    {
      why: 'a left join that keeps what is missing',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into t (id, v)\nselect s.id, s.v from s left join t on t.id = s.id where t.id is null;\n',
    },
    {
      why: 'a left join that keeps what is missing, in ClickHouse',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into t (id)\nselect s.id from s left join t on t.id = s.id where length(t.id) = 0;\n',
    },
    {
      why: 'a temporary table',
      path: 'etl/load.sql',
      lines: [],
      code: 'create temp table pick (id int);\ninsert into pick select id from s;\n',
    },
    {
      why: 'Cassandra inserts are upserts',
      path: 'etl/load.cql',
      lines: [],
      code: 'create keyspace k;\ninsert into k.t (id, v) values (1, 2);\n',
    },
    {
      why: 'the partition is replaced',
      path: 'etl/load.hql',
      lines: [],
      code: "insert overwrite table t\npartition (day='2025-02-03')\nselect * from s;\n",
    },
    {
      why: 'rows are claimed by a mark set in the same transaction',
      path: 'dags/people.py',
      lines: [],
      code: 'def people(conn):\n    cur = conn.cursor()\n    cur.execute("SELECT id, name FROM planter WHERE person_id IS NULL")\n    for row in cur.fetchall():\n        cur.execute("INSERT INTO person (name) VALUES (%s) RETURNING id", (row[1],))\n        cur.execute("UPDATE planter SET person_id = %s WHERE id = %s", (1, row[0]))\n    conn.commit()\n',
    },
    {
      why: 'a request handler does what the user asked for',
      path: 'src/api.ts',
      lines: [],
      code: 'import express from "express";\nexport const add = async (req, res) => {\n  await db.query("INSERT INTO note (body) VALUES ($1)", [req.body.note]);\n};\n',
    },
    {
      why: 'a migration runs once',
      path: 'db/migrations/20250101_colours.sql',
      lines: [],
      code: 'insert into colour select name from old_colour;\n',
    },
    {
      why: 'the table has a natural key: a second run fails instead',
      path: 'etl/load.sql',
      lines: [],
      beside: { 'etl/schema.sql': 'create table shop (shop_no text primary key, name text);' },
      code: 'insert into shop select shop_no, name from stage_shop;\n',
    },
    {
      why: 'inserted only when a query did not find it',
      path: 'jobs/add.py',
      lines: [],
      code: 'import psycopg2\ndef add(cur, no):\n    cur.execute("SELECT 1 FROM shop WHERE no = %s", (no,))\n    if cur.fetchone() is None:\n        cur.execute("INSERT INTO shop (no) VALUES (%s)", (no,))\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.language === 'dbt') return
    for (const use of file.sql) {
      const found = repeatedInsert(use, file, project)
      if (found === undefined) continue
      const { statement } = use
      const why =
        statement.conflict !== undefined
          ? 'its only key is generated, so the conflict clause never fires'
          : found.generatedKey
            ? 'its only key is generated'
            : 'it has no key to meet them by'
      yield {
        start: use.start,
        end: use.end,
        message: `A second run adds the same rows to ${nameOf(statement.target)} again: ${why}`,
        class: found.severity === 'info' ? 'info' : 'unsafe',
        severity: found.severity,
        confidence: found.confidence,
      }
    }
  },
}
