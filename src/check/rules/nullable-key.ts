import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { nameOf } from '../sequence.ts'

export const nullableKey: Rule = {
  id: 'nullable-key',
  title: 'Keep NULL out of the key rows are met by',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'NULL equals nothing, also not NULL. A row whose key has a NULL in it meets no row of the run before: the conflict clause or the merge inserts it again each time.',
  advice:
    'Declare the key columns not null, use a unique key with nulls not distinct, or coalesce the column in the key.',
  safeForms: [
    {
      for: 'PostgreSQL 15',
      code: 'alter table stock_count\n  add constraint stock_count_key unique nulls not distinct (region, shop, day);',
    },
    {
      for: 'dbt',
      code: 'models:\n  - name: stock\n    columns:\n      - name: region\n        data_tests: [not_null]',
    },
  ],
  prove: '`stet prove` loads a row with NULL in its key twice (DOUBLED).',
  limits:
    'Nullability is known from DDL, `--schema` and dbt properties; a model without properties is not judged.',
  bad: [
    {
      why: 'a column of the conflict target may be NULL',
      path: 'etl/load.sql',
      lines: [1],
      beside: {
        'etl/schema.sql':
          'create table stock_count (region text, shop text not null, qty int, unique (region, shop));',
      },
      code: "insert into stock_count (region, shop, qty) values (%s, 'S02', 9)\n  on conflict (region, shop) do update set qty = excluded.qty;\n",
    },
    {
      why: 'a column of the unique_key has no not_null test',
      path: 'models/stock.sql',
      lines: [1],
      beside: {
        'models/schema.yml':
          'models:\n  - name: stock\n    columns:\n      - name: region\n      - name: shop\n        tests: [not_null]\n',
      },
      code: "{{ config(materialized='incremental', unique_key=['region', 'shop']) }}\nselect region, shop from {{ ref('stg_stock') }}\n",
    },
  ],
  fine: [
    {
      why: 'all columns are not null',
      path: 'etl/load.sql',
      lines: [],
      beside: {
        'etl/schema.sql':
          'create table stock_count (region text not null, shop text not null, qty int, unique (region, shop));',
      },
      code: 'insert into stock_count (region, shop, qty) values (%s, %s, 9) on conflict (region, shop) do update set qty = excluded.qty;\n',
    },
    {
      why: 'a primary key is not null by itself',
      path: 'etl/load.sql',
      lines: [],
      beside: { 'etl/schema.sql': 'create table member (member_no text primary key, name text);' },
      code: 'insert into member (member_no, name) values (%s, %s) on conflict (member_no) do update set name = excluded.name;\n',
    },
    {
      why: 'nulls not distinct',
      path: 'etl/load.sql',
      lines: [],
      beside: {
        'etl/schema.sql':
          'create table c (region text, shop text, unique nulls not distinct (region, shop));',
      },
      code: 'insert into c (region, shop) values (%s, %s) on conflict (region, shop) do nothing;\n',
    },
    {
      why: 'the table is not known',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into c (region, shop) values (%s, %s) on conflict (region, shop) do nothing;\n',
    },
    {
      why: 'the column is coalesced in the model',
      path: 'models/stock.sql',
      lines: [],
      beside: {
        'models/schema.yml':
          'models:\n  - name: stock\n    columns:\n      - name: region\n      - name: shop\n        tests: [not_null]\n',
      },
      code: "{{ config(materialized='incremental', unique_key=['region', 'shop']) }}\nselect coalesce(region, 'web') as region, shop from {{ ref('stg_stock') }}\n",
    },
    {
      why: 'a model without properties is not judged',
      path: 'models/stock.sql',
      lines: [],
      code: "{{ config(materialized='incremental', unique_key=['region', 'shop']) }}\nselect region, shop from {{ ref('stg_stock') }}\n",
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.model !== undefined) {
      yield* inModel(file)
      return
    }
    for (const use of file.sql) {
      if (['request', 'migration', 'test'].includes(use.context)) continue
      const found = inStatement(use, file, project)
      if (found !== undefined) yield found
    }
  },
}

function inStatement(use: SqlUse, file: FileFacts, project: ProjectFacts): Report | undefined {
  const { conflict, target, columns, query } = use.statement
  if (conflict?.columns === undefined || conflict.columns.length === 0) return undefined
  const table = project.catalogue.find(target, file.path)
  if (table === undefined || table.fromQuery) return undefined
  const wanted = conflict.columns.map((column) => column.toLowerCase())
  const key = table.keys.find(
    (one) => one.columns.length === wanted.length && one.columns.every((column) => wanted.includes(column)),
  )
  if (key === undefined || key.primary || key.nullsNotDistinct) return undefined
  const nullable = wanted.filter((name) =>
    table.columns.some((column) => column.name === name && !column.notNull && !column.defaulted),
  )
  // A column that is given a constant or a coalesce is never NULL here.
  const open = nullable.filter(
    (name) =>
      !query.some((token) => token.value === 'coalesce' || token.value === 'ifnull') ||
      columns === undefined ||
      !columns.includes(name),
  )
  if (open.length === 0) return undefined
  return {
    start: use.start,
    end: use.end,
    message: `${open.map((name) => `"${name}"`).join(', ')} of the key of ${nameOf(target)} may be NULL: such a row never conflicts and is inserted again by each run`,
    class: isRerun(use.context) ? 'unsafe' : 'info',
    severity: isRerun(use.context) ? 'warning' : 'info',
    confidence: 'high',
  }
}

function* inModel(file: FileFacts): Iterable<Report> {
  const { model } = file
  if (model === undefined || model.config.materialized !== 'incremental' || !model.hasProperties) return
  const key = model.config.uniqueKey
  if (key === undefined || key.length < 2) return
  if (
    ['insert_overwrite', 'microbatch', 'append', 'delete+insert'].includes(model.config.strategy ?? '') &&
    model.config.strategy !== 'delete+insert'
  )
    return
  const open = key.filter((column) => {
    const name = column.toLowerCase()
    const known = model.columns.get(name)
    if (known?.notNull || !/^\w+$/.test(name)) return false
    const given = `(?:\\b(?:coalesce|ifnull|nvl|concat|md5|surrogate_key)\\b[^\\n]*|'[^'\\n]*'|\\}\\}'?|\\d)(?:::\\w+)?\\s+as\\s+"?${name}\\b`
    return (
      !new RegExp(given, 'i').test(file.text) &&
      !new RegExp(`\\b${name}\\s+is\\s+not\\s+null`, 'i').test(file.text)
    )
  })
  // Only where the author tests the other columns of the key and lists this one does a missing test say something.
  const watched = model.uniqueCombination.some((columns) =>
    key.every((column) => columns.includes(column.toLowerCase())),
  )
  const tested =
    !watched &&
    key.some((column) => model.columns.get(column.toLowerCase())?.notNull) &&
    open.some((column) => model.columns.has(column.toLowerCase()))
  if (open.length === 0) return
  yield {
    start: model.config.start,
    end: model.config.end,
    message: `${open.map((name) => `"${name}"`).join(', ')} of the unique_key may be NULL (no not_null test): such a row meets nothing and is inserted again by each run`,
    class: tested ? 'unsafe' : 'info',
    severity: tested ? 'warning' : 'info',
    confidence: 'low',
  }
}
