import { StetError } from '../../errors.ts'
import type { Contract } from '../../model/columns.ts'
import type { Difference } from '../../model/comparison.ts'
import type { LocalConnection } from '../../model/local.ts'
import type { Slice } from '../../model/slice.ts'
import type { Applied } from '../../model/target.ts'
import type { WriteStrategy } from '../../model/write.ts'
import { requireUniqueKey } from './checks.ts'
import { isStoredAsCompared } from './forms.ts'
import { keyMatchSql } from './scope.ts'
import { requireKeysOnlyInSlice } from './slice-key.ts'
import {
  deleteStatement,
  insertStatement,
  markStatement,
  removeStatement,
  restoredStatement,
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
  /** Outside of which no row may be changed; null where the run owns the whole table. */
  readonly slice: Slice | null
  /** Whether rows that are there may not change. */
  readonly frozen: boolean
}

/**
 * Writes the difference in the transaction that the connection is in, and counts what DuckDB says it has written. Nobody
 * else can have written the file since the comparison, so nothing is stale, frozen or already there.
 *
 * @throws {StetError} `STET_COUNTS` when DuckDB has written another number of rows than the comparison found,
 * `STET_KEY_CONSTRAINT` when a key would be there twice.
 */
export async function applyDifference(
  local: LocalConnection,
  table: ApplyTo,
  contract: Contract,
  write: WriteStrategy,
  difference: Difference,
): Promise<Applied> {
  const run = async (statement: string) => (await local.duckdb.run(statement)).rowsChanged
  const { qualified, slice } = table
  const { table: from, inserts, updates, deletes, marks } = difference
  requireFitting(table, write, difference)
  if (slice !== null && !table.created && inserts > 0)
    await requireKeysOnlyInSlice(local, table, contract, write, slice, from)
  // Deletes first: a unique value may pass from a row that goes to one that comes.
  const deleted = deletes === 0 ? 0 : await run(deleteStatement(qualified, contract, from, slice))
  const marked = marks === 0 ? 0 : await run(markStatement(qualified, contract, from, slice))
  let updated = 0
  let restored = 0
  if (updates > 0) {
    const counting = restoredStatement(qualified, contract, from, slice)
    restored = counting === null ? 0 : await local.count(counting)
    if (table.rewritable) {
      updated = await run(removeStatement(qualified, contract, from, slice))
      requireCount('rewritten', await run(insertStatement(qualified, contract, from, 'update')), updated)
    } else {
      const unequal = unequalStatement(qualified, contract, from, slice)
      if (unequal !== null) await run(unequal)
      updated = await run(updateStatement(qualified, contract, from, slice))
    }
  }
  const inserted = inserts === 0 ? 0 : await run(insertStatement(qualified, contract, from, 'insert'))
  requireCount('deleted', deleted, deletes)
  requireCount('marked', marked, marks)
  requireCount('updated', updated, updates)
  requireCount('inserted', inserted, inserts)
  const key = contract.columns.filter((column) => column.key)
  // A new table holds what the load holds, in which every key has one row, and its keys are equal when the load's are.
  const isSure = table.keyEnforced || (table.created && key.every(isStoredAsCompared))
  if (inserted > 0 && !isSure) {
    const among = `semi join (from ${from} where op = 'insert') as stet_d on ${keyMatchSql(key, 'stet_d')}`
    await requireUniqueKey(local, table, contract, write, table.created ? '' : among)
  }
  return { inserted, updated, deleted, marked, restored, unchanged: 0, stale: 0, frozen: 0 }
}

/** What the pipeline has to see to; the table is not trusted to it. */
function requireFitting(table: ApplyTo, write: WriteStrategy, difference: Difference): void {
  if (write.strategy === 'replace-partition' && table.slice === null) {
    throw new StetError('STET_INTERNAL', `A slice of ${table.name} was to be replaced, and none was named`)
  }
  const { updates, deletes, marks } = difference
  if (table.frozen && updates + deletes + marks > 0) {
    throw new StetError(
      'STET_INTERNAL',
      `${table.name} is frozen (G12), and ${updates + deletes + marks} of its rows were to be changed; nothing was written`,
    )
  }
}

function requireCount(what: string, found: number, expected: number): void {
  if (found === expected) return
  throw new StetError(
    'STET_COUNTS',
    `DuckDB has ${what} ${found} rows where the comparison found ${expected} (G6); nothing was written`,
  )
}
