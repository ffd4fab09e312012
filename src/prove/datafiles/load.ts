import { copyFile, open, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { ident } from '../state/hashing.ts'
import { rowsOfCsv, rowsOfNdjson, type TextRows } from './rows-of-text.ts'
import type { LoadedColumn, LoadedFile, LoadedTable } from './shape.ts'
import { readSqlite, type SqliteTable } from './sqlite.ts'

export type DataFormat = 'duckdb' | 'sqlite' | 'parquet' | 'csv' | 'ndjson'

const MOST_BYTES: Readonly<Record<DataFormat, number>> = {
  duckdb: 256 * 1024 * 1024,
  sqlite: 64 * 1024 * 1024,
  parquet: 256 * 1024 * 1024,
  csv: 32 * 1024 * 1024,
  ndjson: 32 * 1024 * 1024,
}

/** Files beside a database that hold what has not come into it yet, or what is to be taken back. */
export const COMPANIONS: readonly string[] = ['.wal', '-wal', '-journal', '-shm']
const HEADER_BYTES = 16

/** What kind of tables a file holds; null for one to be compared as bytes. */
export async function formatOf(path: string): Promise<DataFormat | null> {
  const format = (await formatByContent(path)) ?? formatByName(path)
  if (format === null) return null
  return (await stat(path)).size > MOST_BYTES[format] ? null : format
}

async function formatByContent(path: string): Promise<DataFormat | null> {
  const head = Buffer.alloc(HEADER_BYTES)
  const file = await open(path)
  try {
    await file.read(head, 0, HEADER_BYTES, 0)
  } finally {
    await file.close()
  }
  if (head.toString('latin1', 8, 12) === 'DUCK') return 'duckdb'
  if (head.toString('latin1', 0, 15) === 'SQLite format 3') return 'sqlite'
  return head.toString('latin1', 0, 4) === 'PAR1' ? 'parquet' : null
}

function formatByName(path: string): DataFormat | null {
  if (/\.(csv|tsv)$/i.test(path)) return 'csv'
  return /\.(ndjson|jsonl)$/i.test(path) ? 'ndjson' : null
}

/** An engine to look into files with; it knows nothing but them. */
export async function openEngine(): Promise<AsyncDisposable & { readonly connection: DuckDBConnection }> {
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const connection = await instance.connect()
  await connection.run("set TimeZone = 'UTC'")
  return {
    connection,
    [Symbol.asyncDispose]: async () => {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

export interface LoadPlace {
  readonly connection: DuckDBConnection
  /** Under which the tables are attached. */
  readonly alias: string
  /** Copies are laid here: opening a database that was left by a crash changes it. */
  readonly scratch: string
}

/** Loads a file's tables. Throws when it is not what it looks like, as after a crash in the middle of it. */
export async function loadFile(path: string, format: DataFormat, place: LoadPlace): Promise<LoadedFile> {
  switch (format) {
    case 'duckdb':
      return loadDuckdb(await copyToLook(path, place), place)
    case 'sqlite': {
      const { tables, definitions } = await readSqlite(await copyToLook(path, place))
      await place.connection.run(`create schema ${place.alias}`)
      const loaded: LoadedTable[] = []
      for (const table of tables) loaded.push(await loadSqlite(table, place))
      return { tables: loaded, definitions }
    }
    case 'parquet': {
      await place.connection.run(`create schema ${place.alias}`)
      const reference = `${place.alias}.file`
      const file = `'${path.replaceAll("'", "''")}'`
      await place.connection.run(`create table ${reference} as select * from read_parquet(${file})`)
      return {
        tables: [{ name: '', reference, columns: await columnsOf(reference, place) }],
        definitions: [],
      }
    }
    case 'csv':
      return loadText(rowsOfCsv(await readFile(path, 'utf8')), place)
    case 'ndjson':
      return loadText(rowsOfNdjson(await readFile(path, 'utf8')), place)
  }
}

/** A copy may be opened without harm: what a crash has left beside a database is taken in by whoever opens it. */
async function copyToLook(path: string, { scratch, alias }: LoadPlace): Promise<string> {
  const copy = join(scratch, `${alias}.db`)
  await copyDatabase(path, copy)
  return copy
}

/** Copies a database, and what lies beside it and belongs to it. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  await copyFile(from, to)
  for (const ending of COMPANIONS) {
    await rm(`${to}${ending}`, { force: true })
    await copyFile(`${from}${ending}`, `${to}${ending}`).catch(ignoreMissing)
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
}

async function loadDuckdb(copy: string, { connection, alias }: LoadPlace): Promise<LoadedFile> {
  await connection.run(`attach '${copy.replaceAll("'", "''")}' as ${alias}`)
  const columns = await connection.runAndReadAll(`
select t.schema_name, t.table_name, c.column_name, c.column_default,
       exists (
         select 1 from duckdb_constraints() as k
          where k.database_name = t.database_name
            and k.table_oid = t.table_oid
            and k.constraint_type = 'PRIMARY KEY'
            and list_contains(k.constraint_column_names, c.column_name)
       ) as is_key
  from duckdb_tables() as t
  join duckdb_columns() as c on c.database_name = t.database_name and c.table_oid = t.table_oid
 where t.database_name = '${alias}'
 order by 1, 2, c.column_index`)
  const tables = new Map<string, LoadedTable & { readonly columns: LoadedColumn[] }>()
  for (const row of columns.getRowsJson()) {
    const [schema = '', table = '', column = '', byDefault] = row.map((cell) => String(cell ?? ''))
    const name = schema === 'main' ? table : `${schema}.${table}`
    const found = tables.get(name) ?? {
      name,
      reference: `${alias}.${ident(schema)}.${ident(table)}`,
      columns: [],
    }
    tables.set(name, found)
    const isGenerated = /nextval|uuid\(/.test(byDefault ?? '')
    found.columns.push({ name: column, isKey: row[4] === true, isGenerated })
  }
  const others = await connection.runAndReadAll(`
select sql from duckdb_views() where database_name = '${alias}' and not internal
 union all
select sql from duckdb_indexes() where database_name = '${alias}'`)
  return { tables: [...tables.values()], definitions: others.getRowsJson().map(([sql]) => String(sql)) }
}

async function columnsOf(reference: string, { connection }: LoadPlace): Promise<readonly LoadedColumn[]> {
  const described = await connection.runAndReadAll(`describe ${reference}`)
  return described.getRowsJson().map(([name]) => ({ name: String(name), isKey: false, isGenerated: false }))
}

async function loadSqlite(table: SqliteTable, place: LoadPlace): Promise<LoadedTable> {
  const reference = `${place.alias}.${ident(table.name)}`
  await fillTable(
    reference,
    table.columns.map(({ name }) => name),
    table.rows,
    place,
  )
  return { name: table.name, reference, columns: table.columns }
}

async function loadText({ columns, rows }: TextRows, place: LoadPlace): Promise<LoadedFile> {
  if (columns.length === 0) return { tables: [], definitions: [] }
  await place.connection.run(`create schema ${place.alias}`)
  const reference = `${place.alias}.file`
  await fillTable(reference, columns, rows, place)
  const shapes = columns.map((name) => ({ name, isKey: false, isGenerated: false }))
  return { tables: [{ name: '', reference, columns: shapes }], definitions: [] }
}

async function fillTable(
  reference: string,
  columns: readonly string[],
  rows: Iterable<readonly (string | null)[]>,
  { connection, alias }: LoadPlace,
): Promise<void> {
  await connection.run(
    `create table ${reference} (${columns.map((name) => `${ident(name)} varchar`).join(', ')})`,
  )
  const table = reference
    .slice(alias.length + 1)
    .replace(/^"|"$/g, '')
    .replaceAll('""', '"')
  const appender = await connection.createAppender(table, alias)
  for (const row of rows) {
    for (const cell of row) {
      if (cell === null) appender.appendNull()
      else appender.appendVarchar(cell)
    }
    appender.endRow()
  }
  appender.closeSync()
}
