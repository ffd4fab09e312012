import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { beforeEach, expect } from 'vitest'
import { type Ran, type RanWith, runCli } from './run-cli.ts'
import { violations } from './schemas.ts'
import { writeDay, writeVisits } from './visits.ts'

/** An entry of the run log, as far as tests look at it. */
export interface LoggedRun {
  readonly runId: string
  readonly slice: string
  readonly logicalTime: string | null
  readonly code: string | null
  readonly rerunOf: string | null
  readonly window: { readonly from: string | null; readonly to: string | null } | null
}

/** The pipeline of visits with its first two days in a folder, and the command line there. */
export interface VisitsCli {
  readonly cwd: string
  /** Names the pipeline's target to commands without a pipeline. */
  readonly into: readonly string[]
  stet(argv: readonly string[], more?: Partial<RanWith>): Promise<Ran>
  /** `stet run visits.ts`. */
  run(...argv: readonly string[]): Promise<Ran>
  /** What stands in the DuckDB file. */
  rowsOf(sql: string): Promise<unknown>
  /** The run log, newest first. */
  runsOf(): Promise<readonly LoggedRun[]>
}

/** A folder of its own for each test of the file; to be called at its top. */
export function visitsCli(): VisitsCli {
  let cwd = ''
  const file = () => join(cwd, 'stet.duckdb')
  const into = () => ['--into', file()]
  beforeEach(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'stet-slices-'))
    await writeVisits({ cwd })
    await writeDay(cwd, '2026-05-01', ['a', 'b'])
    await writeDay(cwd, '2026-05-02', ['a', 'b'])
  })
  const stet: VisitsCli['stet'] = (argv, more = {}) => runCli(argv, { cwd, ...more })
  return {
    get cwd() {
      return cwd
    },
    get into() {
      return into()
    },
    stet,
    run: (...argv) => stet(['run', 'visits.ts', ...argv]),
    rowsOf: async (sql) => {
      const instance = await DuckDBInstance.create(file())
      const connection = await instance.connect()
      try {
        return (await connection.runAndReadAll(sql)).getRows()
      } finally {
        connection.closeSync()
        instance.closeSync()
      }
    },
    runsOf: async () => {
      const ran = await stet(['runs', ...into(), '--json'])
      expect(violations('runs.json', ran.document())).toEqual([])
      return ran.document().runs as LoggedRun[]
    },
  }
}
