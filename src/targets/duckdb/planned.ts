import type { Contract } from '../../model/columns.ts'
import type { Slice } from '../../model/slice.ts'
import type { Missing, WriteStrategy } from '../../model/write.ts'
import type { FoundTable } from './catalog.ts'
import { isRewritable } from './checks.ts'
import {
  createStatements,
  deleteStatement,
  insertStatement,
  markStatement,
  removeStatement,
  updateStatement,
} from './statements.ts'

export interface Planned {
  readonly name: string
  readonly found: FoundTable | null
  readonly contract: Contract
  readonly write: WriteStrategy
  readonly slice: Slice | null
  /** Whether rows that are there may not change. */
  readonly frozen: boolean
}

/** What `apply` sends where the difference holds rows of each kind, for people. */
export function plannedStatements({
  name,
  found,
  contract,
  write,
  slice,
  frozen,
}: Planned): readonly string[] {
  const insert = insertStatement(name, contract, 'difference', 'insert')
  if (found === null) return [...createStatements(name, contract), insert]
  if (frozen || write.strategy === 'insert-once') return [insert]
  const missing = missingOf(write)
  const hasKey = contract.columns.some((column) => column.key)
  const rewrites = isRewritable(found, contract)
    ? [
        removeStatement(name, contract, 'difference', slice),
        insertStatement(name, contract, 'difference', 'update'),
      ]
    : [updateStatement(name, contract, 'difference', slice)]
  return [
    ...(missing === 'delete' ? [deleteStatement(name, contract, 'difference', slice)] : []),
    ...(missing === 'mark' ? [markStatement(name, contract, 'difference', slice)] : []),
    ...(hasKey ? rewrites : []),
    insert,
  ]
}

function missingOf(write: Exclude<WriteStrategy, { strategy: 'insert-once' }>): Missing {
  if (write.strategy === 'replace-table') return 'delete'
  return write.missing ?? (write.strategy === 'upsert' ? 'keep' : 'delete')
}
