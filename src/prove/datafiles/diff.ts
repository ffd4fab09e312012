import type { DuckDBConnection } from '@duckdb/node-api'
import type { Row } from '../sandbox/cluster.ts'
import { byValues, type ChangedExample, type RowExample, type TableDiff } from '../state/diff.ts'
import { ident, textOf } from '../state/hashing.ts'
import type { LoadedColumn, LoadedTable } from './shape.ts'

const EXAMPLES = 20
const CANDIDATES = 200

/** The rows in which two loads of one table differ. */
export async function diffLoaded(
  connection: DuckDBConnection,
  clean: LoadedTable,
  here: LoadedTable,
  counting: readonly LoadedColumn[],
): Promise<TableDiff> {
  const columns = counting.filter((column) => !column.isGenerated)
  const key = columns.filter((column) => column.isKey)
  const isKeyed = key.length > 0 && key.length === clean.columns.filter((column) => column.isKey).length
  const list = columns.map(({ name }) => ident(name)).join(', ')
  const side = (table: LoadedTable, counts: string) =>
    `select ${columns.map((column) => `${textOf(column)} as ${ident(column.name)}`).join(', ')}, ${counts} from ${table.reference}`
  await connection.run(`
create or replace temp table differing as
select ${list}, sum("stet clean")::bigint as "stet clean", sum("stet here")::bigint as "stet here"
  from (${side(clean, '1 as "stet clean", 0 as "stet here"')} union all ${side(here, '0, 1')})
 group by all
having sum("stet clean") <> sum("stet here")`)
  const totals = await totalsOf(connection, isKeyed ? key : [])
  const found = await connection.runAndReadAll(
    `select ${list}, "stet clean"::varchar, "stet here"::varchar from differing limit ${CANDIDATES}`,
  )
  const examples = found.getRowsJson().map((row): RowExample => {
    const cells = row.map((cell) => (cell === null ? null : String(cell)))
    return {
      values: Object.fromEntries(columns.map(({ name }, n) => [name, cells[n] ?? null])),
      clean: Number(cells[columns.length]),
      here: Number(cells[columns.length + 1]),
    }
  })
  const changes = isKeyed ? await changesOf(connection, columns, key) : []
  // A row that is the same but for some cells is shown as such.
  const shown =
    isKeyed && totals.changed > 0 ? examples.filter(({ clean: n, here: m }) => n > 0 && m > 0) : examples
  return { ...totals, examples: [...shown].sort(byValues).slice(0, EXAMPLES), changes }
}

interface Totals {
  readonly doubled: number
  readonly lost: number
  readonly changed: number
  readonly extra: number
}

async function totalsOf(connection: DuckDBConnection, key: readonly LoadedColumn[]): Promise<Totals> {
  // Without a key a changed row looks like one lost and one that nobody knows.
  const group = key.length === 0 ? '' : `group by ${key.map(({ name }) => ident(name)).join(', ')}`
  const result = await connection.runAndReadAll(`
with classes as (
  select *,
         greatest("stet clean" - "stet here", 0) as is_lost,
         case when "stet clean" = 0 then "stet here" else 0 end as is_extra,
         case when "stet clean" > 0 then greatest("stet here" - "stet clean", 0) else 0 end as is_doubled
    from differing
), groups as (
  select sum(is_doubled) as doubled, sum(is_lost) as lost, sum(is_extra) as extra
    from classes
   ${group}
)
select coalesce(sum(doubled), 0)::varchar,
       coalesce(sum(lost - least(lost, extra)), 0)::varchar,
       coalesce(sum(least(lost, extra)), 0)::varchar,
       coalesce(sum(extra - least(lost, extra)), 0)::varchar
  from groups`)
  const [doubled = 0, lost = 0, changed = 0, extra = 0] = (result.getRowsJson()[0] ?? []).map(Number)
  return { doubled, lost, changed, extra }
}

async function changesOf(
  connection: DuckDBConnection,
  columns: readonly LoadedColumn[],
  key: readonly LoadedColumn[],
): Promise<readonly ChangedExample[]> {
  const both = (alias: string) => columns.map(({ name }) => `${alias}.${ident(name)}`).join(', ')
  const on = key.map(({ name }) => `a.${ident(name)} is not distinct from b.${ident(name)}`).join(' and ')
  const result = await connection.runAndReadAll(`
select ${both('a')}, ${both('b')}
  from differing as a
  join differing as b on ${on}
 where a."stet clean" > a."stet here" and b."stet clean" = 0
 limit ${CANDIDATES}`)
  return result.getRowsJson().map((row): ChangedExample => {
    const cells = row.map((cell) => (cell === null ? null : String(cell)))
    const keys: Row = Object.fromEntries(
      columns.flatMap(({ name, isKey }, n) => (isKey ? [[name, cells[n] ?? null]] : [])),
    )
    return {
      key: keys,
      changes: columns
        .map(({ name }, n) => ({
          column: name,
          clean: cells[n] ?? null,
          here: cells[columns.length + n] ?? null,
        }))
        .filter((cell) => cell.clean !== cell.here),
    }
  })
}
