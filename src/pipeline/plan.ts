import { digestOf } from '../local/digest.ts'
import { interruptOnAbort, openLocalEngine } from '../local/engine.ts'
import { identitySql, sameSql } from '../local/typing.ts'
import type { ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { countsOf, findDifference, type Found, labelsOf, noticesOf, reported, targetOptions } from './run.ts'
import type { DefinedPipeline, Plan, PlanSample, RunOptions } from './types.ts'

/** Rows of each kind that a plan shows. */
const SAMPLES = 5

/**
 * What a run would do: the same reading, checking and comparing, without the last step. Changes neither the target's
 * table nor the record, and needs no more than the right to read.
 *
 * @throws what {@link run} throws before it writes.
 * @example
 * const { counts, samples } = await plan(orders)
 */
export async function plan(pipeline: DefinedPipeline, options: RunOptions = {}): Promise<Plan> {
  const signal = options.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const notices = noticesOf(options)
  await using local = await openLocalEngine({ memoryLimit: options.memoryLimit, threads: options.threads })
  await local.run('set preserve_insertion_order = false')
  const stopListening = interruptOnAbort(local, signal)
  try {
    await using session = await pipeline.target.open(
      targetOptions(pipeline, options, local, signal, notices.add, 'plan'),
    )
    const found = await findDifference(pipeline, options, local, session, signal, notices.add)
    const { inserts, updates, deletes } = found.comparison.difference
    const asFound = {
      inserted: inserts,
      updated: updates,
      unchanged: 0,
      stale: 0,
      frozen: 0,
      deleted: deletes,
    }
    return {
      format: 'stet-plan-1',
      ...labelsOf(pipeline),
      creates: found.table === null,
      counts: countsOf(found.rows, found.comparison, asFound),
      samples: await samplesOf(local, found),
      columns: reported(found.contract),
      statements: session.statements(),
      files: found.files,
      rejects: found.rows.rejects,
      notices: notices.all,
      digest: await digestOf(local, found.comparison.difference.table, found.contract),
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    stopListening()
  }
}

async function samplesOf(local: LocalConnection, found: Found): Promise<PlanSample[]> {
  const samples: PlanSample[] = []
  for (const op of ['update', 'delete', 'insert'] as const)
    samples.push(...(await samplesOfKind(local, found, op)))
  return samples
}

async function samplesOfKind(
  local: LocalConnection,
  found: Found,
  op: PlanSample['op'],
): Promise<PlanSample[]> {
  const { contract, comparison, scope } = found
  const columns = contract.columns
  const key = columns.filter((column) => column.key)
  const shownKey = key.length > 0 ? key : columns
  const withOld = op === 'update' && scope !== null && key.length > 0
  const old = (column: ContractColumn) => (withOld ? `t.${column.id}::varchar` : 'null')
  const differs = (column: ContractColumn) =>
    withOld ? `not ${sameSql(column, `d.${column.id}`, `t.${column.id}`)}` : 'true'
  const match = key.map(
    (column) =>
      `${identitySql(column, `d.${column.id}`)} is not distinct from ${identitySql(column, `t.${column.id}`)}`,
  )
  const rows = await local.rows(`
    select ${columns
      .map(
        (column) =>
          `d.${column.id}::varchar as ${column.id}, ${old(column)} as o_${column.id}, ${differs(column)} as x_${column.id}`,
      )
      .join(', ')}
      from ${comparison.difference.table} as d
      ${withOld ? `join ${scope.table} as t on ${match.join(' and ')}` : ''}
     where d.op = '${op}'
     order by ${shownKey.map((column) => `d.${column.id}`).join(', ')}
     limit ${SAMPLES}`)
  const text = (value: unknown) => (value === null || value === undefined ? null : String(value))
  return rows.map((row) => ({
    op,
    key: Object.fromEntries(key.map((column) => [column.name, text(row[column.id])])),
    changes: columns
      .filter((column) => !column.key && row[`x_${column.id}`] === true)
      .map((column) => ({
        column: column.name,
        from: op === 'delete' ? text(row[column.id]) : text(row[`o_${column.id}`]),
        to: op === 'delete' ? null : text(row[column.id]),
      })),
  }))
}
