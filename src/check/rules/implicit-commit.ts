import type { SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { hasWords, isWord } from '../sql/tokens.ts'
import { usesOfTransaction } from '../uses-index.ts'

const WRITES = ['insert', 'delete', 'update', 'merge', 'copy', 'load', 'truncate']

export const implicitCommit: Rule = {
  id: 'implicit-commit',
  title: 'Do DDL before the transaction, not in it',
  anomaly: 'gap',
  tier: 1,
  fix: 'suggestion',
  problem:
    'On MySQL, Snowflake and Oracle a DDL statement commits what stands before it. What looks like one transaction is two: a crash behind the DDL leaves the first half.',
  advice: 'Move the DDL before the begin, or put the new rows into place by one statement (swap, rename).',
  safeForms: [
    {
      for: 'Snowflake',
      code: 'create temporary stage if not exists load_stage;\nbegin;\ndelete from orders_daily where day = $day;\ncopy into orders_daily from @load_stage;\ncommit;',
    },
  ],
  prove: '`stet prove` cuts behind the DDL; readers see the table without its rows (GAP).',
  limits: 'The dialect is guessed from the file, or set by `dialects` of the configuration.',
  bad: [
    {
      why: 'a stage is made between truncate and copy',
      path: 'dags/snowflake_load.py',
      lines: [5],
      code: 'from snowflake.sqlalchemy import URL\ndef load(engine, file):\n    with engine.begin() as conn:\n        conn.execute("TRUNCATE TABLE raw.t")\n        conn.execute("CREATE TEMPORARY STAGE IF NOT EXISTS raw.t")\n        conn.execute("COPY INTO raw.t FROM @raw.t")\n',
    },
    {
      why: 'a column is added in the middle',
      path: 'etl/mysql/load.sql',
      lines: [3],
      code: 'start transaction;\ndelete from orders where day = 1;\nalter table orders add column note text;\ninsert into orders select * from stage;\ncommit;\n',
    },
  ],
  fine: [
    {
      why: 'before the first change nothing is lost by it',
      path: 'etl/mysql/load.sql',
      lines: [],
      code: 'start transaction;\ncreate table if not exists orders (id int primary key);\ndelete from orders where day = 1;\ninsert into orders select * from stage;\ncommit;\n',
    },
    {
      why: 'a temporary table of MySQL commits nothing',
      path: 'etl/mysql/load.sql',
      lines: [],
      code: 'start transaction;\ndelete from orders where day = 1;\ncreate temporary table pick select 1 as id;\ninsert into orders select * from pick;\ncommit;\n',
    },
    {
      why: 'truncate is no DDL on Snowflake',
      path: 'etl/snowflake/load.sql',
      lines: [],
      code: 'begin;\ninsert into log_of_days select 1;\ntruncate table t;\ninsert into t select * from s;\ncommit;\n',
    },
    {
      why: 'PostgreSQL takes DDL back as well',
      path: 'etl/postgres/load.sql',
      lines: [],
      code: 'begin;\ndelete from orders where day = 1;\nalter table orders add column note text;\ninsert into orders select * from stage;\ncommit;\n',
    },
  ],
  *check(file): Iterable<Report> {
    if (!['mysql', 'snowflake', 'oracle'].includes(file.dialect)) return
    for (const use of file.sql) {
      if (use.transaction === undefined || !commits(use, file.dialect)) continue
      if (['request', 'migration', 'test', 'seed'].includes(use.context)) continue
      const beside = usesOfTransaction(file, use.transaction).filter((one) =>
        WRITES.includes(one.statement.kind),
      )
      const before = beside.some((one) => one.order < use.order)
      const after = beside.some((one) => one.order > use.order)
      if (!before || !after) continue
      yield {
        start: use.start,
        end: use.end,
        message:
          'This DDL commits what stands before it in the transaction: a crash behind it leaves half of the change',
        class: 'window',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}

function commits({ statement }: SqlUse, dialect: string): boolean {
  switch (statement.kind) {
    case 'truncate':
      return dialect !== 'snowflake'
    case 'create-table':
    case 'drop':
      return !(dialect === 'mysql' && (statement.temporary || hasWords(statement.tokens, 'temporary')))
    case 'create-view':
    case 'create-index':
    case 'create-other':
    case 'create-routine':
    case 'alter-table':
      return true
    default:
      return isWord(statement.tokens, 0, 'rename')
  }
}
