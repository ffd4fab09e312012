import type { FileFacts, SqlUse } from '../facts.ts'
import type { Fix, Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'
import { readName, sameTable } from '../sql/name.ts'
import { areWords, findWords, hasWords, isWord, type Tokens } from '../sql/tokens.ts'

export const ddlNoGuard: Rule = {
  id: 'ddl-no-guard',
  title: 'Let DDL of a script be run again',
  anomaly: 'different',
  tier: 1,
  fix: 'auto',
  problem:
    'The second run stops at the object that is already there, and what stands behind it is never reached: a script that failed half-way cannot simply be started again.',
  advice: 'Add if not exists (create, add column) or if exists (drop), or create or replace.',
  safeForms: [
    {
      for: 'PostgreSQL, BigQuery, Snowflake',
      code: 'alter table orders add column if not exists loaded_at timestamp;',
    },
  ],
  prove: '`stet prove` runs the script twice: the second run fails (STUCK).',
  limits:
    'Files of a migration tool run once and are left out; so are schema files, since nobody runs them against a full database.',
  bad: [
    {
      why: 'a column added by a shell script',
      path: 'ops/add.sh',
      lines: [2],
      code: '#!/bin/bash\nbq query --use_legacy_sql=false "ALTER TABLE d.t ADD COLUMN f TIMESTAMP;"\nbq query --use_legacy_sql=false "ALTER TABLE d.t ALTER COLUMN f SET DEFAULT CURRENT_TIMESTAMP();"\n',
    },
    {
      why: 'a table made by a load',
      path: 'etl/load.sql',
      lines: [1],
      code: 'create table day_orders as select * from orders;\ninsert into orders_daily select * from day_orders on conflict do nothing;\n',
    },
  ],
  fine: [
    {
      why: 'the parent is dropped with all that inherits from it',
      path: 'etl/make.sql',
      lines: [],
      code: 'drop table if exists reading cascade;\ncreate table reading (no int, value float);\ncreate table reading_1 (check (no < 100)) inherits (reading);\ncreate table reading_2 partition of reading for values in (2);\ninsert into reading select * from raw_reading;\n',
    },
    {
      why: 'another file of the run drops the table and makes it anew',
      path: 'etl/2_widen.sql',
      lines: [],
      beside: {
        'etl/1_make.sql': 'drop table if exists load_pairs;\ncreate table load_pairs (a int, b int);\n',
      },
      code: 'alter table load_pairs add column group_no text;\ninsert into pairs select * from load_pairs on conflict do nothing;\n',
    },
    {
      why: 'a dump',
      path: 'db/clinic.sql',
      lines: [],
      code: '-- PostgreSQL database dump\n-- Dumped by pg_dump version 16.1\ncreate table room (no int);\ncopy room (no) from stdin;\n',
    },
    {
      why: 'dropped before, in a list',
      path: 'etl/make.sql',
      lines: [],
      code: 'drop table if exists a, b;\ncreate table b (id int);\n',
    },
    {
      why: 'guarded',
      path: 'ops/add.sh',
      lines: [],
      code: '#!/bin/bash\nbq query "ALTER TABLE d.t ADD COLUMN IF NOT EXISTS f TIMESTAMP"\n',
    },
    {
      why: 'create or replace builds the table anew',
      path: 'etl/load.sql',
      lines: [],
      code: 'create or replace table t partition by d as (select * from s);\n',
    },
    {
      why: 'dropped before',
      path: 'etl/load.sql',
      lines: [],
      code: 'drop table if exists t;\ncreate table t as select * from s;\ninsert into u select * from t on conflict do nothing;\n',
    },
    {
      why: 'a migration runs once',
      path: 'db/migrations/001_t.sql',
      lines: [],
      code: 'create table t (id int);\n',
    },
    { why: 'a schema file', path: 'db/schema.sql', lines: [], code: 'create table t (id int);\n' },
    {
      why: 'a temporary table',
      path: 'etl/load.sql',
      lines: [],
      code: 'create temp table t as select * from s;\ninsert into u select * from t on conflict do nothing;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    if (/^-- (?:Dumped by pg_dump|PostgreSQL database dump|MySQL dump)/m.test(file.text.slice(0, 2000)))
      return
    if (['migration', 'test', 'seed', 'request'].includes(file.context) || file.language === 'dbt') return
    // DDL alone is a schema; DDL beside the statements of a load belongs to the load.
    const loads =
      file.language === 'shell' ||
      (file.language === 'sql' &&
        file.sql.some((use) => ['insert', 'merge', 'copy', 'load'].includes(use.statement.kind)))
    if (!loads) return
    for (const use of file.sql) {
      const { statement } = use
      if (
        use.origin === 'routine' ||
        !lacksGuard(
          use.statement.tokens,
          statement.kind,
          statement.guarded || statement.orReplace || statement.temporary,
        )
      )
        continue
      const dropped = file.sql.some(
        (one) =>
          one.order < use.order &&
          one.statement.kind === 'drop' &&
          [one.statement.target, ...one.statement.moreTargets].some((name) =>
            sameTable(name, statement.target),
          ),
      )
      const droppedLater = file.sql.some(
        (one) =>
          one.order > use.order &&
          one.statement.kind === 'drop' &&
          sameTable(one.statement.target, statement.target),
      )
      if (dropped || parentIsDropped(use, file)) continue
      // Widened behind the file that makes the table anew.
      const elsewhere = project.dropped.get(statement.target?.parts.slice(-2).join('.') ?? '')
      if (statement.kind === 'alter-table' && [...(elsewhere ?? [])].some((path) => path !== file.path))
        continue
      const fix = guardFix(use)
      yield {
        start: use.start,
        end: use.end,
        message: `The second run stops here, because ${nameOf(statement.target)} is as the first one left it`,
        class: 'unsafe',
        severity: 'warning',
        confidence: droppedLater ? 'low' : file.language === 'shell' ? 'high' : 'low',
        ...(fix === undefined ? {} : { fix }),
      }
    }
  },
}

/** `if not exists` behind `add column`; a table that is made from a query would keep its old rows, so that is not fixed. */
function guardFix({ statement, mapped }: SqlUse): Fix | undefined {
  if (statement.kind !== 'alter-table') return undefined
  const { tokens } = statement
  const adds = tokens.filter(
    (_, index) => isWord(tokens, index, 'add') && isWord(tokens, index + 1, 'column'),
  )
  const add = adds.length === 1 ? adds[0] : undefined
  const column = add === undefined ? undefined : tokens[tokens.indexOf(add) + 1]
  if (column === undefined) return undefined
  const at = mapped.at(column.end - 1) + 1
  return {
    title: 'Add the column only if it is not there',
    safe: true,
    edits: [{ start: at, end: at, text: ' if not exists' }],
  }
}

/** `drop table reading cascade` above `create table reading_1 () inherits (reading)`. */
function parentIsDropped(use: SqlUse, file: FileFacts): boolean {
  const { tokens } = use.statement
  const inherits = findWords(tokens, ['inherits'])
  const part = findWords(tokens, ['partition', 'of'])
  const parent = readName(tokens, inherits >= 0 ? inherits + 2 : part + 2)?.name
  if (parent === undefined || (inherits < 0 && part < 0)) return false
  return file.sql.some(
    ({ order, statement }) =>
      order < use.order &&
      statement.kind === 'drop' &&
      sameTable(statement.target, parent) &&
      // Partitions go with their table, children only with cascade.
      (inherits < 0 || hasWords(statement.tokens, 'cascade')),
  )
}

function lacksGuard(tokens: Tokens, kind: string, guarded: boolean): boolean {
  if (kind === 'create-table') return !guarded
  if (kind === 'alter-table') {
    const adds = tokens.findIndex(
      (_, index) =>
        isWord(tokens, index, 'add') &&
        !isWord(tokens, index + 1, 'constraint', 'partition', 'primary', 'unique', 'foreign', 'index'),
    )
    if (adds < 0) return false
    const at = isWord(tokens, adds + 1, 'column') ? adds + 2 : adds + 1
    return !areWords(tokens, at, ['if', 'not', 'exists'])
  }
  return false
}
