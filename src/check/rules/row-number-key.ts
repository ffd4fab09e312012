import { isRerun } from '../context.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { clearedBy, isTemporary, leavesOutExisting } from '../sequence.ts'
import {
  afterBracket,
  findWords,
  insideBracket,
  isSymbol,
  isWord,
  splitByComma,
  type Tokens,
  tokenAt,
} from '../sql/tokens.ts'

const KEY_ALIAS = /^(?:id|pk|sk|key)$|_(?:id|key|sk|pk|skey|surrogate)$|surrogate/i

export interface RowNumber {
  readonly index: number
  /** Behind the window. */
  readonly next: number
  readonly window: Tokens
  readonly alias: string | undefined
  readonly partition: Tokens
  readonly order: readonly Tokens[]
}

export function rowNumbers(tokens: Tokens): RowNumber[] {
  const found: RowNumber[] = []
  for (let index = 0; index < tokens.length; index += 1) {
    if (!isWord(tokens, index, 'row_number') || !isSymbol(tokens, index + 1, '(')) continue
    const over = afterBracket(tokens, index + 1)
    if (!isWord(tokens, over, 'over') || !isSymbol(tokens, over + 1, '(')) continue
    const window = insideBracket(tokens, over + 1)
    const next = afterBracket(tokens, over + 1)
    const alias = isWord(tokens, next, 'as') ? tokenAt(tokens, next + 1) : tokenAt(tokens, next)
    const order = findWords(window, ['order', 'by'])
    const partition = findWords(window, ['partition', 'by'])
    const frame = ['rows', 'range', 'groups']
      .map((word) => findWords(window, [word], order))
      .filter((at) => at > 0)
    found.push({
      index,
      next,
      window,
      alias: alias.kind === 'word' || alias.kind === 'quoted' ? alias.value.toLowerCase() : undefined,
      partition: partition < 0 ? [] : window.slice(partition + 2, order > partition ? order : window.length),
      order: order < 0 ? [] : splitByComma(window.slice(order + 2, frame[0] ?? window.length)),
    })
  }
  return found
}

export const rowNumberKey: Rule = {
  id: 'row-number-key',
  title: 'Do not store row_number() as an id',
  anomaly: 'moved',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The number of a row depends on all the others. A late row shifts the ids of all behind it, ties make them random, and what was stored with the old ids now points to other rows.',
  advice: 'Use a hash of the natural key as the id; keep row_number() for choosing one row.',
  safeForms: [
    {
      for: 'any',
      code: 'create table dim_colour as\nselect md5(lower(name)) as colour_id, name\n  from (select distinct name from paint) as p;',
    },
  ],
  prove:
    '`stet prove` runs the build twice with one more row in the source: the ids of other rows change (NONDETERMINISTIC).',
  limits: 'Whether an id is used outside the statement is not seen; the name of the column decides.',
  bad: [
    {
      why: 'numbers of an unordered set as stored ids',
      path: 'etl/dim.sql',
      lines: [2],
      code: 'insert into dim_colour (colour_id, name)\nselect row_number() over (), name from paint;\n',
    },
    {
      why: 'a surrogate key by order of name',
      path: 'etl/dim.sql',
      lines: [2],
      code: 'create table dim_shop as\nselect row_number() over (order by name) as shop_key, name from shop;\n',
    },
    {
      why: 'ids of Spark partitions',
      path: 'jobs/dim.py',
      lines: [3],
      code: 'from pyspark.sql import functions as F\ndef build(df):\n    df = df.withColumn("customer_id", F.monotonically_increasing_id())\n    df.write.mode("overwrite").saveAsTable("dim_customer")\n',
    },
  ],
  fine: [
    {
      why: 'only used to choose one row',
      path: 'etl/pick.sql',
      lines: [],
      code: 'create table latest as\nselect * from (select *, row_number() over (partition by id order by seq desc, hash) as rn from raw) q where rn = 1;\n',
    },
    {
      why: 'a position inside an order is not an id',
      path: 'etl/lines.sql',
      lines: [],
      code: 'create table lines as select order_no, row_number() over (partition by order_no order by line_no) as line_position from raw;\n',
    },
    {
      why: 'an inner number that is not taken up',
      path: 'etl/areas.sql',
      lines: [],
      code: 'with numbered as (select row_number() over () as id, shape from split),\n grouped as (select id, shape, count(*) as n from numbered group by id, shape)\ninsert into area (shape, n) select shape, n from grouped;\n',
    },
    {
      why: 'nothing is stored',
      path: 'etl/show.sql',
      lines: [],
      code: 'select row_number() over (order by name) as id, name from shop;\n',
    },
    {
      why: 'ids only for rows that have none',
      path: 'etl/dim.sql',
      lines: [],
      code: 'insert into dim (dim_id, name) select m.top + row_number() over (order by s.name), s.name from s cross join m where not exists (select 1 from dim d where d.name = s.name);\n',
    },
  ],
  *check(file): Iterable<Report> {
    for (const use of file.sql) {
      const { statement } = use
      const stored =
        statement.kind === 'insert' ||
        (statement.kind === 'create-table' && statement.rows === 'select' && !statement.temporary) ||
        statement.kind === 'merge' ||
        isStoredModel(file.model)
      if (!stored || ['request', 'migration', 'test'].includes(use.context) || isTemporary(file, use))
        continue
      if (leavesOutExisting(statement.query, statement.target)) continue
      const query = statement.query.length > 0 ? statement.query : statement.tokens
      for (const number of rowNumbers(query)) {
        const column = keyColumn(query, number, statement.columns)
        if (column === undefined || !KEY_ALIAS.test(column) || !isStored(query, number, column)) continue
        const token = tokenAt(query, number.index)
        const start = use.mapped.at(token.start)
        // Numbered within a parent, a late row moves only its siblings.
        const loud = isRerun(use.context) && number.partition.length === 0
        yield {
          start,
          end: start + token.text.length,
          message: `"${column}" is the number of the row among all others: a late row or a tie gives every row behind it another id`,
          class: loud ? 'unsafe' : 'info',
          severity: loud ? 'warning' : 'info',
          confidence: clearedBy(file, use) === undefined ? 'medium' : 'low',
        }
      }
    }
    for (const call of file.host?.calls ?? []) {
      if (call.name !== 'monotonically_increasing_id' || !isRerun(file.contextOf(call.fn))) continue
      const outer = file.host?.calls.find(
        (one) =>
          one.start < call.start &&
          one.end >= call.end &&
          (one.name === 'withColumn' || one.name === 'alias'),
      )
      const name = outer?.args[0] === undefined ? '' : (file.host?.textOf(outer.args[0]) ?? '')
      if (
        !KEY_ALIAS.test(name) &&
        !/monotonically_increasing_id\(\)\s*\.alias\(\s*['"]\w*(?:id|key)['"]/.test(
          file.host?.text.slice(call.start, call.end + 60) ?? '',
        )
      )
        continue
      yield {
        start: call.start,
        end: call.end,
        message:
          'The id depends on how the rows lie in partitions: another run gives the same row another id',
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}

/** A number of an inner select that the outermost select does not take up only helps to join or to group. */
export function isStored(query: Tokens, number: RowNumber, column: string): boolean {
  const depth = tokenAt(query, 0).depth
  const last = query.reduce(
    (found, token, index) => (token.depth === depth && isWord(query, index, 'select') ? index : found),
    -1,
  )
  if (last < 0 || number.index > last) return true
  const end = findWords(query, ['from'], last, depth)
  return query
    .slice(last + 1, end < 0 ? query.length : end)
    .some((token) => token.value === '*' || token.kind === 'hole' || token.value.toLowerCase() === column)
}

function isStoredModel(
  model: { readonly config: { readonly materialized: string | undefined } } | undefined,
): boolean {
  return model?.config.materialized === 'table' || model?.config.materialized === 'incremental'
}

/** The alias, or the column of the insert at that place of the select list. */
function keyColumn(
  query: Tokens,
  number: RowNumber,
  columns: readonly string[] | undefined,
): string | undefined {
  const reserved = ['from', 'over', 'then', 'end', 'else', 'and', 'or']
  if (number.alias !== undefined && !reserved.includes(number.alias)) {
    // A row number that is filtered by is a choice, whatever its name.
    const filtered = query.some(
      (token, index) =>
        index > number.next &&
        token.value.toLowerCase() === number.alias &&
        (isSymbol(query, index + 1, '=') ||
          isSymbol(query, index + 1, '<=') ||
          isSymbol(query, index + 1, '<')),
    )
    return filtered ? undefined : number.alias
  }
  if (columns === undefined) return undefined
  const select = query.findIndex(
    (token, index) => isWord(query, index, 'select') && token.depth === tokenAt(query, number.index).depth,
  )
  if (select < 0 || select > number.index) return undefined
  const before = query
    .slice(select + 1, number.index)
    .filter((token) => token.value === ',' && token.depth === tokenAt(query, number.index).depth).length
  return columns[before]
}
