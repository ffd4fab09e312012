import { identitySql, sameSql } from '../local/typing.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import { type Comparison, markTakenOff, type PlanSample } from '../model/comparison.ts'
import type { LocalConnection } from '../model/local.ts'
import type { RowsInScope } from '../model/target.ts'

/** Rows of each kind that a plan shows. */
const SAMPLES = 5

/** A comparison in the local engine, and the tables that it went by. */
interface Seen {
  readonly contract: Contract
  readonly landed: string
  readonly scope: RowsInScope | null
  readonly comparison: Comparison
}

/** Some rows of the difference of each kind, with what would change. */
export async function samplesOf(local: LocalConnection, seen: Seen): Promise<PlanSample[]> {
  const samples: PlanSample[] = []
  for (const op of ['update', 'delete', 'mark', 'insert'] as const)
    samples.push(...(await samplesOfKind(local, seen, seen.comparison.difference.table, op)))
  return samples
}

/** Some rows of a frozen slice whose source has changed; they stay as they are (G12). */
export async function driftOf(local: LocalConnection, seen: Seen): Promise<readonly PlanSample[]> {
  const { contract, landed, scope, comparison } = seen
  if (scope === null || comparison.frozen === 0) return []
  const differing = local.newName('drift')
  const columns = contract.columns
  const key = columns.filter((column) => column.key)
  const match = (key.length > 0 ? key : columns).map(matchSql).join(' and ')
  const compared = columns.filter((column) => !column.key && !column.ignored)
  const same = ['true', ...compared.map((column) => sameSql(column, `d.${column.id}`, `t.${column.id}`))]
  const hasKey = key.length > 0
  // A row that was marked as gone before it was frozen stays marked, also when it is back.
  const isGone = contract.keep.gone === null ? 'false' : 't.is_gone'
  const where = hasKey
    ? `exists (select 1 from ${scope.table} as t where ${match} and (${isGone} or not (${same.join(' and ')})))`
    : `not exists (select 1 from (${numbered(columns, scope.table)}) as t where t.copy = d.copy and ${match})`
  await local.run(`
    create view ${differing} as
    select 'drift' as op, ${columns.map(({ id }) => `d.${id}`).join(', ')}
      from ${hasKey ? landed : `(${numbered(columns, landed)})`} as d
     where ${where}`)
  return samplesOfKind(local, seen, differing, 'drift')
}

/** Without a key, of equal rows the third of the one side is that of the other. */
function numbered(columns: readonly ContractColumn[], from: string): string {
  const identity = columns.map((column) => identitySql(column, `x.${column.id}`)).join(', ')
  return `select x.*, row_number() over (partition by ${identity}) as copy from ${from} as x`
}

function matchSql(column: ContractColumn): string {
  return `${identitySql(column, `d.${column.id}`)} is not distinct from ${identitySql(column, `t.${column.id}`)}`
}

async function samplesOfKind(
  local: LocalConnection,
  { contract, scope }: Seen,
  from: string,
  op: PlanSample['op'],
): Promise<PlanSample[]> {
  const columns = contract.columns
  const key = columns.filter((column) => column.key)
  const shownKey = key.length > 0 ? key : columns
  const withOld = (op === 'update' || op === 'drift') && scope !== null && key.length > 0
  const goes = op === 'delete' || op === 'mark'
  const old = (column: ContractColumn) => (withOld ? `t.${column.id}::varchar` : 'null')
  const differs = (column: ContractColumn) =>
    withOld ? `not ${sameSql(column, `d.${column.id}`, `t.${column.id}`)}` : 'true'
  const match = key.map(matchSql)
  const isBack = withOld && contract.keep.gone !== null ? 't.is_gone' : 'false'
  const rows = await local.rows(`
    select ${columns
      .map(
        (column) =>
          `d.${column.id}::varchar as ${column.id}, ${old(column)} as o_${column.id}, ${differs(column)} as x_${column.id}`,
      )
      .join(', ')}, ${isBack} as is_back
      from ${from} as d
      ${withOld ? `join ${scope.table} as t on ${match.join(' and ')}` : ''}
     where d.op = '${op}'
     order by ${shownKey.map((column) => `d.${column.id}`).join(', ')}
     limit ${SAMPLES}`)
  const text = (value: unknown) => (value === null || value === undefined ? null : String(value))
  return rows.map((row) => ({
    op,
    key: Object.fromEntries(key.map((column) => [column.name, text(row[column.id])])),
    changes: [
      ...columns
        .filter((column) => !column.key && row[`x_${column.id}`] === true)
        .map((column) => ({
          column: column.name,
          from: goes ? text(row[column.id]) : text(row[`o_${column.id}`]),
          to: goes ? null : text(row[column.id]),
        })),
      ...markTakenOff(contract, row.is_back === true),
    ],
  }))
}
