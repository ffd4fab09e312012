import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { isTemporary, sourceTables } from '../sequence.ts'
import { columnOf, findWords, isSymbol, isWord, splitByComma, type Tokens, tokenAt } from '../sql/tokens.ts'
import { isStored, type RowNumber, rowNumbers } from './row-number-key.ts'

export const nondeterministicPick: Rule = {
  id: 'nondeterministic-pick',
  title: 'Break ties when one row of several is stored',
  anomaly: 'different',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Several rows fit and nothing says which one to take. The same rows give another table on the next build, and rows that were joined to the first choice no longer fit.',
  advice: 'Order by enough columns to be unique, the last one a hash or an id; give limit an order by.',
  safeForms: [
    {
      for: 'any',
      code: 'select id, name\n  from (\n    select *, row_number() over (partition by id order by load_seq desc, row_hash) as n\n      from contact_raw\n  ) as q\n where n = 1;',
    },
  ],
  prove: '`stet prove` builds the table twice from rows in another order (NONDETERMINISTIC).',
  limits: 'Where the source table and its keys are unknown, an order by one column is only a hint.',
  bad: [
    {
      why: 'several rows share the date they are ordered by',
      path: 'etl/build.sql',
      lines: [3],
      beside: {
        'etl/schema.sql':
          'create table contact_raw (id int, load_date date, load_seq bigint unique, name text);',
      },
      code: 'create table latest as\nselect id, name from (\n  select *, row_number() over (partition by id order by load_date desc) as n from contact_raw\n) q where n = 1;\n',
    },
    {
      why: 'limit without an order',
      path: 'etl/build.sql',
      lines: [1],
      code: 'insert into sample_rows select * from big_table limit 1000;\n',
    },
    {
      why: 'numbers of an unordered set',
      path: 'etl/build.sql',
      lines: [2],
      code: 'insert into dim_colour (colour_id, name)\nselect row_number() over (), name from paint;\n',
    },
  ],
  fine: [
    {
      why: 'grouped by what the window divides and orders by',
      path: 'etl/build.sql',
      lines: [],
      beside: {
        'etl/schema.sql':
          'create table chart (row_no int primary key, stay_id int, at timestamp, score int);\n',
      },
      code: 'create table scores as\nselect q.* from (\n  select stay_id, at, max(score) as score, row_number() over (partition by stay_id order by at) as n\n    from chart group by stay_id, at\n) as q where n = 1;\n',
    },
    {
      why: 'an inner number that only helps to group',
      path: 'etl/areas.sql',
      lines: [],
      code: 'with numbered as (select row_number() over () as id, shape from split),\n grouped as (select id, shape, count(*) as n from numbered group by id, shape)\ninsert into area (shape, n) select shape, n from grouped;\n',
    },
    {
      why: 'the order is unique',
      path: 'etl/build.sql',
      lines: [],
      beside: {
        'etl/schema.sql':
          'create table contact_raw (id int, load_date date, load_seq bigint unique, name text);',
      },
      code: 'create table latest as select * from (select *, row_number() over (partition by id order by load_seq desc) as n from contact_raw) q where n = 1;\n',
    },
    {
      why: 'a tie-break follows',
      path: 'etl/build.sql',
      lines: [],
      beside: { 'etl/schema.sql': 'create table contact_raw (id int, load_date date, row_hash text);' },
      code: 'create table latest as select * from (select *, row_number() over (partition by id order by load_date desc, row_hash) as n from contact_raw) q where n = 1;\n',
    },
    {
      why: 'limit with an order',
      path: 'etl/build.sql',
      lines: [],
      code: 'insert into top_rows select * from big_table order by score desc, id limit 10;\n',
    },
    {
      why: 'nothing is stored',
      path: 'etl/look.sql',
      lines: [],
      code: 'select * from big_table limit 10;\n',
    },
    {
      why: 'exists asks for any row',
      path: 'etl/build.sql',
      lines: [],
      code: 'insert into flags select a.id from a where exists (select 1 from b where b.id = a.id limit 1);\n',
    },
    {
      why: 'an empty copy of a structure',
      path: 'etl/build.sql',
      lines: [],
      code: 'create table like_it as select * from t limit 0;\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      const model =
        file.model?.config.materialized === 'table' || file.model?.config.materialized === 'incremental'
      const stored =
        statement.kind === 'insert' ||
        (statement.kind === 'create-table' && statement.rows === 'select' && !statement.temporary) ||
        statement.kind === 'merge' ||
        (model && statement.kind === 'select')
      if (!stored || ['request', 'migration', 'test', 'seed'].includes(use.context) || isTemporary(file, use))
        continue
      const query = statement.query.length > 0 ? statement.query : statement.tokens
      yield* picks(query, use, file, project)
      yield* limits(query, use)
    }
  },
}

function isHelper(query: Tokens, number: RowNumber, alias: string): boolean {
  const chooses = query.some(
    (token, index) =>
      index > number.next &&
      token.value.toLowerCase() === alias &&
      ['=', '<', '<=', 'in', 'between'].includes(tokenAt(query, index + 1).value),
  )
  return !chooses && !isStored(query, number, alias)
}

/** `row_number() ... = 1` by an order that has ties. */
function* picks(query: Tokens, use: SqlUse, file: FileFacts, project: ProjectFacts): Iterable<Report> {
  for (const number of rowNumbers(query)) {
    const unordered = number.order.length === 0
    if (!unordered && number.order.length > 1) continue
    const filtered =
      isWord(query, number.next, 'as') || number.alias !== undefined || isSymbol(query, number.next, '=')
    if (!unordered && !filtered) continue
    // An inner number that only helps to join or to group is not stored.
    if (unordered && number.alias !== undefined && isHelper(query, number, number.alias)) continue
    const grouped = groupedBy(query, number)
    const known =
      grouped === undefined
        ? knownTies(query, number.order[0] ?? [], number.partition, file, project)
        : tiesOfGroups(grouped, number)
    if (known === 'unique') continue
    const token = tokenAt(query, number.index)
    const start = use.mapped.at(token.start)
    const loud =
      (unordered && use.statement.kind === 'insert' && number.partition.length === 0) || known === 'ties'
    yield {
      start,
      end: start + token.text.length,
      message: unordered
        ? 'The rows are numbered in no order: each build numbers them as they come'
        : `Rows with the same ${shortOrder(number.order[0] ?? [])} are numbered as they come: each build may keep another one`,
      class: loud ? 'unsafe' : 'info',
      severity: loud ? 'warning' : 'info',
      confidence: known === 'ties' ? 'high' : 'low',
    }
  }
}

function shortOrder(order: Tokens): string {
  const column = columnOf(
    order.filter((token) => !['asc', 'desc', 'nulls', 'first', 'last'].includes(token.value)),
  )
  return column === undefined ? 'order value' : `"${column}"`
}

/** Whether the column is unique, together with the partition, in a source table that the repository declares. */
function knownTies(
  query: Tokens,
  order: Tokens,
  partition: Tokens,
  file: FileFacts,
  project: ProjectFacts,
): 'unique' | 'ties' | 'unknown' {
  const column = columnOf(
    order.filter((token) => !['asc', 'desc', 'nulls', 'first', 'last'].includes(token.value)),
  )
  if (column === undefined) return 'unknown'
  let answer: 'unique' | 'ties' | 'unknown' = 'unknown'
  for (const name of sourceTables(query)) {
    const table = project.catalogue.find(name, file.path)
    if (table === undefined || table.fromQuery || !table.columns.some((one) => one.name === column)) continue
    const groups = partition.map((token) => token.value.toLowerCase())
    const unique = table.keys.some((key) =>
      key.columns.every((one) => one === column || groups.includes(one)),
    )
    if (unique) return 'unique'
    answer = 'ties'
  }
  return answer
}

/** The keys of `group by` in the select that the number stands in: the window numbers groups, not rows of a table. */
function groupedBy(query: Tokens, { index }: RowNumber): readonly string[] | undefined {
  const { depth } = tokenAt(query, index)
  const end = query.findIndex((token, at) => at > index && token.depth < depth)
  const upTo = end < 0 ? query.length : end
  const from = findWords(query, ['group', 'by'], index, depth)
  if (from < 0 || from > upTo) return undefined
  const stop = query.findIndex(
    (token, at) =>
      at > from + 1 &&
      (at >= upTo ||
        (token.depth === depth &&
          isWord(query, at, 'having', 'order', 'limit', 'union', 'qualify', 'window'))),
  )
  return splitByComma(query.slice(from + 2, stop < 0 ? upTo : stop)).map((part) => columnOf(part) ?? '')
}

/** Groups that differ in what the window divides and orders by have no ties; of others nothing is known. */
function tiesOfGroups(keys: readonly string[], { order, partition }: RowNumber): 'unique' | 'unknown' {
  const covered = new Set(
    [...order, ...splitByComma(partition)].map((part) =>
      columnOf(part.filter((token) => !['asc', 'desc', 'nulls', 'first', 'last'].includes(token.value))),
    ),
  )
  return keys.every((key) => key !== '' && covered.has(key)) ? 'unique' : 'unknown'
}

function* limits(query: Tokens, use: SqlUse): Iterable<Report> {
  for (let at = findWords(query, ['limit']); at >= 0; at = findWords(query, ['limit'], at + 1)) {
    const count = tokenAt(query, at + 1)
    const { depth } = tokenAt(query, at)
    if (
      count.value === '0' ||
      count.kind === 'hole' ||
      isWord(query, at - 1, 'offset') ||
      isSymbol(query, at - 1, '.') ||
      isSymbol(query, at + 1, '=')
    )
      continue
    if (count.kind !== 'number') continue
    const begin = selectBefore(query, at, depth)
    if (begin < 0) continue
    const ordered = query
      .slice(begin, at)
      .some(
        (token, index, part) =>
          token.depth === depth && isWord(part, index, 'order') && isWord(part, index + 1, 'by'),
      )
    const inExists =
      isWord(query, begin - 2, 'exists') ||
      isWord(query, begin - 2, 'in') ||
      (count.value === '1' && depth > (query[0]?.depth ?? 0))
    if (ordered || inExists) continue
    const start = use.mapped.at(tokenAt(query, at).start)
    const loud =
      depth === (query[0]?.depth ?? 0) &&
      count.value !== '1' &&
      use.statement.kind !== 'select' &&
      (use.context === 'script' || use.context === 'task')
    yield {
      start,
      end: start + 5,
      message: `${count.value} rows are stored and nothing says which: each run takes others`,
      class: loud ? 'unsafe' : 'info',
      severity: loud ? 'warning' : 'info',
      confidence: loud ? 'medium' : 'low',
    }
  }
}

/** The `select` of the same level that the limit belongs to. */
function selectBefore(query: Tokens, at: number, depth: number): number {
  for (let index = at - 1; index >= 0; index -= 1) {
    const token = tokenAt(query, index)
    if (token.depth < depth) return -1
    if (token.depth === depth && isWord(query, index, 'select')) return index
  }
  return -1
}
