export { EXIT_STATUS_BY_CODE, StetError, type StetErrorCode, type StetErrorOptions } from './errors.ts'
export type { Columns } from './model/columns.ts'
export type { Progress, ProgressListener } from './model/progress.ts'
export type { RunCounts, RunVerdict, Truth } from './model/run.ts'
export type { Reject, Source, SourceFile } from './model/source.ts'
export type { Target } from './model/target.ts'
export type {
  InsertOnce,
  KeepColumns,
  KeyReading,
  ReplaceTable,
  Upsert,
  WriteStrategy,
} from './model/write.ts'
export { definePipeline } from './pipeline/define.ts'
export { plan } from './pipeline/plan.ts'
export { run } from './pipeline/run.ts'
export type {
  DefinedPipeline,
  Pipeline,
  Plan,
  PlanSample,
  ReportedColumn,
  RunOptions,
  RunResult,
  Transform,
  TransformRow,
  TransformValue,
} from './pipeline/types.ts'
export { VERSION } from './version.ts'
