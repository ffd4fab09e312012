import { StetError } from '../errors.ts'
import { openLocalEngine } from '../local/engine.ts'
import { quoteLiteral } from '../local/quote.ts'
import { readSql } from '../local/typing.ts'
import { formatColumnType, isTimeType, parseColumnType } from '../model/column-type.ts'
import type { ColumnType, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Watermark } from '../model/slice.ts'
import { laterOf, lessGrace, momentText } from './cursor-value.ts'
import { recordOf } from './record.ts'
import { targetOptions } from './run.ts'
import { signalOf } from './signal.ts'
import { tableColumn } from './table-column.ts'
import type { DefinedPipeline, Incremental } from './types.ts'
import { definitionOf } from './watermark-definition.ts'

/** What a person does to a watermark. */
export type WatermarkChange =
  | { readonly kind: 'set'; readonly value: string }
  /** By a length of time before what it is, or to an earlier value. */
  | { readonly kind: 'rewind'; readonly to: string }
  | { readonly kind: 'forget' }

export interface ChangeOptions {
  /** `user@host`, for the record. */
  readonly by: string
  /** The pipeline in a command line, for hints that hold one. Default `pipeline.ts`. */
  readonly inCommands?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ChangedWatermark {
  readonly table: string
  readonly before: Watermark | null
  readonly after: Watermark | null
}

/**
 * How far a pipeline has read.
 *
 * @throws {StetError} `STET_USAGE` when the pipeline reads by no cursor.
 */
export async function watermarkOf(
  pipeline: DefinedPipeline,
  signal: AbortSignal = new AbortController().signal,
): Promise<Watermark | null> {
  requireIncremental(pipeline)
  return (await recordOf(pipeline, { signal })).watermark
}

/**
 * Changes the watermark by a person's hand, on the record. A new value is kept with the definition that the pipeline has
 * now, so that setting it also accepts another cursor, key, source or zone.
 *
 * @throws {StetError} `STET_USAGE` when the pipeline reads by no cursor, has never run, or the value is none of its
 * cursor's type.
 */
export async function changeWatermark(
  pipeline: DefinedPipeline,
  change: WatermarkChange,
  options: ChangeOptions,
): Promise<ChangedWatermark> {
  const incremental = requireIncremental(pipeline)
  const signal = signalOf(options)
  const { inCommands = 'pipeline.ts' } = options
  const record = await recordOf(pipeline, { signal })
  if (change.kind === 'forget' && pipeline.protect === true) {
    throw new StetError(
      'STET_PROTECTED',
      `Pipeline "${pipeline.name}" is protected: its watermark is not forgotten`,
      {
        hint: `Rewind it (stet watermark rewind 3d ${inCommands}), or take protect out of the pipeline`,
      },
    )
  }
  const { table } = record
  if (table === null) throw neverRan(pipeline)
  const value = await newValue(pipeline, incremental, change, record.watermark, { signal, inCommands })
  await using editor = await pipeline.target.openRecord({ signal })
  const before = await editor.watermark(pipeline.name, table)
  if (before?.setAt !== record.watermark?.setAt) {
    throw new StetError(
      'STET_SERIALIZATION',
      'A run has moved the watermark meanwhile; nothing was changed',
      {
        hint: 'Run the same command again',
      },
    )
  }
  const { cursor } = incremental
  const definition = definitionOf(pipeline, incremental)
  await editor.setWatermark({ pipeline: pipeline.name, table, cursor, definition, value }, options.by)
  return { table, before, after: await editor.watermark(pipeline.name, table) }
}

function requireIncremental({ name, incremental }: DefinedPipeline): Incremental {
  if (incremental !== undefined) return incremental
  throw new StetError('STET_USAGE', `Pipeline "${name}" reads by no cursor, so it has no watermark`, {
    hint: "Write incremental: { cursor: 'updated_at' }, or run it: it reads everything",
  })
}

function neverRan({ name }: DefinedPipeline): StetError {
  return new StetError('STET_USAGE', `Pipeline "${name}" has never run, so it has no watermark to change`, {
    hint: "Say where the first run begins in the pipeline: incremental: { …, start: '2026-01-01T00:00:00Z' }",
  })
}

async function newValue(
  pipeline: DefinedPipeline,
  incremental: Incremental,
  change: WatermarkChange,
  before: Watermark | null,
  { signal, inCommands }: { readonly signal: AbortSignal; readonly inCommands: string },
): Promise<string | null> {
  if (change.kind === 'forget') return null
  await using local = await openLocalEngine({ threads: 1 })
  const column = await cursorColumn(pipeline, incremental.cursor, local, signal)
  const asMoment = (text: string) => momentText(text, column.type, incremental.zone ?? 'UTC')
  if (change.kind === 'set') return await readValue(local, column, asMoment(change.value))
  if (before === null) {
    throw new StetError('STET_USAGE', `Pipeline "${pipeline.name}" has no watermark to rewind`, {
      hint: `Set one: stet watermark set VALUE ${inCommands}`,
    })
  }
  if (isDuration(change.to) && !isTimeType(column.type)) {
    throw new StetError(
      'STET_USAGE',
      `Cannot rewind by ${change.to}: the cursor "${column.name}" is a number (${formatColumnType(column.type)}), and has no time`,
      {
        hint: `Write the number to go back to, less than ${before.value}: stet watermark rewind NUMBER ${inCommands}`,
      },
    )
  }
  const value = isDuration(change.to)
    ? await lessGrace(local, column, before.value, change.to)
    : await readValue(local, column, asMoment(change.to))
  if ((await laterOf(local, column, before.value, value)) === before.value) return value
  throw new StetError(
    'STET_USAGE',
    `Cannot rewind to ${value}: the watermark is at ${before.value}, before it`,
    {
      hint: `stet watermark set '${value}' ${inCommands} moves it forward; rows between the two are then never read`,
    },
  )
}

/** A value of time begins with a year, a number is a value of a cursor of numbers. */
function isDuration(text: string): boolean {
  return /^\s*(\d+\s*[a-z]+|P.+)\s*$/i.test(text)
}

const EXAMPLES: Partial<Record<ColumnType['kind'], string>> = {
  date: '2026-08-07',
  timestamp: '2026-08-07 12:00:00',
  timestamptz: '2026-08-07T12:00:00Z',
}

/** The value as a run would have recorded it. */
async function readValue(local: LocalConnection, column: ContractColumn, text: string): Promise<string> {
  const [row] = await local.rows(`select (${readSql(column, quoteLiteral(text))})::varchar as value`)
  if (typeof row?.value === 'string') return row.value
  throw new StetError(
    'STET_USAGE',
    `Cannot read ${JSON.stringify(text)} as a value of the cursor "${column.name}" (${formatColumnType(column.type)})`,
    { hint: `Write it like ${EXAMPLES[column.type.kind] ?? '1000'}` },
  )
}

/** The cursor as a run knows it: by the table's type, else by the declared one. */
async function cursorColumn(
  pipeline: DefinedPipeline,
  name: string,
  local: LocalConnection,
  signal: AbortSignal,
): Promise<ContractColumn> {
  return {
    id: 'c0',
    name,
    type: await cursorType(pipeline, name, local, signal),
    origin: 'target',
    key: false,
    newest: false,
    ignored: false,
    asText: false,
  }
}

async function cursorType(
  pipeline: DefinedPipeline,
  name: string,
  local: LocalConnection,
  signal: AbortSignal,
): Promise<ColumnType> {
  await using session = await pipeline.target.open(
    targetOptions(pipeline, {}, local, signal, () => undefined, 'plan'),
  )
  const column = tableColumn(await session.describe(), name)
  const declared = pipeline.source.columns?.[name]
  if (column !== undefined) return column.type
  if (declared !== undefined) return parseColumnType(declared)
  throw new StetError('STET_USAGE', `The table ${pipeline.table} has no column "${name}" to read by yet`, {
    hint: 'Declare its type in the source: columns, or run the pipeline first',
  })
}
