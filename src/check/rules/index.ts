import type { Rule } from '../rule.ts'
import { appendLoad } from './append-load.ts'
import { clockInPath } from './clock-in-path.ts'
import { copyForce } from './copy-force.ts'
import { copyThenDelete } from './copy-then-delete.ts'
import { dataframeAppend } from './dataframe-append.ts'
import { dbtHookDml } from './dbt-hook-dml.ts'
import { dbtNoKey } from './dbt-no-key.ts'
import { dbtUnfiltered } from './dbt-unfiltered.ts'
import { dbtVolatileKey } from './dbt-volatile-key.ts'
import { ddlNoGuard } from './ddl-no-guard.ts'
import { deleteInsertNoTx } from './delete-insert-no-tx.ts'
import { deleteInsertRange } from './delete-insert-range.ts'
import { docStoreAutoid } from './doc-store-autoid.ts'
import { effectBeforeCommit } from './effect-before-commit.ts'
import { effectInRetry } from './effect-in-retry.ts'
import { fileAppend } from './file-append.ts'
import { freshKey } from './fresh-key.ts'
import { implicitCommit } from './implicit-commit.ts'
import { insertNoKey } from './insert-no-key.ts'
import { lastRunLookup } from './last-run-lookup.ts'
import { maxPlusOne } from './max-plus-one.ts'
import { mergeNarrowedKey } from './merge-narrowed-key.ts'
import { mergeSourceNotUnique } from './merge-source-not-unique.ts'
import { nondeterministicPick } from './nondeterministic-pick.ts'
import { nullableKey } from './nullable-key.ts'
import { ormCreateInLoad } from './orm-create-in-load.ts'
import { overwriteTooWide } from './overwrite-too-wide.ts'
import { parseTimeClock } from './parse-time-clock.ts'
import { partialAggregate } from './partial-aggregate.ts'
import { postNoKey } from './post-no-key.ts'
import { publishNoDedupe } from './publish-no-dedupe.ts'
import { randomKey } from './random-key.ts'
import { readModifyWrite } from './read-modify-write.ts'
import { replaceInto } from './replace-into.ts'
import { rowNumberKey } from './row-number-key.ts'
import { runClock } from './run-clock.ts'
import { scriptNotAtomic } from './script-not-atomic.ts'
import { selfIncrement } from './self-increment.ts'
import { sequenceKey } from './sequence-key.ts'
import { splitTransaction } from './split-transaction.ts'
import { stagingNotCleared } from './staging-not-cleared.ts'
import { streamInsertNoId } from './stream-insert-no-id.ts'
import { strictWatermark } from './strict-watermark.ts'
import { swallowedError } from './swallowed-error.ts'
import { upsertNoGuard } from './upsert-no-guard.ts'
import { watermarkBeforeLoad } from './watermark-before-load.ts'
import { watermarkFromClock } from './watermark-from-clock.ts'
import { writeInPlace } from './write-in-place.ts'

/** All rules, in the order of the documentation. */
export const RULES: readonly Rule[] = [
  insertNoKey,
  appendLoad,
  dataframeAppend,
  fileAppend,
  copyForce,
  streamInsertNoId,
  ormCreateInLoad,
  docStoreAutoid,
  selfIncrement,
  readModifyWrite,
  maxPlusOne,
  sequenceKey,
  randomKey,
  rowNumberKey,
  upsertNoGuard,
  replaceInto,
  mergeSourceNotUnique,
  nullableKey,
  mergeNarrowedKey,
  deleteInsertNoTx,
  deleteInsertRange,
  implicitCommit,
  overwriteTooWide,
  copyThenDelete,
  stagingNotCleared,
  splitTransaction,
  runClock,
  parseTimeClock,
  watermarkBeforeLoad,
  watermarkFromClock,
  strictWatermark,
  lastRunLookup,
  dbtNoKey,
  dbtUnfiltered,
  dbtVolatileKey,
  partialAggregate,
  dbtHookDml,
  effectInRetry,
  effectBeforeCommit,
  postNoKey,
  freshKey,
  publishNoDedupe,
  clockInPath,
  writeInPlace,
  ddlNoGuard,
  nondeterministicPick,
  scriptNotAtomic,
  swallowedError,
]
