import type { Rule } from '../rule.ts'
import { copyForce } from './copy-force.ts'
import { deleteInsertNoTx } from './delete-insert-no-tx.ts'
import { insertNoKey } from './insert-no-key.ts'
import { maxPlusOne } from './max-plus-one.ts'
import { mergeSourceNotUnique } from './merge-source-not-unique.ts'
import { randomKey } from './random-key.ts'
import { replaceInto } from './replace-into.ts'
import { rowNumberKey } from './row-number-key.ts'
import { selfIncrement } from './self-increment.ts'
import { upsertNoGuard } from './upsert-no-guard.ts'

/** All rules, in the order of the documentation. */
export const RULES: readonly Rule[] = [
  insertNoKey,
  copyForce,
  selfIncrement,
  maxPlusOne,
  randomKey,
  rowNumberKey,
  upsertNoGuard,
  replaceInto,
  mergeSourceNotUnique,
  deleteInsertNoTx,
]
