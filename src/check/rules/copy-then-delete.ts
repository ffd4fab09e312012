import type { FileFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { leavesOutExisting, nameOf, sourceTables, together } from '../sequence.ts'
import { sameTable } from '../sql/name.ts'
import { findWords, plainText, type Tokens } from '../sql/tokens.ts'
import { usesBeside } from '../uses-index.ts'

/** The delete that takes the copied rows out of their source; undefined if there is none with the same condition. */
export function deletedBehind(file: FileFacts, use: SqlUse): SqlUse | undefined {
  const { statement } = use
  if (statement.kind !== 'insert' || statement.rows !== 'select') return undefined
  const sources = sourceTables(statement.query)
  if (sources.length !== 1) return undefined
  const condition = conditionOf(statement.query)
  return usesBeside(file, use.fn, use.origin).find(
    (one) =>
      one.order > use.order &&
      (one.statement.kind === 'delete' || one.statement.kind === 'truncate') &&
      sameTable(one.statement.target, sources[0]) &&
      !sameTable(one.statement.target, statement.target) &&
      plainText(one.statement.where ?? []) === condition,
  )
}

function conditionOf(query: Tokens): string {
  const where = findWords(query, ['where'], 0, query[0]?.depth)
  return where < 0 ? '' : plainText(query.slice(where + 1))
}

export const copyThenDelete: Rule = {
  id: 'copy-then-delete',
  title: 'Move rows in one transaction',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Rows are copied into another table and then deleted, in two transactions. After a crash in between they are in both, and the next run copies them again.',
  advice:
    'Put both into one transaction, or one statement (`with moved as (delete ... returning *) insert ...`), or insert with on conflict do nothing.',
  safeForms: [
    {
      for: 'PostgreSQL',
      code: "with moved as (\n  delete from orders where day < date '2025-01-01' returning *\n)\ninsert into orders_archive select * from moved;",
    },
    {
      for: 'any',
      code: "begin;\ninsert into orders_archive select * from orders where day < '2025-01-01';\ndelete from orders where day < '2025-01-01';\ncommit;",
    },
  ],
  prove: '`stet prove` cuts between the two; after the rerun the archive holds the rows twice (DOUBLED).',
  limits:
    'A runner that puts a whole SQL file into one transaction is not seen: the confidence is medium there.',
  bad: [
    {
      why: 'two statements, two commits',
      path: 'etl/archive.sql',
      lines: [1],
      code: "insert into orders_archive select * from orders where day < '2025-01-01';\ndelete from orders where day < '2025-01-01';\n",
    },
    {
      why: 'two runs of a hook',
      path: 'dags/archive.py',
      lines: [4],
      code: 'from airflow.providers.postgres.hooks.postgres import PostgresHook\ndef archive(ds):\n    hook = PostgresHook("dwh")\n    hook.run("INSERT INTO old SELECT * FROM queue")\n    hook.run("DELETE FROM queue")\n',
    },
  ],
  fine: [
    {
      why: 'statements of one text that begins a transaction',
      path: 'etl/archive.py',
      lines: [],
      code: 'import psycopg2\ndef archive_sql(table, old):\n    sql = "BEGIN TRANSACTION;"\n    sql += f"""\n    INSERT INTO archive\n    SELECT * FROM {table};\n    """\n    sql += f"""\n    DELETE FROM {table};\n    END TRANSACTION;\n    """\n    return sql\n',
    },
    {
      why: 'one transaction',
      path: 'etl/archive.sql',
      lines: [],
      code: "begin;\ninsert into orders_archive select * from orders where day < '2025-01-01';\ndelete from orders where day < '2025-01-01';\ncommit;\n",
    },
    {
      why: 'rows that are there are left alone',
      path: 'etl/archive.sql',
      lines: [],
      code: "insert into orders_archive select * from orders where day < '2025-01-01' on conflict do nothing;\ndelete from orders where day < '2025-01-01';\n",
    },
    {
      why: 'the delete is about other rows',
      path: 'etl/archive.sql',
      lines: [],
      code: "insert into summary select day, sum(v) from orders where day = '2025-02-03' group by day on conflict do nothing;\ndelete from orders where day < '2020-01-01';\n",
    },
    {
      why: 'a work table that is emptied behind its load is filled anew by each run',
      path: 'etl/load.sql',
      lines: [],
      code: 'truncate table stage;\ncopy stage from stdin;\ninsert into orders select * from stage on conflict (id) do nothing;\ntruncate table stage;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      const { statement } = use
      if (statement.conflict !== undefined || leavesOutExisting(statement.query, statement.target)) continue
      const behind = deletedBehind(file, use)
      const relation = behind === undefined ? 'yes' : together(use, behind)
      if (behind === undefined || relation === 'yes') continue
      const table = project.catalogue.find(statement.target, file.path)
      if (table?.keys.some((key) => !key.generated && !key.partial)) continue
      const sure = relation === 'no' && use.origin !== 'file'
      yield {
        start: use.start,
        end: use.end,
        message: `The rows are copied into ${nameOf(statement.target)} and deleted from ${nameOf(behind.statement.target)} in another transaction: after a crash in between the next run copies them again`,
        class: 'unsafe',
        severity: relation === 'unknown' && use.origin !== 'file' ? 'warning' : 'error',
        confidence: sure ? 'high' : relation === 'unknown' && use.origin !== 'file' ? 'low' : 'medium',
      }
    }
  },
}
