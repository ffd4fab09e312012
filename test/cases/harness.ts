import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'lossless-json'
import { describe, inject } from 'vitest'
import {
  type DefinedPipeline,
  definePipeline,
  type Pipeline,
  type RunOptions,
  type RunResult,
  run,
  type Target,
} from '../../src/index.ts'
import type { Columns } from '../../src/model/columns.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import { csv } from '../../src/sources/csv/index.ts'
import { json } from '../../src/sources/json/index.ts'
import type { Place } from '../../src/testing/index.ts'
import { duckdbPlace } from '../support/duckdb-place.ts'
import { postgresPlace } from '../support/postgres-place.ts'

export interface CasePlace extends Place {
  readonly name: 'DuckDB' | 'PostgreSQL'
  readonly target: Target
}

/** The places a case is tried in: a new DuckDB file, a new PostgreSQL database. */
export function eachTarget(body: (name: CasePlace['name'], create: () => Promise<CasePlace>) => void): void {
  describe('DuckDB', () =>
    body('DuckDB', async () => ({ ...(await duckdbPlace()), name: 'DuckDB' as const })))
  describe('PostgreSQL', () =>
    body('PostgreSQL', async () => ({
      ...(await postgresPlace(inject('postgresUrl'))),
      name: 'PostgreSQL' as const,
    })))
}

/** The folder of a case's files. */
export function caseFolder(name: string): string {
  return fileURLToPath(new URL(`./data/${name}`, import.meta.url))
}

export async function caseText(name: string, file: string): Promise<string> {
  return readFile(`${caseFolder(name)}/${file}`, 'utf8')
}

/** Files by their names, in a folder that lasts as long as the body. */
export async function withFiles<Value>(
  files: Readonly<Record<string, string>>,
  body: (folder: string) => Promise<Value>,
): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), 'stet-case-'))
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    return await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export interface CaseLoad {
  readonly place: Pick<CasePlace, 'target'>
  readonly folder: string
  readonly file: string
  readonly table: string
  readonly write: WriteStrategy
  readonly columns?: Columns | undefined
  readonly transform?: Pipeline['transform']
}

export function casePipeline({
  place,
  file,
  table,
  write,
  columns,
  transform,
}: Omit<CaseLoad, 'folder'>): DefinedPipeline {
  const declared = columns === undefined ? {} : { columns }
  const source = /\.(jsonl|json)$/.test(file)
    ? json({ files: file, ...declared })
    : csv({ files: file, ...declared })
  return definePipeline({
    name: table,
    source: source as never,
    target: place.target,
    table,
    write: write as never,
    ...(transform === undefined ? {} : { transform: transform as never }),
  })
}

/** Loads one file of a case. */
export async function loadCase(load: CaseLoad, options: RunOptions = {}): Promise<RunResult> {
  return run(casePipeline(load), { cwd: load.folder, ...options })
}

/** Inserted/updated/unchanged, as the cases write it. */
export function brief(result: RunResult): string {
  const { inserted, updated, unchanged } = result.counts
  return `${inserted}/${updated}/${unchanged}`
}

/** Rows of a table as arrays of text in the order of the named columns, sorted. */
export async function table(
  place: CasePlace,
  name: string,
  columns: readonly string[],
): Promise<(string | null)[][]> {
  const rows = await place.rows(name)
  return rows
    .map((row) => {
      const values = parseFlat(row)
      return columns.map((column) => values.get(column) ?? null)
    })
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** A flat JSON object, numbers kept as their digits. */
function parseFlat(row: string): Map<string, string | null> {
  const values = parse(row, undefined, (digits) => digits) as Record<string, unknown>
  return new Map(
    Object.entries(values).map(([name, value]) => [
      name,
      value === null ? null : typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
}
