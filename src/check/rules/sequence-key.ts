import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'
import { repeatedInsert } from './insert-no-key.ts'

export const sequenceKey: Rule = {
  id: 'sequence-key',
  title: 'Give a loaded table a key that comes from its rows',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The only key of the table is a number that the database gives each new row. Nothing in it recognises a row that was loaded before, so no load of this table can be repeated.',
  advice:
    'Add a unique key on the natural columns beside the generated id, and insert with on conflict on it.',
  safeForms: [
    {
      for: 'PostgreSQL',
      code: 'create table songplay (\n  songplay_id bigserial primary key,\n  user_id int not null,\n  started_at timestamptz not null,\n  unique (user_id, started_at)\n);',
    },
  ],
  prove: '`stet prove` runs the load twice: all rows are there twice, with new numbers (DOUBLED).',
  limits:
    'Only tables that a load of the same file writes to are judged, since elsewhere a generated id alone may be right.',
  bad: [
    {
      why: 'serial alone, and an insert that loads it',
      path: 'etl/plays.sql',
      lines: [1],
      code: 'create table if not exists songplay (id serial primary key, user_id int, at timestamp);\ninsert into songplay (user_id, at) select user_id, at from stage_play;\n',
    },
    {
      why: 'in the SQL texts of a job',
      path: 'etl/sql_queries.py',
      lines: [2],
      code: 'import psycopg2\ncreate = """CREATE TABLE IF NOT EXISTS plays (id SERIAL PRIMARY KEY, song text)"""\ninsert = """INSERT INTO plays VALUES (DEFAULT, %s)"""\n',
    },
  ],
  fine: [
    {
      why: 'a natural key beside it',
      path: 'etl/plays.sql',
      lines: [],
      code: 'create table if not exists songplay (id serial primary key, user_id int, at timestamp, unique (user_id, at));\ninsert into songplay (user_id, at) select user_id, at from stage_play on conflict (user_id, at) do nothing;\n',
    },
    {
      why: 'nothing loads it here',
      path: 'db/tables.sql',
      lines: [],
      code: 'create table if not exists note (id serial primary key, body text);\n',
    },
    {
      why: 'made anew by each run',
      path: 'etl/plays.sql',
      lines: [],
      code: 'drop table if exists songplay;\ncreate table songplay (id serial primary key, user_id int);\ninsert into songplay (user_id) select user_id from stage_play;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    const told = new Set<number>()
    for (const use of file.sql) {
      const found = repeatedInsert(use, file, project)
      if (found === undefined || !found.generatedKey || found.severity === 'info') continue
      const table = project.catalogue.find(use.statement.target, file.path)
      if (table === undefined || table.path !== file.path || told.has(table.start)) continue
      told.add(table.start)
      yield {
        start: table.start,
        end: table.start + table.name.text.length,
        message: `The only key of ${nameOf(table.name)} is generated, and a load adds rows to it: nothing recognises a row of the run before`,
        class: 'unsafe',
        severity: 'error',
        confidence: 'medium',
      }
    }
  },
}
