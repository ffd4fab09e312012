import type { Rule } from '../rule.ts'
import { appendLoad } from './append-load.ts'
import { clockInPath } from './clock-in-path.ts'
import { copyForce } from './copy-force.ts'
import { dataframeAppend } from './dataframe-append.ts'
import { dbtHookDml } from './dbt-hook-dml.ts'
import { dbtNoKey } from './dbt-no-key.ts'
import { dbtUnfiltered } from './dbt-unfiltered.ts'
import { dbtVolatileKey } from './dbt-volatile-key.ts'
import { ddlNoGuard } from './ddl-no-guard.ts'
import { deleteInsertNoTx } from './delete-insert-no-tx.ts'
import { effectBeforeCommit } from './effect-before-commit.ts'
import { effectInRetry } from './effect-in-retry.ts'
import { fileAppend } from './file-append.ts'
import { freshKey } from './fresh-key.ts'
import { insertNoKey } from './insert-no-key.ts'
import { lastRunLookup } from './last-run-lookup.ts'
import { maxPlusOne } from './max-plus-one.ts'
import { mergeSourceNotUnique } from './merge-source-not-unique.ts'
import { nondeterministicPick } from './nondeterministic-pick.ts'
import { nullableKey } from './nullable-key.ts'
import { ormCreateInLoad } from './orm-create-in-load.ts'
import { parseTimeClock } from './parse-time-clock.ts'
import { postNoKey } from './post-no-key.ts'
import { publishNoDedupe } from './publish-no-dedupe.ts'
import { randomKey } from './random-key.ts'
import { replaceInto } from './replace-into.ts'
import { rowNumberKey } from './row-number-key.ts'
import { runClock } from './run-clock.ts'
import { selfIncrement } from './self-increment.ts'
import { sequenceKey } from './sequence-key.ts'
import { splitTransaction } from './split-transaction.ts'
import { streamInsertNoId } from './stream-insert-no-id.ts'
import { strictWatermark } from './strict-watermark.ts'
import { swallowedError } from './swallowed-error.ts'
import { upsertNoGuard } from './upsert-no-guard.ts'

/** All rules, in the order of the documentation. */
export const RULES: readonly Rule[] = [
  insertNoKey,
  appendLoad,
  dataframeAppend,
  fileAppend,
  copyForce,
  streamInsertNoId,
  ormCreateInLoad,
  selfIncrement,
  maxPlusOne,
  sequenceKey,
  randomKey,
  rowNumberKey,
  upsertNoGuard,
  replaceInto,
  mergeSourceNotUnique,
  nullableKey,
  deleteInsertNoTx,
  splitTransaction,
  runClock,
  parseTimeClock,
  strictWatermark,
  lastRunLookup,
  dbtNoKey,
  dbtUnfiltered,
  dbtVolatileKey,
  dbtHookDml,
  effectInRetry,
  effectBeforeCommit,
  postNoKey,
  freshKey,
  publishNoDedupe,
  clockInPath,
  ddlNoGuard,
  nondeterministicPick,
  swallowedError,
]
