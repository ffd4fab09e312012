import { StetError } from '../../errors.ts'
import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { TargetColumn, TargetTable, UniqueRule } from '../../model/target.ts'
import { keptRoleOf } from './kept.ts'
import { type DuckDBTableName, showIdentifier } from './table-name.ts'
import { typeOfNative } from './types.ts'

/** A table as the catalog has it. */
export interface FoundTable extends TargetTable {
  /** Columns, or other expressions, of which the values come only once. */
  readonly unique: readonly { readonly columns: readonly string[] }[]
}

/**
 * Looks a table up in the attached file. DuckDB's identifiers are equal without regard to case, also quoted ones.
 *
 * @throws {StetError} `STET_CONFIG` when the name is a view's.
 */
export async function findTable(
  local: LocalConnection,
  catalog: string,
  table: DuckDBTableName,
): Promise<FoundTable | null> {
  const here = (of: string) => `
    ${of}.database_name = ${quoteLiteral(unquoted(catalog))}
    and lower(${of}.schema_name) = lower(${quoteLiteral(table.schema)})`
  const views = await local.count(`
    select count(*)
      from duckdb_views() as v
     where ${here('v')}
       and lower(v.view_name) = lower(${quoteLiteral(table.name)})`)
  if (views > 0) {
    throw new StetError('STET_CONFIG', `Cannot load into ${table.shown}: it is a view`, {
      hint: 'Name the table behind it',
    })
  }
  const named = (of: string) => `${here(of)} and lower(${of}.table_name) = lower(${quoteLiteral(table.name)})`
  const [found] = await local.rows(`
    select t.estimated_size::varchar as rows, t.sql
      from duckdb_tables() as t
     where ${named('t')}`)
  if (found === undefined) return null
  const columns = await local.rows(`
    select c.column_name as name, c.data_type as native, c.is_nullable as nullable, c.column_default as initial, c.comment
      from duckdb_columns() as c
     where ${named('c')}
     order by c.column_index`)
  const constraints = await local.rows(`
    select to_json(k.constraint_column_names)::varchar as columns
      from duckdb_constraints() as k
     where ${named('k')}
       and k.constraint_type in ('PRIMARY KEY', 'UNIQUE')`)
  const indexes = await local.rows(`
    select i.expressions
      from duckdb_indexes() as i
     where ${named('i')}
       and i.is_unique`)
  const judges = await local.rows(`
    select k.constraint_text as name
      from duckdb_constraints() as k
     where ${named('k')}
       and k.constraint_type in ('CHECK', 'FOREIGN KEY')
     order by k.constraint_index`)
  const generated = await generatedColumns(local, `${catalog}.${table.quoted}`, columns)
  const unique = [
    ...constraints.map((row) => ({ columns: namesIn(row.columns) })),
    ...indexes.map((row) => ({ columns: indexedColumns(String(row.expressions)) })),
  ]
  const names = new Set(columns.map((row) => String(row.name)))
  return {
    name: table.shown,
    rowsEstimate: Number(found.rows),
    namesInAnyCase: true,
    columns: columns.map((row) => columnOf(row, generated)),
    unique,
    uniques: unique.map((rule) => uniqueRule(rule.columns, names)),
    judges: judges.map(({ name }) => ({ name: String(name), of: 'written' })),
  }
}

/** What a plan has to know of a unique rule. */
function uniqueRule(columns: readonly string[], names: ReadonlySet<string>): UniqueRule {
  return {
    name: `the unique rule (${columns.map(showIdentifier).join(', ')})`,
    columns: columns.every((name) => names.has(name)) ? columns : null,
    nullsNotDistinct: false,
    rowByRow: false,
  }
}

function columnOf(row: Readonly<Record<string, unknown>>, generated: ReadonlySet<string>): TargetColumn {
  const name = String(row.name)
  const native = String(row.native)
  const nullable = row.nullable === true
  const kept = keptRoleOf(row.comment)
  return {
    name,
    native,
    type: typeOfNative(native),
    nullable,
    generated: generated.has(name),
    optional: nullable || row.initial !== null || generated.has(name),
    ...(kept === undefined ? {} : { kept }),
  }
}

/**
 * The catalog shows the expression of a generated column as if it were a default, always as a cast to its type. Only the
 * binder tells the two apart, so it is asked to prepare (not to run) an insert.
 */
async function generatedColumns(
  local: LocalConnection,
  qualified: string,
  columns: readonly Readonly<Record<string, unknown>>[],
): Promise<ReadonlySet<string>> {
  const generated = new Set<string>()
  for (const { name, initial } of columns) {
    if (String(initial).startsWith('CAST(') && (await refusesInsert(local, qualified, String(name))))
      generated.add(String(name))
  }
  return generated
}

async function refusesInsert(local: LocalConnection, qualified: string, column: string): Promise<boolean> {
  try {
    const statement = await local.duckdb.prepare(
      `insert into ${qualified} (${quoteIdentifier(column)}) select null where false`,
    )
    statement.destroySync()
    return false
  } catch (error) {
    if (error instanceof Error && error.message.includes('generated column')) return true
    throw error
  }
}

/**
 * The columns of an index, which the catalog prints as a list of expressions: `[a, '"odd, name"', '(a + 1)']`. What is no
 * column keeps its own words and so is nobody's name.
 */
function indexedColumns(expressions: string): readonly string[] {
  const items = expressions.slice(1, -1).match(/'(?:[^'\\]|\\.)*'|[^,\s][^,]*/g) ?? []
  return items
    .map((item) => (item.startsWith("'") ? item.slice(1, -1).replaceAll("\\'", "'") : item))
    .map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name))
}

function namesIn(json: unknown): readonly string[] {
  const names: unknown = JSON.parse(String(json))
  return Array.isArray(names) ? names.map(String) : []
}

function unquoted(identifier: string): string {
  return identifier.slice(1, -1).replaceAll('""', '"')
}
