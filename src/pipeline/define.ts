import { StetError } from '../errors.ts'
import { parseColumnType } from '../model/column-type.ts'
import type { Columns } from '../model/columns.ts'
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

/** Options by place. A file that was never type-checked may hold others, and an option that is not read protects nobody. */
const KNOWN = {
  pipeline: ['name', 'source', 'target', 'table', 'write', 'keep', 'transform', 'maxRejects'],
  write: ['strategy', 'key', 'newest', 'ignore', 'nullKeys', 'normalizeKey', 'allowEmpty'],
  keep: ['updatedAt', 'contentHash'],
  transform: ['sql', 'row', 'adds', 'drops'],
} as const

function refuseContradictions(pipeline: DefinedPipeline): void {
  const { name, write, source, table, transform, target } = pipeline
  if (typeof name !== 'string' || name.trim() === '')
    throw new StetError('STET_CONFIG', 'A pipeline has no name')
  const refuse = (message: string, hint?: string): never => {
    throw new StetError('STET_CONFIG', `Pipeline "${name}": ${message}`, hint === undefined ? {} : { hint })
  }
  for (const [place, value, known] of [
    ['', pipeline, KNOWN.pipeline],
    ['write.', write, KNOWN.write],
    ['keep.', pipeline.keep, KNOWN.keep],
    ['transform.', transform, KNOWN.transform],
  ] as const) {
    const unknown = Object.keys(value ?? {}).find((option) => !(known as readonly string[]).includes(option))
    if (unknown !== undefined) {
      refuse(`there is no option ${place}${unknown}`, `Options here: ${known.join(', ')}`)
    }
  }
  if (typeof table !== 'string' || table.trim() === '')
    refuse('names no table', "Say into which: table: 'sales.orders'")
  if (write.key !== undefined && !Array.isArray(write.key)) {
    refuse(
      `key is ${JSON.stringify(write.key)}, not a list of columns`,
      `Write key: ['${String(write.key)}']`,
    )
  }
  if (
    transform !== undefined &&
    typeof ('sql' in transform ? transform.sql : transform.row) !==
      ('sql' in transform ? 'string' : 'function')
  ) {
    refuse(
      'transform is neither { sql } nor { row }',
      "Write transform: { sql: 'select … from landed' } or { row: (row) => ({ ...row }) }",
    )
  }
  if (!target.capabilities.strategies.includes(write.strategy)) {
    refuse(
      `${target.kind} has no strategy ${String(write.strategy)}`,
      `It has ${target.capabilities.strategies.join(', ')}`,
    )
  }
  const key = write.key ?? []
  if (key.length === 0 && write.strategy !== 'replace-table') {
    refuse(
      `strategy ${write.strategy} needs a key; without one a rerun would append every row again`,
      "Name the columns that identify a row: key: ['order_ref']",
    )
  }
  const repeated = key.find((column, position) => key.indexOf(column) !== position)
  if (repeated !== undefined) refuse(`the key names ${repeated} twice`)
  if (key.length === 0 && write.newest !== undefined)
    refuse('newest orders rows of one key, and there is no key')
  for (const column of write.ignore ?? []) {
    if (key.includes(column)) refuse(`${column} is part of the key and cannot be ignored`)
    if (column === write.newest) refuse(`${column} says which row is newer and cannot be ignored`)
  }
  if (
    pipeline.maxRejects !== undefined &&
    !(Number.isInteger(pipeline.maxRejects) && pipeline.maxRejects >= 0)
  ) {
    refuse(`maxRejects is ${pipeline.maxRejects}; it is a whole number of rows, 0 or more`)
  }
  for (const type of [...Object.values(source.columns ?? {}), ...Object.values(transform?.adds ?? {})])
    parseColumnType(type)
  if (source.columns === undefined) return
  const known = [...Object.keys(source.columns), ...Object.keys(transform?.adds ?? {})]
  const used = [...key, ...(write.ignore ?? []), ...(write.newest === undefined ? [] : [write.newest])]
  for (const column of used) {
    if (!known.includes(column))
      refuse(`write names ${column}, which is no declared column`, `Declared: ${known.join(', ')}`)
  }
}
