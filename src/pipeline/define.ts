import type { Columns } from '../model/columns.ts'
import { refuseContradictions } from './contradictions.ts'
import type { DefinedPipeline, Pipeline } from './types.ts'

// A symbol of the registry, so that a pipeline made by another copy of this module is still recognised.
const DEFINED: unique symbol = Symbol.for('stet.pipeline') as never

/**
 * Defines a pipeline: where rows come from, which table they end in, and how they are written. Nothing is opened or
 * read until `run` or `plan`. With declared columns a misspelt key does not compile.
 *
 * @throws {StetError} `STET_CONFIG` when the definition contradicts itself.
 * @example
 * import { definePipeline } from 'stet'
 * import { csv } from 'stet/sources/csv'
 * import { duckdb } from 'stet/targets/duckdb'
 *
 * export default definePipeline({
 *   name: 'orders',
 *   source: csv({ files: 'inbox/orders-*.csv', columns: { order_ref: 'text', amount: 'numeric(12,2)', load_seq: 'bigint' } }),
 *   target: duckdb({ file: 'stet.duckdb' }),
 *   table: 'orders',
 *   write: { strategy: 'upsert', key: ['order_ref'], newest: 'load_seq' },
 * })
 */
export function definePipeline<const C extends Columns, const A extends Columns = Record<never, string>>(
  pipeline: Pipeline<C, A>,
): DefinedPipeline {
  const defined = pipeline as unknown as DefinedPipeline
  refuseContradictions(defined)
  return Object.freeze(Object.defineProperty({ ...defined }, DEFINED, { value: true, enumerable: false }))
}

/** Whether a value (an export of a user's file) was made by {@link definePipeline}. */
export function isPipeline(value: unknown): value is DefinedPipeline {
  return typeof value === 'object' && value !== null && DEFINED in value
}
