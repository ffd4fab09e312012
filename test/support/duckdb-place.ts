import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { duckdb } from '../../src/targets/duckdb/index.ts'
import type { Attempt, Faults, Place } from '../../src/testing/place.ts'
import { forkAttempt } from './postgres-place.ts'

export interface DuckdbPlace extends Place {
  readonly file: string
}

/** A DuckDB file in a folder of its own; looked at by an instance that is opened and closed for each look. */
export async function duckdbPlace(): Promise<DuckdbPlace> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-test-'))
  const file = join(folder, 'place.duckdb')
  const look = async (sql: string): Promise<Record<string, unknown>[]> => {
    const instance = await DuckDBInstance.create(file)
    try {
      const connection = await instance.connect()
      await connection.run(`set TimeZone = 'UTC'`)
      const reader = await connection.runAndReadAll(sql)
      const rows = reader.getRowObjects()
      connection.closeSync()
      return rows
    } finally {
      instance.closeSync()
    }
  }
  const there = async (table: string) =>
    existsSync(file) &&
    (await look(`select 1 from duckdb_tables() where schema_name = 'main' and table_name = '${table}'`))
      .length > 0
  return {
    file,
    target: duckdb({ file }),
    execute: async (sql) => {
      await look(sql)
    },
    rows: async (table) => {
      const rows = await look(
        `select to_json(stet_row)::varchar as row from (select columns(c -> c not in ('updated_at', 'content_hash'))::varchar from ${table}) as stet_row order by 1`,
      )
      return rows.map((row) => String(row.row))
    },
    // DuckDB keeps no version of a row; its kept column says when Stet wrote it.
    versions: async (table) => {
      const rows = await look(
        `select to_json(stet_row)::varchar as version from ${table} as stet_row order by 1`,
      )
      return rows.map((row) => String(row.version))
    },
    count: async (table) => {
      if (!(await there(table))) return 0
      const [row] = await look(`select count(*)::integer as n from ${table}`)
      return Number(row?.n)
    },
    leftovers: async () => {
      const tables = await look(
        `select schema_name || '.' || table_name as name from duckdb_tables() where not (schema_name = 'main' and table_name = 't') and schema_name <> 'stet' order by 1`,
      )
      const files = (await readdir(folder)).filter(
        (name) => name !== 'place.duckdb' && name !== 'place.duckdb.wal',
      )
      return [...tables.map((row) => String(row.name)), ...files]
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

function fileOf(place: Place): string {
  return (place as DuckdbPlace).file
}

async function runChild(
  place: Place,
  attempt: Attempt,
  more: { kill?: { at: number; side: 'before' | 'after' }; count?: boolean },
) {
  const child = forkAttempt({ target: 'duckdb', where: fileOf(place), attempt, ...more })
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

/** The process kills itself before or after a statement that the target sends to the engine it lives in. */
export const duckdbKills: Faults = {
  what: 'the process killed',
  attemptSurvives: false,
  countOf: async (place, attempt) => {
    const { code, output } = await runChild(place, attempt, { count: true })
    if (code !== 0) throw new Error(`the undisturbed run ended with ${code}`)
    return Number(output)
  },
  attemptWithFault: async (place, attempt, kill) => {
    const { code } = await runChild(place, attempt, { kill })
    return { claimedSuccess: code === 0 }
  },
}
