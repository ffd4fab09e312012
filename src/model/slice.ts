import type { ColumnType } from './columns.ts'

/** How a table is cut into slices: by time in a named zone, by value, or by ranges of whole numbers. */
export type SliceSize = 'hour' | 'day' | 'month' | 'value' | { readonly range: number }

/** The column that says which slice a row belongs to, and where one slice ends and the next begins. */
export interface Slicing {
  readonly by: string
  readonly size: SliceSize
  /**
   * IANA zone in which hours, days and months begin, such as `Asia/Seoul`. It decides which instants belong to a slice of a
   * timestamptz column, and into which slice a logical time falls. Default `UTC`.
   */
  readonly zone: string
}

/** One end of a window of time, in the two forms that columns need: wall time of the zone, and instant. */
export interface TimeBound {
  /** `2026-08-07 00:00:00`, for date and timestamp columns. */
  readonly wall: string
  /** `2026-08-06 15:00:00+00`, for timestamptz columns. */
  readonly instant: string
}

/** What belongs to a slice. Ranges are half-open: `from` belongs to it, `to` does not. */
export type SliceBounds =
  | { readonly kind: 'time'; readonly from: TimeBound; readonly to: TimeBound }
  | { readonly kind: 'range'; readonly from: string; readonly to: string }
  | { readonly kind: 'value'; readonly value: string }

/** The part of a table that one run owns: what it compares, and the only rows that it may take away. */
export interface Slice {
  /** `2026-08-07T13`, `2026-08-07`, `2026-08`, the value, or the first number of a range. Names the slice in lease and log. */
  readonly name: string
  readonly by: string
  readonly bounds: SliceBounds
}

/** The name of the slice of a pipeline that is not cut into any. */
export const WHOLE = 'all'

/** Which part of a source one run reads by its cursor: both ends belong to it. A null end is open. */
export interface CursorWindow {
  readonly cursor: string
  readonly from: string | null
  readonly to: string | null
  /** Whether rows without a cursor value are read as well. */
  readonly nulls: 'reject' | 'include'
}

/** How far a pipeline has read, as the target keeps it beside the rows (G4). */
export interface Watermark {
  readonly pipeline: string
  readonly table: string
  readonly cursor: string
  /** The greatest cursor value seen, as exact text; a timestamptz with its offset. */
  readonly value: string
  /** Of what a watermark stands for: cursor, key, source, zone. Another one is another watermark. */
  readonly definition: string
  /** By the target's clock, ISO 8601 in UTC with microseconds. */
  readonly setAt: string
  /** The attempt or the person that set it. */
  readonly setBy: string
}

/** What of a query's answer a run does not need to see. */
export interface Narrowing {
  /** Ends in the form of the query's own column; null where they would mean something else there. */
  readonly window: CursorWindow | null
  /** With the type of the query's own column; null where it is not the column by which the table is cut. */
  readonly slice: { readonly slice: Slice; readonly type: ColumnType } | null
}
