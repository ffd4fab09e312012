import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { StetError } from '../errors.ts'
import type { Target } from '../model/target.ts'
import { redact } from './redact.ts'

export const DEFAULT_TARGET = 'stet.duckdb'

/**
 * The target that `--into` names: a PostgreSQL URL, or a DuckDB file by its ending or, once it is there, by its content.
 *
 * @throws {StetError} `STET_USAGE` for anything else: `--into orders.csv` must not become a database of that name.
 */
export async function targetOf(into: string, cwd: string): Promise<Target> {
  if (/^postgres(ql)?:\/\//i.test(into)) {
    const { postgres } = await import('../targets/postgres/index.ts')
    return postgres({ url: into })
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(into)) {
    if (/\.(duckdb|ddb|db)$/i.test(into) || (await isDuckDbFile(resolve(cwd, into)))) {
      const { duckdb } = await import('../targets/duckdb/index.ts')
      return duckdb({ file: into })
    }
  }
  throw new StetError(
    'STET_USAGE',
    `Cannot load into "${redact(into)}": it names neither PostgreSQL nor a DuckDB file`,
    {
      hint: 'Write --into postgres://user@host/database, or a file that ends in .duckdb, .ddb or .db',
    },
  )
}

/** Bytes 8 to 11 of every DuckDB file. */
const MAGIC = 'DUCK'

async function isDuckDbFile(file: string): Promise<boolean> {
  const handle = await open(file, 'r').catch(() => null)
  if (handle === null) return false
  try {
    const head = Buffer.alloc(12)
    const { bytesRead } = await handle.read(head, 0, head.length, 0)
    return bytesRead === head.length && head.toString('latin1', 8, 12) === MAGIC
  } catch {
    // A folder can be opened, but not read.
    return false
  } finally {
    await handle.close()
  }
}
