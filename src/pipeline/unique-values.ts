import type { Contract, ContractColumn } from '../model/columns.ts'
import type { TargetTable, UniqueRule } from '../model/target.ts'
import { countOf } from '../model/words.ts'
import type { Found } from './found.ts'
import type { Attempt } from './workplace.ts'

/**
 * What a plan says of values that a second unique rule of the table lets in only once, and that the load would bring a second
 * time: twice by itself, or once where another row of the table has it. Null where there is nothing to say.
 */
export async function valuesTaken(attempt: Attempt, found: Found): Promise<string | null> {
  const { contract, table, comparison } = found
  const { difference } = comparison
  const written = difference.inserts + difference.updates
  if (table === null || written === 0) return null
  for (const rule of otherRules(table, contract)) {
    const columns = columnsOf(rule, table, contract)
    if (columns === 'of the table') continue
    if (columns === 'unknown' || difference.isInTarget === true || written > VALUES_MAX) {
      attempt.notice(onlyTheRun(rule))
      continue
    }
    const obstacle =
      (await twiceInLoad(attempt, found, rule, columns)) ??
      (await takenInTable(attempt, found, rule, columns))
    if (obstacle !== null) return obstacle
  }
  return null
}

/** So many values go to the target in the text of a query; more would be too long a text. */
const VALUES_MAX = 100_000

function onlyTheRun({ name }: UniqueRule): string {
  return `Whether ${name} takes the rows that would be written, only the run can tell`
}

/** A rule over the key, or over more than the key, holds when the key's own does. */
function otherRules(table: TargetTable, contract: Contract): readonly UniqueRule[] {
  const key = contract.columns.filter((column) => column.key)
  return (table.uniques ?? []).filter(
    ({ columns }) =>
      key.length === 0 ||
      columns === null ||
      !key.every(({ name }) => columns.some((other) => isSameName(table, name, other))),
  )
}

/** The rule's columns; `of the table` where the load writes none of them, `unknown` where it writes some. */
function columnsOf(
  { columns }: UniqueRule,
  table: TargetTable,
  contract: Contract,
): readonly ContractColumn[] | 'of the table' | 'unknown' {
  if (columns === null) return 'unknown'
  const found = contract.columns.filter(({ name }) => columns.some((other) => isSameName(table, name, other)))
  if (found.length === 0) return 'of the table'
  return found.length === columns.length ? found : 'unknown'
}

function isSameName({ namesInAnyCase }: TargetTable, name: string, other: string): boolean {
  return namesInAnyCase === true ? name.toLowerCase() === other.toLowerCase() : name === other
}

/** The rows that would be written and have values by which the rule tells rows apart. */
function writtenSql(
  found: Found,
  { nullsNotDistinct }: UniqueRule,
  columns: readonly ContractColumn[],
): string {
  const told = nullsNotDistinct ? [] : columns.map(({ id }) => `${id} is not null`)
  return `(select * from ${found.comparison.difference.table} where ${["op in ('insert', 'update')", ...told].join(' and ')})`
}

async function twiceInLoad(
  { local }: Attempt,
  found: Found,
  rule: UniqueRule,
  columns: readonly ContractColumn[],
): Promise<string | null> {
  const ids = columns.map(({ id }) => id).join(', ')
  const [row] = await local.rows(
    `select count(*)::integer as rows, ${columns.map(({ id }) => `any_value(${id}::varchar) as w_${id}`).join(', ')}
       from ${writtenSql(found, rule, columns)} as w
      group by ${ids}
     having count(*) > 1
      order by all
      limit 1`,
  )
  if (row === undefined) return null
  return `${row.rows} rows of this load have ${shown(columns, row, 'w_')}, which ${rule.name} lets in once: a run is refused (STET_CONSTRAINT)`
}

async function takenInTable(
  attempt: Attempt,
  found: Found,
  rule: UniqueRule,
  columns: readonly ContractColumn[],
): Promise<string | null> {
  const { local, session } = attempt
  const { contract, comparison } = found
  const written = writtenSql(found, rule, columns)
  const values = local.newName('values')
  const ids = columns.map(({ id }) => id).join(', ')
  await local.run(`create table ${values} as select distinct ${ids} from ${written}`)
  const count = await local.count(`select count(*) from ${values}`)
  if (count === 0) return null
  const asked = {
    ...contract,
    columns: contract.columns.map((column) => ({ ...column, key: columns.includes(column) })),
  }
  const scope = await session.rowsInScope(asked, {
    kind: 'keys',
    keys: values,
    count,
    withoutNulls: !rule.nullsNotDistinct,
  })
  if (scope.unheld.length > 0) {
    attempt.notice(onlyTheRun(rule))
    return null
  }
  const key = contract.columns.filter((column) => column.key)
  // Without a key a row is told by all that it holds.
  const identity = key.length === 0 ? contract.columns : key
  const sameIn = (columns: readonly ContractColumn[], a: string, b: string) =>
    columns.map(({ id }) => `${a}.${id} is not distinct from ${b}.${id}`).join(' and ')
  // Rows are deleted first, changed next and inserted last, so what goes or changes makes room; of two that change, a rule
  // that looks row by row may see the second before the first.
  const [row] = await local.rows(
    `select count(*) over ()::integer as rows, d.op is not null as passes, ${shownSql(columns, 'w', 'w_')}, ${shownSql(identity, 't', 't_')}
       from ${written} as w
       join ${scope.table} as t on ${sameIn(columns, 'w', 't')}
       left join ${comparison.difference.table} as d on d.op in ('update', 'delete') and ${sameIn(identity, 'd', 't')}
      where not (${sameIn(identity, 'w', 't')})
        and (d.op is null ${rule.rowByRow ? "or (d.op = 'update' and w.op = 'update')" : ''})
      order by passes, ${[...columns.map(({ id }) => `w_${id}`), ...identity.map(({ id }) => `t_${id}`)].join(', ')}
      limit 1`,
  )
  if (row === undefined) return null
  const rows = Number(row.rows)
  const holder = key.length === 0 ? 'another row' : `the row ${shown(identity, row, 't_')}`
  return (
    `${countOf(rows, 'row of this load has', 'rows of this load have')} a value that ${rule.name} lets in once, such as ${shown(columns, row, 'w_')}, which ${holder} of the table has: ` +
    (row.passes === true
      ? 'this load takes it from there, and a run is refused (STET_CONSTRAINT) where it comes to the other row first'
      : 'a run is refused (STET_CONSTRAINT)')
  )
}

function shownSql(columns: readonly ContractColumn[], from: string, prefix: string): string {
  return columns.map(({ id }) => `${from}.${id}::varchar as ${prefix}${id}`).join(', ')
}

function shown(
  columns: readonly ContractColumn[],
  row: Readonly<Record<string, unknown>>,
  prefix: string,
): string {
  const textOf = (id: string) => {
    const value = row[`${prefix}${id}`]
    return value === null || value === undefined ? 'NULL' : String(value)
  }
  return columns.map(({ id, name }) => `${name}=${textOf(id)}`).join(' ')
}
