import { StetError } from '../../errors.ts'
import { ident } from '../state/hashing.ts'
import type { LoadedColumn } from './shape.ts'

export interface SqliteTable {
  readonly name: string
  readonly columns: readonly LoadedColumn[]
  readonly rows: Iterable<readonly (string | null)[]>
}

/**
 * Reads all tables of a SQLite file, and what a write-ahead log or a journal beside it holds: opening it does what the
 * next run of the command would find done.
 */
export async function readSqlite(
  path: string,
): Promise<{ readonly tables: readonly SqliteTable[]; readonly definitions: readonly string[] }> {
  const Database = await loadDriver()
  const database = new Database(path)
  try {
    const ask = (sql: string) => database.prepare(sql).raw().all() as (string | number | null)[][]
    const names = ask(`
select name, sql
  from sqlite_schema
 where type = 'table' and name not like 'sqlite!_%' escape '!'
 order by 1`)
    const tables = names.map(([name, sql]) => {
      const text = String(name)
      const isNumbered = /\bautoincrement\b/i.test(String(sql))
      const columns = ask(`select name, pk from pragma_table_info('${text.replaceAll("'", "''")}')`).map(
        ([column, key]) => ({
          name: String(column),
          isKey: Number(key) > 0,
          isGenerated: isNumbered && Number(key) > 0,
        }),
      )
      return { name: text, columns, rows: ask(rowsOf(text, columns)) as (string | null)[][] }
    })
    const others = ask("select sql from sqlite_schema where type <> 'table' and sql is not null order by 1")
    return { tables, definitions: others.map(([sql]) => String(sql)) }
  } finally {
    database.close()
  }
}

/** Every value as its exact text: a number of this language would lose digits. */
function rowsOf(table: string, columns: readonly LoadedColumn[]): string {
  const texts = columns.map(({ name }) => {
    const column = ident(name)
    return `case typeof(${column}) when 'real' then quote(${column}) when 'blob' then quote(${column}) else cast(${column} as text) end`
  })
  return `select ${texts.join(', ')} from ${ident(table)}`
}

async function loadDriver(): Promise<typeof import('libsql')> {
  try {
    return (await import('libsql')).default
  } catch (cause) {
    throw new StetError(
      'STET_DRIVER_MISSING',
      'A SQLite file is to be compared, and the package libsql is not installed',
      {
        hint: 'Run: npm install libsql; or leave the file out with --ignore',
        cause,
      },
    )
  }
}
