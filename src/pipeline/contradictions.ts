import { StetError } from '../errors.ts'
import { parseColumnType } from '../model/column-type.ts'
import { unknownOption } from '../model/options.ts'
import { checkSlicing, microsecondsOf } from './slices.ts'
import type { DefinedPipeline } from './types.ts'

/** Options by place. A file that was never type-checked may hold others, and an option that is not read protects nobody. */
const KNOWN = {
  pipeline: [
    'name',
    'source',
    'target',
    'table',
    'write',
    'keep',
    'transform',
    'maxRejects',
    'onReject',
    'incremental',
    'truth',
    'protect',
  ],
  keep: ['updatedAt', 'contentHash', 'gone'],
  transform: ['sql', 'row', 'adds', 'drops'],
  incremental: ['cursor', 'grace', 'start', 'settle', 'nulls', 'size', 'zone'],
} as const

const OF_EVERY_WRITE = ['strategy', 'key', 'newest', 'ignore', 'nullKeys', 'normalizeKey'] as const
const KNOWN_OF_WRITE = {
  upsert: [...OF_EVERY_WRITE, 'missing', 'allowEmpty', 'allowDeletes'],
  'insert-once': OF_EVERY_WRITE,
  'replace-table': [...OF_EVERY_WRITE, 'allowEmpty', 'allowDeletes'],
  'replace-partition': [
    ...OF_EVERY_WRITE,
    'by',
    'size',
    'zone',
    'missing',
    'apply',
    'allowEmpty',
    'allowDeletes',
  ],
} as const

type Refuse = (message: string, hint?: string) => never

/**
 * Refuses a definition that contradicts itself, before anything is opened.
 *
 * @throws {StetError} `STET_CONFIG` with the name of the pipeline and what to write instead.
 */
export function refuseContradictions(pipeline: DefinedPipeline): void {
  const { name, source, transform } = pipeline
  if (typeof name !== 'string' || name.trim() === '')
    throw new StetError('STET_CONFIG', 'A pipeline has no name')
  const refuse: Refuse = (message, hint) => {
    throw new StetError('STET_CONFIG', `Pipeline "${name}": ${message}`, hint === undefined ? {} : { hint })
  }
  refuseUnknownOfPlaces(pipeline, refuse)
  refuseWrongShapes(pipeline, refuse)
  refuseContradictingWrite(pipeline, refuse)
  refuseContradictingSlices(pipeline, refuse)
  refuseInOwnQuery(pipeline, refuse)
  for (const type of [...Object.values(source.columns ?? {}), ...Object.values(transform?.adds ?? {})])
    parseColumnType(type)
  if (source.columns !== undefined) refuseUndeclaredColumns(pipeline, Object.keys(source.columns), refuse)
}

function refuseUnknownOfPlaces(pipeline: DefinedPipeline, refuse: Refuse): void {
  const { write, transform } = pipeline
  for (const [place, value, known] of [
    ['', pipeline, KNOWN.pipeline],
    ['write.', write, KNOWN_OF_WRITE[write.strategy] ?? OF_EVERY_WRITE],
    ['keep.', pipeline.keep, KNOWN.keep],
    ['transform.', transform, KNOWN.transform],
    ['incremental.', pipeline.incremental, KNOWN.incremental],
  ] as const) {
    const unknown = unknownOption(value ?? {}, known)
    if (unknown !== undefined) {
      refuse(`there is no option ${place}${unknown}`, `Options here: ${known.join(', ')}`)
    }
  }
}

/** What the compiler would refuse in a file that is checked. */
function refuseWrongShapes({ table, write, transform, maxRejects }: DefinedPipeline, refuse: Refuse): void {
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
  if (maxRejects !== undefined && !(Number.isInteger(maxRejects) && maxRejects >= 0)) {
    refuse(`maxRejects is ${maxRejects}; it is a whole number of rows, 0 or more`)
  }
}

/** What key, order and strategy rule out together. */
function refuseContradictingWrite({ target, write }: DefinedPipeline, refuse: Refuse): void {
  if (!target.capabilities.strategies.includes(write.strategy)) {
    refuse(
      `${target.kind} has no strategy ${String(write.strategy)}`,
      `It has ${target.capabilities.strategies.join(', ')}`,
    )
  }
  const key = write.key ?? []
  if (key.length === 0 && write.strategy !== 'replace-table' && write.strategy !== 'replace-partition') {
    refuse(
      `strategy ${write.strategy} needs a key; without one a rerun would append every row again`,
      "Name the columns that identify a row: key: ['order_ref']",
    )
  }
  const repeated = key.find((column, position) => key.indexOf(column) !== position)
  if (repeated !== undefined) refuse(`the key names ${repeated} twice`)
  if (key.length === 0 && write.newest !== undefined) {
    refuse(
      'newest orders rows of one key, and there is no key',
      "Name the columns that identify a row: --key order_ref (key: ['order_ref'] in a pipeline)",
    )
  }
  for (const column of write.ignore ?? []) {
    if (key.includes(column)) refuse(`${column} is part of the key and cannot be ignored`)
    if (column === write.newest) refuse(`${column} says which row is newer and cannot be ignored`)
  }
}

function refuseUndeclaredColumns(
  { write, transform, incremental }: DefinedPipeline,
  declared: readonly string[],
  refuse: Refuse,
): void {
  const key = write.key ?? []
  const known = [...declared, ...Object.keys(transform?.adds ?? {})]
  const used = [
    ...key,
    ...(write.ignore ?? []),
    ...(write.newest === undefined ? [] : [write.newest]),
    ...(write.strategy === 'replace-partition' ? [write.by] : []),
  ]
  for (const column of used) {
    if (!known.includes(column))
      refuse(`write names ${column}, which is no declared column`, `Declared: ${known.join(', ')}`)
  }
  for (const column of transform?.drops ?? []) {
    if (!declared.includes(column)) {
      refuse(
        `the transform drops ${column}, which is no declared column of the source`,
        `Declared: ${declared.join(', ')}`,
      )
    }
  }
  const cursor = incremental?.cursor
  if (cursor !== undefined && !declared.includes(cursor)) {
    refuse(
      `the cursor is ${cursor}, which is no declared column of the source`,
      `Declared: ${declared.join(', ')}`,
    )
  }
}

/** What a query in the target rules out: its rows are never here to be changed or sent. */
function refuseInOwnQuery({ source, target, transform, write }: DefinedPipeline, refuse: Refuse): void {
  if (source.own === undefined) return
  if (source.own.place !== target.place) {
    refuse(
      `${source.description} is a query of another target than ${target.description}`,
      "Take the query from the pipeline's own target, or read it with a source: stet/sources/postgres",
    )
  }
  if (transform !== undefined) {
    refuse(
      'transforms rows of a query in the target, which never leave it',
      'Write the transform into the query, in the SQL of the target',
    )
  }
  if (write.strategy === 'replace-partition' && write.apply !== undefined && write.apply !== 'diff') {
    refuse(
      `write.apply is "${write.apply}": a partition is swapped for one that is built from rows that are sent, and those of a query in the target are not`,
      'Leave apply out, or read the query with a source: stet/sources/postgres',
    )
  }
}

/** What slices, cursors, missing rows and truth rule out together. */
function refuseContradictingSlices(pipeline: DefinedPipeline, refuse: Refuse): void {
  const { write, incremental, truth, protect, onReject } = pipeline
  const key = write.key ?? []
  const oneOf = (option: string, value: unknown, values: readonly string[]) => {
    if (value === undefined || (typeof value === 'string' && values.includes(value))) return
    refuse(`${option} is ${JSON.stringify(value)}`, `It is one of ${values.join(', ')}`)
  }
  oneOf('truth', truth, ['source', 'snapshot'])
  oneOf('onReject', onReject, ['fail', 'quarantine'])
  if (onReject === 'quarantine' && (pipeline.maxRejects ?? 0) === 0) {
    refuse(
      'keeps rejected rows in quarantine and allows none',
      'Say how many rows may go there: --max-rejects 100 (maxRejects: 100 in a pipeline)',
    )
  }
  const missing = 'missing' in write ? write.missing : undefined
  oneOf('write.missing', missing, ['keep', 'delete', 'mark'])
  if (missing === 'mark' && key.length === 0) {
    refuse(
      'marks rows that are gone and has no key: a row that comes back could not be told from a new one',
      "Name the columns that identify a row: --key order_ref (key: ['order_ref'] in a pipeline)",
    )
  }
  if (write.strategy === 'replace-partition') {
    oneOf('write.apply', write.apply, ['diff', 'swap', 'auto'])
    if (typeof write.by !== 'string' || write.by === '') {
      refuse('replaces partitions and does not say by which column', "Write by: 'event_date', size: 'day'")
    }
    checkSlicing({ by: write.by, size: write.size, zone: write.zone ?? 'UTC' })
  }
  if (protect === true && write.strategy === 'replace-table') {
    refuse(
      'is protected and would replace its whole table at every run',
      "Use strategy: 'upsert' or 'replace-partition', or take protect out",
    )
  }
  if (incremental === undefined) return
  if (truth === 'snapshot') {
    refuse(
      'reads by a cursor and has truth snapshot, which freezes what a whole slice held',
      "Use --strategy insert-once (strategy: 'insert-once' in a pipeline), which never changes a row that is there",
    )
  }
  if (write.strategy === 'replace-table' || write.strategy === 'replace-partition') {
    refuse(
      `reads by a cursor and would replace ${write.strategy === 'replace-table' ? 'the table' : 'slices'} by what is new in it (G10)`,
      "Use --strategy upsert (strategy: 'upsert' in a pipeline)",
    )
  }
  if (missing !== undefined && missing !== 'keep') {
    refuse(
      `reads by a cursor and would ${missing} all rows that it does not read (G10)`,
      'Leave --missing out (missing in a pipeline), or read the whole source: leave --cursor out (incremental in a pipeline)',
    )
  }
  if (typeof incremental.cursor !== 'string' || incremental.cursor === '') {
    refuse('incremental names no cursor', "Write incremental: { cursor: 'updated_at' }")
  }
  oneOf('incremental.nulls', incremental.nulls, ['reject', 'include'])
  if (typeof incremental.grace === 'string') microsecondsOf(incremental.grace, 'grace')
  if (incremental.settle !== undefined) microsecondsOf(incremental.settle, 'settle')
  checkSlicing({
    by: incremental.cursor,
    size: incremental.size ?? 'day',
    zone: incremental.zone ?? 'UTC',
  })
}
