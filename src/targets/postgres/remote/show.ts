import type { ContractColumn } from '../../../model/columns.ts'
import { markTakenOff, type PlanSample } from '../../../model/comparison.ts'
import { inTable, keyOf } from '../sql.ts'
import { differsThere, isGoneSql, keyMatchThere } from './compare-sql.ts'
import { type Asked, type RemoteContext, STAGE } from './stage.ts'

// What people see of a comparison inside the server; only these rows leave it.

/** Rows of each kind that a plan shows. */
const SAMPLES = 5

/** @param relation Rows like those of the difference. */
export async function samplesOf(
  connection: Asked,
  context: RemoteContext,
  relation: string,
): Promise<readonly PlanSample[]> {
  const samples: PlanSample[] = []
  for (const op of ['update', 'delete', 'mark', 'insert'] as const)
    samples.push(
      ...(await samplesOfKind(
        connection,
        context,
        `(select * from ${relation} as x where x.op = '${op}')`,
        op,
      )),
    )
  return samples
}

/** Some rows of the load that the table holds otherwise, or, without a key, does not hold. */
export function driftOf(connection: Asked, context: RemoteContext): Promise<readonly PlanSample[]> {
  const { contract, identity } = context
  const differ = contract.columns
    .filter(({ key, ignored }) => !key && !ignored)
    .map((column) => differsThere(context, column, inTable('t')(column), `s.${column.id}`))
  const condition =
    keyOf(contract).length > 0
      ? `exists (select from ${identity.qualified} as t where ${keyMatchThere(context)} and (${[isGoneSql(context), ...differ].join(' or ')}))`
      : `exists (select from pg_temp.stet_pairs as p where p.table_row is null and p.load_row = s.ctid::text)`
  return samplesOfKind(connection, context, `(select s.* from ${STAGE} as s where ${condition})`, 'drift')
}

async function samplesOfKind(
  connection: Asked,
  context: RemoteContext,
  relation: string,
  op: PlanSample['op'],
): Promise<readonly PlanSample[]> {
  const { contract, identity, table } = context
  const columns = contract.columns
  const key = keyOf(contract)
  const withOld = (op === 'update' || op === 'drift') && table !== null && key.length > 0
  const goes = op === 'delete' || op === 'mark'
  const old = (column: ContractColumn) => (withOld ? `${inTable('t')(column)}::text` : 'null')
  const differs = (column: ContractColumn) =>
    withOld ? differsThere(context, column, inTable('t')(column), `s.${column.id}`) : 'true'
  const shownKey = key.length > 0 ? key : columns
  const rows = await connection.query(`
    select ${columns
      .map(
        (column) =>
          `s.${column.id}::text as ${column.id}, ${old(column)} as o_${column.id}, ${differs(column)} as x_${column.id}`,
      )
      .join(', ')}, ${withOld ? isGoneSql(context) : 'false'} as is_back
      from ${relation} as s
      ${withOld ? `join ${identity.qualified} as t on ${keyMatchThere(context)}` : ''}
     order by ${shownKey.map(({ id }) => `s.${id}::text collate "C"`).join(', ')}
     limit ${SAMPLES}`)
  return rows.map((row) => ({
    op,
    key: Object.fromEntries(key.map(({ id, name }) => [name, row[id] ?? null])),
    changes: [
      ...columns
        .filter(({ key: isKey, id }) => !isKey && row[`x_${id}`] === 't')
        .map(({ id, name }) => ({
          column: name,
          from: goes ? (row[id] ?? null) : (row[`o_${id}`] ?? null),
          to: goes ? null : (row[id] ?? null),
        })),
      ...markTakenOff(contract, row.is_back === 't'),
    ],
  }))
}

/** A digest of a difference that does not depend on the order of its rows; each value goes in with its length. */
export async function digestOf(
  connection: Asked,
  { contract }: RemoteContext,
  relation: string,
): Promise<string> {
  const values = contract.columns.map(({ id, type }) =>
    type.kind === 'numeric' ? `trim_scale(d.${id})::text` : `d.${id}::text`,
  )
  const framed = ['d.op', ...values].map(
    (value) => `coalesce(length(${value})::text || ':' || ${value}, '-')`,
  )
  // Sums, unlike xor, do not let a doubled row cancel itself out.
  const half = (from: number) =>
    `coalesce(sum(('x' || substr(hash, ${from}, 16))::bit(64)::bigint::numeric), 0)`
  const [row] = await connection.query(
    `select md5($1) || '-' || count(*) || '-' || ${half(1)} || '-' || ${half(17)} as digest
       from (select md5(${framed.join(' || ')}) as hash from ${relation} as d) as hashed`,
    [contract.columns.map(({ name }) => name).join(',')],
  )
  return row?.digest ?? ''
}
