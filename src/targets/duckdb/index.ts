import { StetError } from '../../errors.ts'
import { refuseUnknownOptions } from '../../model/options.ts'
import type { Target } from '../../model/target.ts'
import { realPathOf } from './file.ts'
import { openRecord } from './record/editor.ts'
import { openRunLog } from './record/run-log.ts'
import { openSession } from './session.ts'

export interface DuckDBOptions {
  /** The database's file, such as `stet.duckdb`; the first run makes it. A relative path starts at the process's folder. */
  readonly file: string
}

/**
 * Tables in a DuckDB file. One process at a time has the file, readers included; a second run waits its turn (G7).
 *
 * @throws {StetError} when opened: `STET_CONFIG` when the file is not a DuckDB database, `STET_LOCKED` when another
 * process holds it for too long.
 * @example
 * const target = duckdb({ file: 'stet.duckdb' })
 */
export function duckdb(options: DuckDBOptions): Target {
  refuseUnknownOptions('duckdb', options, { file: true })
  const { file } = options
  if (typeof file !== 'string') {
    throw new StetError('STET_CONFIG', 'The DuckDB target needs a file', {
      hint: `Write duckdb({ file: 'stet.duckdb' })`,
    })
  }
  return {
    kind: 'duckdb',
    description: `DuckDB ${file}`,
    capabilities: {
      strategies: ['upsert', 'insert-once', 'replace-table', 'replace-partition'],
      transactional: true,
      // DuckDB knows no limit; a name that no person can read is a mistake all the same.
      identifierBytesMax: 1_000,
      oneRunAtATime: true,
    },
    open: async (openOptions) => openSession(await realPathOf(file), file, openOptions),
    openRunLog: async ({ signal }) => openRunLog(await realPathOf(file), file, signal),
    openRecord: async ({ signal }) => openRecord(await realPathOf(file), file, signal),
  }
}
