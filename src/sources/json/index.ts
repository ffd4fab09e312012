import { StetError } from '../../errors.ts'
import type { Columns } from '../../model/columns.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type {
  OpenSource,
  Reject,
  RowLocation,
  Source,
  SourceContext,
  SourcePart,
} from '../../model/source.ts'
import { type InputFile, openFiles } from '../shared/files.ts'
import { patternsOf } from '../shared/resolve.ts'
import { createTextTable, type TextTable } from '../shared/text-table.ts'
import { readDocument } from './document.ts'
import { createFieldSet } from './fields.ts'
import { type Layout, layoutOf } from './layout.ts'
import { readLines } from './lines.ts'
import { createRecordReader, NO_OBJECT } from './record.ts'
import { type Findings, skipValue } from './scan.ts'
import type { RecordVisitor } from './visit.ts'

export interface JsonOptions<C extends Columns> {
  /** Paths and patterns such as `inbox/*.ndjson`; `-` is standard input. */
  readonly files: string | readonly string[]
  /** Default: the target's columns. A name such as `properties.updated` is looked for within objects as well. */
  readonly columns?: C | undefined
  /**
   * Where in a document the array of records is: `features`, `result.items`. Default: the document is the array, or a row
   * of objects.
   */
  readonly records?: string | undefined
  /** Columns that are found under another name or within objects: `{ updated: 'properties.updated' }`. */
  readonly fields?: Readonly<Record<string, string>> | undefined
  /** `ndjson`: one record on each line, whatever the file's name. Default: by name (`.ndjson`, `.jsonl`) and content. */
  readonly format?: 'json' | 'ndjson' | undefined
  /** Default: UTF-8, or UTF-16 where a byte order mark says so. */
  readonly encoding?: string | undefined
}

/**
 * A source of JSON documents and of files with one JSON record on each line. Numbers keep their digits: they never pass
 * through a JavaScript number. Objects and arrays within a record are given as their JSON text, and so are strings of columns
 * that hold JSON.
 *
 * @example
 * json({
 *   files: 'earthquakes.json',
 *   records: 'features',
 *   columns: { id: 'text', mag: 'numeric', updated: 'bigint' },
 *   fields: { mag: 'properties.mag', updated: 'properties.updated' },
 * })
 */
export function json<const C extends Columns = Columns>(options: JsonOptions<C>): Source<C> {
  refuseUnknownOptions('json', options, {
    files: true,
    columns: true,
    records: true,
    fields: true,
    format: true,
    encoding: true,
  })
  const patterns = patternsOf('json', options.files)
  return {
    kind: 'json',
    columns: options.columns,
    description: patterns.join(', '),
    open: (context) => openJson(options, context),
  }
}

/** More is no table: PostgreSQL's own limit. */
const COLUMNS_MAX = 1600
/** Beyond these a reject is counted and placed, but its text is not kept. */
const REJECTS_WITH_TEXT = 1000
const RAW_CHARACTERS = 2000

async function openJson(options: JsonOptions<Columns>, context: SourceContext): Promise<OpenSource> {
  const paths = pathsOf(options)
  const opened = await openFiles(
    { files: options.files, content: 'text', encoding: options.encoding },
    context,
  )
  const parts: LandedFile[] = []
  const dispose = async () => {
    for (const part of parts) await part.table.drop()
  }
  try {
    for (const input of opened.files) parts.push(await landFile(input, options, paths, context))
  } catch (error) {
    await dispose()
    throw error
  }
  const found = new Set(parts.flatMap((part) => part.names))
  const hasRecords = parts.some((part) => part.table.rows > 0)
  const scalars = parts.find((part) => part.rejects.length > 0 && part.rejects.every(isNoObject))
  // Where columns are declared these are rejects; where not, there is nothing that could tell them.
  if (!hasRecords && paths.size === 0 && scalars !== undefined) {
    await dispose()
    throw noObjects(scalars)
  }
  for (const [name, path] of Object.entries(options.fields ?? {})) {
    if (!hasRecords || found.has(name)) continue
    await dispose()
    throw new StetError(
      'STET_COLUMNS',
      `No record of ${opened.files.map(({ file }) => file.path).join(', ')} has "${path}", from which "${name}" is to come`,
      {
        hint: 'Look at the spelling of the path, upper and lower case included; a point goes one level down',
        details: { column: name, path },
      },
    )
  }
  return {
    fieldsUnknown: parts.every((part) => part.table.rows === 0 && part.rejects.length === 0),
    // An empty file has no columns to be missed.
    fields: [...(hasRecords ? found : new Set([...paths.keys(), ...found]))].map((name) => ({ name })),
    files: opened.files.map(({ file }) => file),
    parts: parts.map((part) => partOf(part)),
    verify: opened.verify,
    [Symbol.asyncDispose]: dispose,
  }
}

/** The declared columns, each with where it is found. */
function pathsOf({ columns = {}, fields = {} }: JsonOptions<Columns>): ReadonlyMap<string, string> {
  const paths = new Map(Object.keys(columns).map((name) => [name, fields[name] ?? name]))
  for (const [name, path] of Object.entries(fields)) paths.set(name, path)
  const byPath = new Map<string, string>()
  for (const [name, path] of paths) {
    const twin = byPath.get(path)
    if (twin !== undefined) {
      throw new StetError('STET_CONFIG', `Cannot read "${path}" into two columns, "${twin}" and "${name}"`)
    }
    byPath.set(path, name)
  }
  return paths
}

interface LandedFile {
  readonly input: InputFile
  readonly layout: Layout
  readonly table: TextTable
  /** Of the columns that a record of the file has. */
  readonly names: readonly string[]
  /** Position in the table by name. */
  readonly columns: ReadonlyMap<string, number>
  readonly rejects: readonly Reject[]
}

async function landFile(
  input: InputFile,
  options: JsonOptions<Columns>,
  paths: ReadonlyMap<string, string>,
  context: SourceContext,
): Promise<LandedFile> {
  const layout = await layoutOf(input, options)
  const table = await createTextTable(context.local)
  try {
    let columns = 0
    const fields = createFieldSet(paths, () => {
      if (++columns > COLUMNS_MAX) throw tooWide(input.file.path)
      table.addColumn()
    })
    const reader = createRecordReader(fields, context.holdsJson)
    const rejects: Reject[] = []
    const write = async () => {
      await table.write()
      context.signal.throwIfAborted()
      context.progress({ phase: 'reading', rows: table.rows })
    }
    const refuse = (line: number, column: string | null, reason: string, raw: () => string) => {
      const kept = context.keepRejects
        ? { raw: raw() }
        : rejects.length < REJECTS_WITH_TEXT
          ? { raw: raw().slice(0, RAW_CHARACTERS) }
          : {}
      rejects.push({ file: input.file.path, line, column, value: null, reason, ...kept })
      table.skip()
    }
    await readRecords(input, layout, {
      read: reader.read,
      done: (line, raw, problem) => {
        if (problem !== null) refuse(line, null, problem, raw)
        else if (reader.refusal !== null) refuse(line, reader.refusal.column, reader.refusal.reason, raw)
        else table.append(reader.values)
        return table.full ? write() : undefined
      },
      finished: false,
    })
    await table.finish()
    return {
      input,
      layout,
      table,
      names: fields.names.filter((name, column) => reader.has(column) && name.isWellFormed()),
      columns: new Map(fields.names.map((name, column) => [name, column])),
      rejects,
    }
  } catch (error) {
    await table.drop()
    throw error
  }
}

function readRecords(input: InputFile, layout: Layout, visitor: RecordVisitor): Promise<void> {
  return layout.kind === 'lines' ? readLines(input, visitor) : readDocument(input, layout.path, visitor)
}

function partOf({ input, layout, table, columns, rejects }: LandedFile): SourcePart {
  return {
    file: input.file,
    select: (wanted) => table.select(wanted.map((name) => columns.get(name))),
    rejects: async () => rejects,
    locate: (rows) => locate(input, layout, table.recordsOf(rows)),
  }
}

/** Reads the file again as far as needed, counting records as the landing did. */
async function locate(
  input: InputFile,
  layout: Layout,
  records: readonly number[],
): Promise<readonly RowLocation[]> {
  const findings: Findings = { refusal: null, escaped: false }
  const found: RowLocation[] = []
  let record = 0
  const visitor = {
    read: (text: string, from: number) => skipValue(text, from, findings),
    done: (line: number, raw: () => string) => {
      if (++record === records[found.length]) found.push({ line, raw: raw() })
      return undefined
    },
    get finished() {
      return found.length === records.length
    },
  }
  if (records.length > 0) await readRecords(input, layout, visitor)
  return found
}

function isNoObject({ column, reason }: Reject): boolean {
  return column === null && reason === NO_OBJECT
}

function noObjects({ input, layout, rejects }: LandedFile): StetError {
  const path = input.file.path
  const [first] = rejects
  const is = `such as ${first?.raw?.slice(0, 60) ?? '?'} on line ${first?.line}`
  return new StetError(
    'STET_SOURCE',
    `Cannot read "${path}": none of its ${rejects.length === 1 ? 'values' : `${rejects.length} values`} is an object with the columns of a row, ${is}`,
    {
      hint:
        layout.kind === 'lines'
          ? 'Each line has to be an object, such as {"id": 1}'
          : 'The array has to hold objects, such as [{"id": 1}]; where they lie elsewhere in the file, name the place: --records data.items (records in a pipeline)',
      details: { file: path },
    },
  )
}

function tooWide(path: string): StetError {
  return new StetError(
    'STET_SOURCE',
    `Cannot read "${path}": its records have over ${COLUMNS_MAX} different keys`,
    {
      hint: 'An object whose keys are data is no record; name the array of records: --records features (records in a pipeline)',
      details: { file: path },
    },
  )
}
