import { DuckDBDataChunk, type DuckDBResult, VARCHAR } from '@duckdb/node-api'
import { StetError } from '../errors.ts'
import { fieldSql, joinLine, joinLines, lineSql, splitLine, splitSql } from '../local/lines.ts'
import { quoteIdentifier } from '../local/quote.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { SourcePart } from '../model/source.ts'
import { relationPart } from './target-form.ts'
import type { Transform, TransformRow, TransformValue } from './types.ts'

/** What a transform made of the landed rows: text again, to be read by the final contract. */
export interface Transformed {
  readonly part: SourcePart
  /** Columns of the result, in order. */
  readonly names: readonly string[]
  readonly rows: number
  /** Rows left out, and rows made beyond one for each row read. For SQL only their balance is known. */
  readonly filtered: number
  readonly added: number
}

/** So many rows go back as one text. */
const CHUNK_ROWS = 1024

/** Applies the pipeline's transform to the landed rows. */
export async function applyTransform(
  local: LocalConnection,
  transform: Transform,
  landed: string,
  contract: Contract,
  { signal, notice }: { readonly signal: AbortSignal; readonly notice: (message: string) => void },
): Promise<Transformed> {
  const names = contract.columns.map(({ name }) => name)
  // Not refused: a file of JSON may lack a key for a day, and a source without rows knows of none.
  const foreign = (transform.drops ?? []).filter((name) => !names.includes(name))
  if (foreign.length > 0 && names.length > 0) {
    notice(
      `The transform drops ${foreign.map((name) => `"${name}"`).join(', ')}, which the source does not have; it has ${names.map((name) => `"${name}"`).join(', ')}`,
    )
  }
  return 'sql' in transform
    ? transformBySql(local, transform.sql, landed, contract)
    : transformByRow(local, transform.row, namesAfter(transform, contract), landed, contract, signal)
}

function namesAfter(transform: Transform, contract: Contract): readonly string[] {
  const kept = contract.columns
    .map((column) => column.name)
    .filter((name) => !(transform.drops ?? []).includes(name))
  return [...new Set([...kept, ...Object.keys(transform.adds ?? {})])]
}

async function transformBySql(
  local: LocalConnection,
  sql: string,
  landed: string,
  contract: Contract,
): Promise<Transformed> {
  const folded = contract.columns.map((column) => column.name.toLowerCase())
  const clash = contract.columns.find(
    (column, position) => folded.indexOf(column.name.toLowerCase()) !== position,
  )
  if (clash !== undefined) {
    throw new StetError(
      'STET_CONFIG',
      `The SQL transform cannot tell columns apart that differ only in case: "${clash.name}"`,
      {
        hint: 'Use a row transform, or rename one of them in the source',
      },
    )
  }
  const result = local.newName('transformed')
  const columns = contract.columns.map((column) => `${column.id} as ${quoteIdentifier(column.name)}`)
  await local.run(`create or replace view landed as select ${columns.join(', ')} from ${landed}`)
  try {
    await local.run(`create table ${result} as ${sql.trim().replace(/;\s*$/, '')}`)
  } catch (cause) {
    throw new StetError(
      'STET_CONFIG',
      `The SQL transform failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        hint: 'It is one select of DuckDB over the table "landed", whose columns bear the source\'s names',
        cause,
      },
    )
  }
  const described = await local.rows(
    `select column_name as name, data_type as type from duckdb_columns() where table_name = '${result}' order by column_index`,
  )
  const types = new Map(described.map((row) => [String(row.name), String(row.type)]))
  const before = await local.count(`select count(*) from ${landed}`)
  const rows = await local.count(`select count(*) from ${result}`)
  return {
    part: relationPart(local, result, (name) =>
      exactText(quoteIdentifier(name), types.get(name) ?? 'VARCHAR'),
    ),
    names: [...types.keys()],
    rows,
    filtered: Math.max(0, before - rows),
    added: Math.max(0, rows - before),
  }
}

/** A value of the local engine as the text that the landing reads. */
function exactText(expression: string, type: string): string {
  if (type === 'BLOB') return `'\\x' || lower(hex(${expression}))`
  if (/[[(]/.test(type) && !type.startsWith('DECIMAL')) return `to_json(${expression})::varchar`
  return `${expression}::varchar`
}

async function transformByRow(
  local: LocalConnection,
  change: (row: TransformRow) => TransformRow | readonly TransformRow[] | null,
  names: readonly string[],
  landed: string,
  contract: Contract,
  signal: AbortSignal,
): Promise<Transformed> {
  const table = local.newName('transformed')
  await local.run(`create table ${table} (lines varchar)`)
  const writer = await local.connect()
  const appender = await writer.duckdb.createAppender(table)
  let pending: string[] = []
  const flush = () => {
    const chunk = DuckDBDataChunk.create([VARCHAR])
    chunk.setColumns([[joinLines(pending)]])
    appender.appendDataChunk(chunk)
    pending = []
  }
  let rows = 0
  let filtered = 0
  let added = 0
  const columns = contract.columns.map((column) => ({ name: column.name, read: readerOf(column) }))
  const result = await local.duckdb.stream(`select ${lineSql(contract.columns)} from ${landed}`)
  for await (const chunk of chunksAhead(result)) {
    signal.throwIfAborted()
    for (const line of chunk.getColumnVector(0).toArray() as readonly string[]) {
      const fields = splitLine(line)
      const row: Record<string, TransformValue> = {}
      for (let position = 0; position < columns.length; position++) {
        const column = columns[position]
        const field = fields[position]
        if (column !== undefined) row[column.name] = field == null ? null : column.read(field)
      }
      const answer = callUser(change, row)
      if (answer === null) {
        filtered++
        continue
      }
      const answers = Array.isArray(answer) ? (answer as readonly TransformRow[]) : [answer as TransformRow]
      if (answers.length === 0) filtered++
      else added += answers.length - 1
      for (const output of answers) {
        pending.push(lineOf(output, names))
        rows++
        if (pending.length === CHUNK_ROWS) flush()
      }
    }
  }
  if (pending.length > 0) flush()
  appender.closeSync()
  const part = relationPart(local, `(${splitSql(table)})`, (name) => fieldSql(names.indexOf(name)))
  return { part, names, rows, filtered, added }
}

/** The chunks of a result, each asked for while the one before it is worked on: the engine has threads of its own. */
async function* chunksAhead(result: DuckDBResult): AsyncIterable<DuckDBDataChunk> {
  let next = result.fetchChunk()
  try {
    for (let chunk = await next; chunk !== null && chunk.rowCount > 0; chunk = await next) {
      next = result.fetchChunk()
      yield chunk
    }
  } finally {
    // Whoever stops early may close the connection next, and that must not happen under a fetch.
    await next.catch(() => undefined)
  }
}

/** A row of the transform on its way back. */
function lineOf(row: TransformRow, names: readonly string[]): string {
  refuseNonRow(row)
  if (!hasJust(row, names)) {
    refuseUnknown(row, names)
    refuseMissing(row, names)
  }
  const texts: (string | null)[] = []
  for (const name of names) texts.push(textOfValue(row[name], name))
  return joinLine(texts)
}

/** Whether nothing is left to be refused: asked of every row, so in loops and without lists. */
function hasJust(row: TransformRow, names: readonly string[]): boolean {
  let columns = 0
  for (const _ in row) columns++
  if (columns !== names.length) return false
  for (const name of names) if (!(name in row)) return false
  return true
}

/** A text of the local engine as the value that a row transform gets; exact for the types that JavaScript holds. */
function readerOf({ type, asText }: ContractColumn): (text: string) => TransformValue {
  if (asText) return (text) => text
  switch (type.kind) {
    case 'smallint':
    case 'integer':
      return Number
    case 'bigint':
      return BigInt
    case 'double':
      return (text) => NOT_FINITE[text] ?? Number(text)
    case 'boolean':
      return (text) => text === 'true'
    default:
      return (text) => text
  }
}

/** What the local engine prints for them. */
const NOT_FINITE: Readonly<Record<string, number>> = {
  inf: Number.POSITIVE_INFINITY,
  '-inf': Number.NEGATIVE_INFINITY,
  nan: Number.NaN,
}

function callUser(
  change: (row: TransformRow) => TransformRow | readonly TransformRow[] | null,
  row: TransformRow,
): TransformRow | readonly TransformRow[] | null {
  try {
    return change(row)
  } catch (cause) {
    const shown = Object.entries(row).map(
      ([name, value]) => `${name}=${value === null ? 'NULL' : String(value)}`,
    )
    throw new StetError(
      'STET_CONFIG',
      `The row transform failed: ${cause instanceof Error ? cause.message : String(cause)}; at the row ${shown.join(' ').slice(0, 500)}`,
      { cause },
    )
  }
}

/**
 * A transform that is `async` gives a promise, which has no columns and would load as a row of NULLs; one whose `return` was
 * forgotten gives nothing, and all rows would be left out without anybody having said so.
 */
function refuseNonRow(row: unknown): void {
  if (typeof row === 'object' && row !== null && !('then' in row)) return
  const what =
    row === undefined
      ? 'nothing'
      : typeof row === 'object' && row !== null
        ? 'a promise; it must not be async'
        : `${JSON.stringify(row)}`
  throw new StetError('STET_CONFIG', `The row transform returned ${what}`, {
    hint: 'Return an object with the columns of the row, several of them in an array, or null to leave the row out',
  })
}

/** Left out is not NULL: it would overwrite what the table has. */
function refuseMissing(row: TransformRow, names: readonly string[]): void {
  const missing = names.filter((name) => !(name in row))
  if (missing.length === 0) return
  throw new StetError(
    'STET_CONFIG',
    `The row transform returned a row without ${missing.map((name) => `"${name}"`).join(', ')}`,
    {
      hint: `Return all columns ({ ...row, … }), null for NULL; columns that are not to be loaded are named in drops: [${missing.map((name) => `'${name}'`).join(', ')}]`,
    },
  )
}

function refuseUnknown(row: TransformRow, names: readonly string[]): void {
  for (const name in row) {
    if (!names.includes(name)) {
      throw new StetError(
        'STET_CONFIG',
        `The row transform returned a column "${name}" that nobody declared`,
        {
          hint: `Declare it: transform: { row, adds: { ${name}: 'text' } }`,
        },
      )
    }
  }
}

function textOfValue(value: unknown, name: string): string | null {
  switch (typeof value) {
    case 'string':
      if (value.isWellFormed()) return value
      throw new StetError('STET_CONFIG', `The row transform returned half of a surrogate pair in "${name}"`)
    case 'number':
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
        throw new StetError(
          'STET_CONFIG',
          `The row transform returned ${value} in "${name}", an integer that a number cannot hold exactly`,
          {
            hint: 'Return a bigint or a string',
          },
        )
      }
      return String(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'undefined':
      // A misspelt column of the row, or a key that a lookup does not have.
      throw new StetError('STET_CONFIG', `The row transform returned undefined in "${name}"`, {
        hint: 'Return null for NULL',
      })
    default:
      if (value === null) return null
      throw new StetError(
        'STET_CONFIG',
        `The row transform returned ${Object.prototype.toString.call(value)} in "${name}"`,
        {
          hint: 'Return a string, number, bigint, boolean or null',
        },
      )
  }
}
