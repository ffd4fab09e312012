import { StetError } from '../errors.ts'
import { inferTypes } from '../local/infer.ts'
import { quoteIdentifier } from '../local/quote.ts'
import { isOrderable } from '../local/typing.ts'
import { formatColumnType, parseColumnType } from '../model/column-type.ts'
import type { ColumnType, Contract, ContractColumn, KeptColumns, TypeOrigin } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { OpenSource } from '../model/source.ts'
import type { TargetColumn, TargetTable } from '../model/target.ts'
import type { KeepColumns, WriteStrategy } from '../model/write.ts'
import { isMadeAnew, tableColumn } from './table-column.ts'
import type { DefinedPipeline } from './types.ts'

/** A column before its role is known: name, type and where the type comes from. */
export interface TypedName {
  readonly name: string
  readonly type: ColumnType
  readonly origin: TypeOrigin
}

/** What Stet calls its own columns on a table that it creates, unless told otherwise. */
const DEFAULT_KEEP = { updatedAt: 'updated_at', contentHash: 'content_hash', gone: 'deleted_at' } as const

/**
 * The types of the columns that a source gives: the target's where it has the column, else the declared ones, else what
 * the source itself knows, else inferred from the data, once and conservatively.
 */
export async function typesOfSource(
  pipeline: DefinedPipeline,
  source: Pick<OpenSource, 'fields' | 'fieldsUnknown' | 'parts' | 'looked'>,
  table: TargetTable | null,
  local: LocalConnection,
  notice: (message: string) => void,
): Promise<readonly TypedName[]> {
  const isUntold = source.fieldsUnknown === true && pipeline.source.columns === undefined
  // An SQL transform names columns of its own choice.
  const mayBeAny = pipeline.transform === undefined || 'row' in pipeline.transform
  const wanted =
    isUntold && mayBeAny ? namesWithoutRecords(pipeline, table) : wantedNames(pipeline, source, notice)
  const known = wanted.map((name): TypedName | string => {
    const declared = pipeline.source.columns?.[name]
    const column = isMadeAnew(pipeline, name) ? undefined : tableColumn(table, name)
    if (column !== undefined) {
      sayOverruled(name, declared, column.type, table, notice)
      return { name, type: column.type, origin: 'target' }
    }
    if (declared !== undefined) return { name, type: parseColumnType(declared), origin: 'declared' }
    const field = source.fields.find((candidate) => candidate.name === name)
    return field?.type === undefined ? name : { name, type: field.type, origin: 'declared' }
  })
  const unknown = known.filter((entry) => typeof entry === 'string')
  if (unknown.length === 0) return known.filter((entry) => typeof entry !== 'string')
  await source.looked?.()
  const inferred = await infer(pipeline, source, unknown, local)
  return known.map((entry) =>
    typeof entry === 'string' ? (inferred.get(entry) ?? textColumn(entry)) : entry,
  )
}

function textColumn(name: string): TypedName {
  return { name, type: { kind: 'text' }, origin: 'inferred' }
}

/** The columns without which the strategy cannot be carried out. */
function neededNames({ write }: DefinedPipeline): readonly string[] {
  return [
    ...(write.key ?? []),
    ...(write.newest === undefined ? [] : [write.newest]),
    ...(write.strategy === 'replace-partition' ? [write.by] : []),
  ]
}

/**
 * What to read where there is no record that could tell: what the pipeline names and what the table demands. Of no rows any
 * columns are as good; an empty source has to be one, whatever its format (G10).
 */
function namesWithoutRecords(pipeline: DefinedPipeline, table: TargetTable | null): readonly string[] {
  const { write, incremental } = pipeline
  const demanded = table?.columns.filter(({ generated, optional }) => !generated && !optional) ?? []
  const named = [
    ...neededNames(pipeline),
    ...(write.ignore ?? []),
    ...(incremental === undefined ? [] : [incremental.cursor]),
  ]
  const isNamed = (column: TargetColumn) => named.some((name) => tableColumn(table, name) === column)
  const names = [...named, ...demanded.filter((column) => !isNamed(column)).map(({ name }) => name)]
  const some = names.length > 0 ? names : (table?.columns ?? []).filter(isPlain).map(({ name }) => name)
  if (some.length > 0) return [...new Set(some)]
  throw new StetError(
    'STET_SOURCE',
    `A first load cannot tell its columns: ${pipeline.source.description} holds no rows`,
    {
      hint: 'Declare them (--columns, columns in the pipeline), or wait for the first rows',
    },
  )
}

function isPlain({ generated, kept }: TargetColumn): boolean {
  return !generated && kept === undefined
}

/** The fields to load: the declared ones, or all. A declared field that the source lacks is refused by name. */
function wantedNames(
  pipeline: DefinedPipeline,
  source: Pick<OpenSource, 'fields'>,
  notice: (message: string) => void,
): readonly string[] {
  const offered = source.fields.map((field) => field.name)
  const needed = neededNames(pipeline)
  const added = Object.keys(pipeline.transform?.adds ?? {})
  const declared = Object.keys(pipeline.source.columns ?? {})
  const cursor = pipeline.incremental === undefined ? [] : [pipeline.incremental.cursor]
  const missing = [...new Set([...declared, ...needed, ...cursor])].filter(
    // Whatever a transform adds, the cursor is a column of the source.
    (name) => !offered.includes(name) && (!added.includes(name) || cursor.includes(name)),
  )
  if (missing.length > 0) {
    throw new StetError(
      'STET_COLUMNS',
      `${pipeline.source.description} has no column ${missing.map((name) => `"${name}"`).join(', ')}; it has ${listed(offered)}`,
      {
        hint: 'Column names must match the header exactly, upper and lower case included',
        details: { missing, offered },
      },
    )
  }
  if (declared.length === 0 && offered.length === 0) {
    throw new StetError(
      'STET_COLUMNS',
      `${pipeline.source.description} has no columns: none of its records has a key`,
      { hint: 'Look at the file; where the records lie deeper in it, name the place: --records features' },
    )
  }
  if (declared.length === 0) return offered
  const left = offered.filter((name) => !declared.includes(name))
  if (left.length > 0) notice(`Not loaded, as they are not among the declared columns: ${left.join(', ')}`)
  return declared
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 20).map((name) => `"${name}"`)
  return names.length === 0
    ? 'none'
    : `${shown.join(', ')}${names.length > 20 ? `, … ${names.length - 20} more` : ''}`
}

function sayOverruled(
  name: string,
  declared: string | undefined,
  type: ColumnType,
  table: TargetTable | null,
  notice: (message: string) => void,
): void {
  if (declared === undefined) return
  const theirs = formatColumnType(type)
  const ours = formatColumnType(parseColumnType(declared))
  if (ours !== theirs)
    notice(
      `Column "${name}" is read as ${theirs}, the type it has in ${table?.name}, not as the declared ${ours}`,
    )
}

async function infer(
  pipeline: DefinedPipeline,
  source: Pick<OpenSource, 'parts'>,
  names: readonly string[],
  local: LocalConnection,
): Promise<ReadonlyMap<string, TypedName>> {
  const fields = names.map((name, position) => ({
    id: `c${position}`,
    name,
    key: (pipeline.write.key ?? []).includes(name),
    newest: pipeline.write.newest === name,
  }))
  const relations = source.parts.map((part) => `(${part.select(names)})`)
  if (relations.length === 0) return new Map()
  const found = await inferTypes(local, relations.join(' union all '), fields)
  return new Map(
    found.map(({ id, type }) => {
      const name = fields.find((field) => field.id === id)?.name ?? id
      return [name, { name, type, origin: 'inferred' as const }]
    }),
  )
}

/** Gives each column its role and id, and settles which of the target's columns Stet keeps. */
export function contractOf(
  names: readonly TypedName[],
  write: WriteStrategy,
  keep: KeepColumns | undefined,
  table: TargetTable | null,
  notice: (message: string) => void,
): Contract {
  const key = write.key ?? []
  const columns = names.map(({ name, type, origin }, position): ContractColumn => {
    if (name === write.newest && !isOrderable(type)) {
      throw new StetError(
        'STET_CONFIG',
        `Column "${name}" cannot say which row is newer: ${formatColumnType(type)} has no order that is the same everywhere`,
        {
          hint: `Use a number or a time, or declare its type: --columns '${name}:bigint' (columns in a pipeline)`,
        },
      )
    }
    return {
      id: `c${position}`,
      name,
      type,
      origin,
      key: key.includes(name),
      newest: name === write.newest,
      ignored: (write.ignore ?? []).includes(name),
      asText: comparesAsText(type),
      required: tableColumn(table, name)?.nullable === false,
    }
  })
  const unknown = (write.ignore ?? []).filter((name) => !names.some((candidate) => candidate.name === name))
  if (unknown.length > 0) {
    throw new StetError('STET_COLUMNS', `ignore names ${unknown.join(', ')}, which the load does not have`)
  }
  return { columns, keep: keptColumns(names, write, keep, table, notice) }
}

/** Types that only the target itself can bring into one form. */
function comparesAsText(type: ColumnType): boolean {
  return type.kind === 'other' || type.kind === 'char'
}

const FLAG_OF_KEPT = {
  updatedAt: '--keep-updated-at',
  contentHash: '--keep-content-hash',
  gone: '--keep-gone',
} as const satisfies Record<keyof KeptColumns, string>

function optionOfKept(role: keyof KeptColumns): string {
  return `${FLAG_OF_KEPT[role]} (keep.${role} in a pipeline)`
}

function keptColumns(
  names: readonly TypedName[],
  write: WriteStrategy,
  keep: KeepColumns | undefined,
  table: TargetTable | null,
  notice: (message: string) => void,
): KeptColumns {
  const marks = 'missing' in write && write.missing === 'mark'
  const settle = (role: keyof KeptColumns): string | null => {
    const asked = keep?.[role]
    if (asked === false) return null
    const marked = table?.columns.find((column) => column.kept === role)?.name
    const isMade = table === null && (role !== 'gone' || marks)
    const name = asked ?? (isMade ? DEFAULT_KEEP[role] : marked)
    if (name === undefined && role === 'gone' && marks) {
      throw new StetError(
        'STET_CONFIG',
        `Rows that are gone need a column of ${table?.name} to be marked in`,
        {
          hint: `Run: alter table ${table?.name} add column ${DEFAULT_KEEP.gone} timestamptz, and name it: --keep-gone ${DEFAULT_KEEP.gone} (keep: { gone: '${DEFAULT_KEEP.gone}' } in a pipeline)`,
        },
      )
    }
    if (name === undefined) return null
    const clash = names.some((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
    if (clash && (asked !== undefined || (role === 'gone' && marks))) {
      throw new StetError('STET_CONFIG', `Stet cannot keep "${name}", which is also a column of the load`, {
        hint: `Name another column: ${optionOfKept(role)}`,
      })
    }
    if (clash) {
      notice(
        `"${name}" comes from the source, so Stet keeps no such column of its own; name another with ${optionOfKept(role)}`,
      )
      return null
    }
    if (table !== null && tableColumn(table, name) === undefined) {
      throw new StetError('STET_COLUMNS', `${table.name} has no column "${name}", which Stet is to keep`, {
        hint: `Run: alter table ${table.name} add column ${/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteIdentifier(name)} ${role === 'contentHash' ? 'text' : 'timestamptz'}`,
      })
    }
    return name
  }
  return { updatedAt: settle('updatedAt'), contentHash: settle('contentHash'), gone: settle('gone') }
}
