// What a source or a target of one's own is written in; `docs/CONTRIBUTING.md` says how. A user of the library needs none of it.
export type { ColumnType, Contract, ContractColumn, KeptColumns } from './model/columns.ts'
export type { CompareRules, Comparison, Difference } from './model/comparison.ts'
export type { LocalConnection } from './model/local.ts'
export type { RemoteCompare, RemoteLanded, RemoteRules, RemoteScope, Seen } from './model/remote.ts'
export type {
  RecordEvent,
  RunLog,
  RunLogEntry,
  RunLogFilter,
  RunRecord,
  RunStart,
  RunStatus,
} from './model/run.ts'
export type { CursorWindow, Narrowing, Slice, SliceBounds, TimeBound } from './model/slice.ts'
export type {
  CursorRequest,
  EarlySelect,
  OpenSource,
  OwnQuery,
  RowLocation,
  SourceContext,
  SourceField,
  SourcePart,
} from './model/source.ts'
export type {
  Applied,
  CommitExtras,
  History,
  Judge,
  OpenTargetOptions,
  RecordEditor,
  RowsInScope,
  Scope,
  SliceLoad,
  TargetCapabilities,
  TargetColumn,
  TargetSession,
  TargetTable,
  UniqueRule,
} from './model/target.ts'
