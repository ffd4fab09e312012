export { EXIT_STATUS_BY_CODE, StetError, type StetErrorCode, type StetErrorOptions } from './errors.ts'
export type * from './extending.ts'
export type { ColumnOf, Columns, TypeOrigin } from './model/columns.ts'
export type { PlanSample } from './model/comparison.ts'
export type { Progress, ProgressListener } from './model/progress.ts'
export type { RunCounts, RunVerdict, Truth } from './model/run.ts'
export type { SliceSize, Slicing, Watermark } from './model/slice.ts'
export type { Reject, Source, SourceFile } from './model/source.ts'
export type { Target } from './model/target.ts'
export type {
  InsertOnce,
  KeepColumns,
  KeyReading,
  Missing,
  Removals,
  ReplacePartition,
  ReplaceTable,
  Upsert,
  WriteStrategy,
} from './model/write.ts'
export {
  type BackfillOptions,
  type BackfillPlan,
  type BackfillProgress,
  type BackfillRange,
  type BackfillResult,
  backfill,
  planBackfill,
  type SliceOutcome,
  type SlicePlan,
} from './pipeline/backfill.ts'
export {
  type SliceCalendar,
  type SliceState,
  type SliceStatus,
  type SlicesOptions,
  slicesOf,
} from './pipeline/calendar.ts'
export { definePipeline } from './pipeline/define.ts'
export { plan } from './pipeline/plan.ts'
export { run } from './pipeline/run.ts'
export { type Thawed, thaw } from './pipeline/thaw.ts'
export type {
  DefinedPipeline,
  Incremental,
  Pipeline,
  Plan,
  ReportedColumn,
  RunOptions,
  RunResult,
  Transform,
  TransformRow,
  TransformValue,
} from './pipeline/types.ts'
export {
  type ChangedWatermark,
  type ChangeOptions,
  changeWatermark,
  type WatermarkChange,
  watermarkOf,
} from './pipeline/watermark.ts'
export { VERSION } from './version.ts'
