import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { StetError } from '../../errors.ts'

/**
 * The one path of a database file, whatever way it was written: links followed, also when the file itself is not there
 * yet. Two sessions on one file must find out that it is one.
 */
export async function realPathOf(file: string): Promise<string> {
  if (file === '' || file === ':memory:') {
    throw new StetError(
      'STET_CONFIG',
      `Cannot load into ${JSON.stringify(file)}: a database in memory is gone when the run ends`,
      {
        hint: `Name a file: duckdb({ file: 'stet.duckdb' })`,
      },
    )
  }
  const path = resolve(file)
  try {
    return await realpath(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw unreadable(file, error)
  }
  try {
    return join(await realpath(dirname(path)), basename(path))
  } catch (error) {
    throw new StetError('STET_CONFIG', `Cannot open ${file}: the folder ${dirname(path)} does not exist`, {
      hint: `Run: mkdir -p ${dirname(path)}`,
      cause: error,
    })
  }
}

/** What stands at a path: nothing, a file that was made and not yet written, or one that DuckDB has to judge. */
export type FileState = 'missing' | 'empty' | 'file'

/**
 * Looks at the path without opening it: a process that closes any descriptor of a file gives up all locks that it holds
 * on it, also those of DuckDB.
 */
export async function lookAtFile(path: string, shown: string): Promise<FileState> {
  try {
    const found = await stat(path)
    if (found.isFile()) return found.size === 0 ? 'empty' : 'file'
    throw notADatabase(shown, `it is ${found.isDirectory() ? 'a folder' : 'no regular file'}`)
  } catch (error) {
    if (error instanceof StetError) throw error
    if (codeOf(error) === 'ENOENT') return 'missing'
    throw unreadable(shown, error)
  }
}

export function notADatabase(shown: string, why: string): StetError {
  return new StetError('STET_CONFIG', `Cannot load into ${shown}: it is not a DuckDB database (${why})`, {
    hint: 'Name another file, such as stet.duckdb; Stet makes it when it is not there',
  })
}

function unreadable(shown: string, error: unknown): StetError {
  const reason = error instanceof Error ? error.message : String(error)
  return new StetError('STET_CONFIG', `Cannot open ${shown}: ${reason}`, { cause: error })
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
