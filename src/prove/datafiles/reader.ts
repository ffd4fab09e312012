import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StetError } from '../../errors.ts'
import type { TableDiff } from '../state/diff.ts'
import type { TableState } from '../state/fingerprint.ts'
import type { Ignore } from '../state/ignore.ts'
import { diffLoaded } from './diff.ts'
import { COMPANIONS, type DataFormat, formatOf, loadFile, openEngine } from './load.ts'
import type { LoadedFile } from './shape.ts'
import { countingOf, nameOfTable, stateOfTable } from './state.ts'

/** What a file of tables holds. Equal hashes are equal content, whatever the bytes. */
export interface DataState {
  readonly hash: string
  /** By `file:table`, or by the file alone where it is one table. */
  readonly tables: ReadonlyMap<string, TableState>
  readonly definitions: readonly string[]
  /** Whether an engine looks after the file, and mends it after a crash. */
  readonly isDatabase: boolean
}

interface Unreadable {
  /** Why a file is not what it looks like. */
  readonly complaint: string
}

/** Looks into files that hold tables: DuckDB, SQLite, Parquet, CSV and JSON by line. */
export interface DataFileReader {
  /** Null for other files. Those that cannot be read, as a crash may leave them, are compared as bytes. */
  read(path: string, name: string, ignore: Ignore): Promise<DataState | Unreadable | null>
  /** The rows in which one table of two files differs, by its name in `DataState`. */
  diff(clean: string, here: string, name: string, table: string, ignore: Ignore): Promise<TableDiff | null>
}

/** Copies of databases are laid below `folder`. */
export function dataFileReader(folder: string): DataFileReader {
  const known = new WeakMap<Ignore, Map<string, Promise<DataState | Unreadable>>>()

  const withFiles = async <Result>(
    paths: readonly string[],
    format: DataFormat,
    look: (connection: Engine['connection'], files: readonly LoadedFile[]) => Promise<Result>,
  ): Promise<Result> => {
    const scratch = await mkdtemp(join(folder, 'look-'))
    try {
      await using engine = await openEngine()
      const { connection } = engine
      const files: LoadedFile[] = []
      for (const [n, path] of paths.entries()) {
        files.push(await loadFile(path, format, { connection, alias: `side${n}`, scratch }))
      }
      return await look(connection, files)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  }

  const load = (path: string, name: string, format: DataFormat, ignore: Ignore) =>
    withFiles([path], format, async (connection, [file]): Promise<DataState> => {
      const tables = new Map<string, TableState>()
      for (const table of file?.tables ?? []) {
        const full = nameOfTable(name, table.name)
        // Of a file that is one table, its name as a file has decided.
        if (table.name !== '' && ignore.table(full)) continue
        tables.set(full, await stateOfTable(connection, table, countingOf(name, table, ignore)))
      }
      const definitions = (file?.definitions ?? []).map((line) => `${name}: ${line}`).sort()
      const isDatabase = format === 'duckdb' || format === 'sqlite'
      return { hash: digest(format, tables, definitions), tables, definitions, isDatabase }
    })

  return {
    async read(path, name, ignore) {
      const format = await formatOf(path)
      if (format === null) return null
      const states = known.get(ignore) ?? new Map<string, Promise<DataState | Unreadable>>()
      known.set(ignore, states)
      const bytes = `${name} ${await hashOfBytes(path)}`
      const state = states.get(bytes) ?? load(path, name, format, ignore).catch(unreadable)
      states.set(bytes, state)
      return state
    },
    async diff(clean, here, name, table, ignore) {
      const format = await formatOf(clean)
      if (format === null || format !== (await formatOf(here))) return null
      return withFiles([clean, here], format, async (connection, files) => {
        const [before, after] = files.map((file) =>
          file.tables.find((one) => nameOfTable(name, one.name) === table),
        )
        if (before === undefined || after === undefined) return null
        return diffLoaded(connection, before, after, countingOf(name, before, ignore))
      })
    },
  }
}

type Engine = Awaited<ReturnType<typeof openEngine>>

/** A crash may have left anything. That a package is missing is no state of a file. */
function unreadable(error: unknown): Unreadable {
  if (error instanceof StetError) throw error
  const [complaint = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return { complaint }
}

/** Of a file and what lies beside it. */
async function hashOfBytes(path: string): Promise<string> {
  const hash = createHash('sha256')
  for (const ending of ['', ...COMPANIONS]) {
    hash.update(`${ending}\n`)
    try {
      for await (const chunk of createReadStream(`${path}${ending}`)) hash.update(chunk as Buffer)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }
  return hash.digest('hex')
}

function digest(
  format: DataFormat,
  tables: ReadonlyMap<string, TableState>,
  definitions: readonly string[],
): string {
  const hash = createHash('sha256').update(format)
  for (const [name, { rows, full, columns }] of tables) {
    hash.update(`\n${name} ${rows} ${full} ${[...columns.keys()].join()}`)
  }
  for (const line of definitions) hash.update(`\n${line}`)
  return hash.digest('hex')
}
