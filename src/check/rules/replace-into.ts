import { isRerun } from '../context.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'

export const replaceInto: Rule = {
  id: 'replace-into',
  title: 'Update the row instead of replacing it',
  anomaly: 'lost',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Replace deletes the old row and inserts a new one. Columns that the statement does not name are lost, rows that reference it are deleted by their cascade, and a generated id is a new one.',
  advice: 'Use on conflict (key) do update, or on duplicate key update, and set the columns you mean.',
  safeForms: [
    {
      for: 'SQLite, DuckDB',
      code: "insert into product (sku, price) values ('L1', 21.50)\non conflict (sku) do update set price = excluded.price;",
    },
    {
      for: 'MySQL',
      code: "insert into product (sku, price) values ('L1', 21.50)\n    on duplicate key update price = values(price);",
    },
  ],
  prove:
    '`stet prove` compares the table after a rerun: the columns that were set in between are gone (LOST).',
  limits:
    'Without the table in the repository it is unknown whether columns or children are lost; the confidence is then low.',
  bad: [
    {
      why: 'columns that are not named are lost',
      path: 'etl/load.sql',
      lines: [1],
      beside: {
        'etl/schema.sql': 'create table product (sku varchar(20) primary key, name text, price numeric);',
      },
      code: "replace into product (sku, price) values ('L1', 21.50);\n",
    },
    {
      why: 'children go with the cascade',
      path: 'etl/load.sql',
      lines: [1],
      beside: {
        'etl/schema.sql':
          'create table product (sku text primary key, price numeric);\ncreate table review (id int primary key, sku text references product(sku) on delete cascade);',
      },
      code: "insert or replace into product (sku, price) values ('L1', 21.50);\n",
    },
    {
      why: 'MySQL, table unknown',
      path: 'etl/mysql/load.sql',
      lines: [1],
      code: 'replace into product (sku, price) select sku, price from stage;\n',
    },
  ],
  fine: [
    {
      why: 'the whole row of a table without children',
      path: 'etl/load.sql',
      lines: [],
      beside: { 'etl/schema.sql': 'create table setting (k text primary key, v text);' },
      code: "insert or replace into setting (k, v) values ('theme', 'dark');\n",
    },
    {
      why: 'DuckDB updates in place',
      path: 'etl/duckdb/load.sql',
      lines: [],
      code: "insert or replace into setting (k, v) values ('theme', 'dark');\n",
    },
    {
      why: 'replace() is a function',
      path: 'etl/x.sql',
      lines: [],
      code: "select replace(a, 'x', 'y') from t;\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      if (
        statement.conflict?.action !== 'replace' ||
        ['request', 'migration', 'test', 'seed'].includes(use.context)
      )
        continue
      if (['duckdb', 'clickhouse', 'spark'].includes(file.dialect)) continue
      const table = project.catalogue.find(statement.target, file.path)
      const lost =
        table?.columns
          .filter((column) => statement.columns !== undefined && !statement.columns.includes(column.name))
          .map((column) => column.name) ?? []
      const children = table !== undefined && project.catalogue.hasChildren(table)
      if (table !== undefined && table.columns.length > 0 && lost.length === 0 && !children) continue
      const known = lost.length > 0 || children
      // A cache in SQLite is the usual place of `insert or replace`; without its table nothing says that it loses.
      const quiet = (!known && !statement.tokens[0]?.value.startsWith('replace')) || !isRerun(use.context)
      yield {
        start: use.start,
        end: use.end,
        message: known
          ? `Replacing a row of ${nameOf(statement.target)} loses ${[...(lost.length > 0 ? [`its ${lost.join(', ')}`] : []), ...(children ? ['the rows that reference it'] : [])].join(' and ')}`
          : `Replacing a row of ${nameOf(statement.target)} deletes it first: columns not named, children and generated ids are lost`,
        class: quiet ? 'info' : 'unsafe',
        severity: quiet ? 'info' : 'warning',
        confidence: known ? 'high' : 'low',
      }
    }
  },
}
