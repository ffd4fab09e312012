import { StetError } from '../../errors.ts'
import type { Contract } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Applied, Difference } from '../../model/target.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { requireUniqueKey } from './checks.ts'
import { isStoredAsCompared } from './forms.ts'
import { keyMatchSql } from './scope.ts'
import {
  deleteStatement,
  insertStatement,
  removeStatement,
  unequalStatement,
  updateStatement,
} from './statements.ts'

export interface ApplyTo {
  readonly name: string
  readonly qualified: string
  /** Whether a rule of the table keeps its key unique; where none does, Stet sees to it. */
  readonly keyEnforced: boolean
  /** Whether this transaction has made the table. */
  readonly created: boolean
  /** Whether a row may be written anew in place of being updated; see {@link isRewritable}. */
  readonly rewritable: boolean
}

/**
 * Writes the difference in the transaction that the connection is in, and counts what DuckDB says it has written. Nobody
 * else can have written the file since the comparison, so nothing is stale, frozen or already there.
 *
 * @throws {StetError} `STET_COUNTS` when DuckDB has written another number of rows than the comparison found.
 */
export async function applyDifference(
  local: LocalConnection,
  table: ApplyTo,
  contract: Contract,
  write: WriteStrategy,
  difference: Difference,
): Promise<Applied> {
  const run = async (statement: string) => (await local.duckdb.run(statement)).rowsChanged
  const { qualified } = table
  // Deletes first: a unique value may pass from a row that goes to one that comes.
  const deleted =
    difference.deletes === 0 ? 0 : await run(deleteStatement(qualified, contract, difference.table))
  let updated = 0
  if (difference.updates > 0 && table.rewritable) {
    updated = await run(removeStatement(qualified, contract, difference.table))
    requireCount(
      'rewritten',
      await run(insertStatement(qualified, contract, difference.table, 'update')),
      updated,
    )
  } else if (difference.updates > 0) {
    const unequal = unequalStatement(qualified, contract, difference.table)
    if (unequal !== null) await run(unequal)
    updated = await run(updateStatement(qualified, contract, difference.table))
  }
  const inserted =
    difference.inserts === 0 ? 0 : await run(insertStatement(qualified, contract, difference.table, 'insert'))
  requireCount('deleted', deleted, difference.deletes)
  requireCount('updated', updated, difference.updates)
  requireCount('inserted', inserted, difference.inserts)
  const key = contract.columns.filter((column) => column.key)
  // A new table holds what the load holds, in which every key has one row, and its keys are equal when the load's are.
  const isSure = table.keyEnforced || (table.created && key.every(isStoredAsCompared))
  if (inserted > 0 && !isSure) {
    const among = `semi join (from ${difference.table} where op = 'insert') as stet_d on ${keyMatchSql(key, 'stet_d')}`
    await requireUniqueKey(local, table, contract, write, table.created ? '' : among)
  }
  return { inserted, updated, deleted, unchanged: 0, stale: 0, frozen: 0 }
}

function requireCount(what: string, found: number, expected: number): void {
  if (found === expected) return
  throw new StetError(
    'STET_COUNTS',
    `DuckDB has ${what} ${found} rows where the comparison found ${expected} (G6); nothing was written`,
  )
}
