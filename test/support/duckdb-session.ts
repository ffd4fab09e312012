import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { type LocalEngine, openLocalEngine } from '../../src/local/engine.ts'
import { parseColumnType } from '../../src/model/column-type.ts'
import type { Contract, ContractColumn, KeptColumns } from '../../src/model/columns.ts'
import type { Difference } from '../../src/model/comparison.ts'
import { NO_COUNTS, type RunCounts, type RunRecord, type RunStart } from '../../src/model/run.ts'
import type {
  CommitExtras,
  OpenTargetOptions,
  Scope,
  SliceLoad,
  Target,
  TargetSession,
} from '../../src/model/target.ts'
import type { WriteStrategy } from '../../src/model/write.ts'

/** A folder for database files, gone at the end of the test. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'stet-duckdb-test-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Statements on a file by somebody who is not Stet; the rows of the last one, as text. */
export async function byHand(file: string, ...statements: readonly string[]): Promise<(string | null)[][]> {
  const instance = await DuckDBInstance.create(file)
  try {
    const connection = await instance.connect()
    await connection.run(`set TimeZone = 'UTC'`)
    let rows: (string | null)[][] = []
    for (const statement of statements) {
      const reader = await connection.runAndReadAll(statement)
      rows = reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))))
    }
    connection.closeSync()
    return rows
  } finally {
    instance.closeSync()
  }
}

/** A contract from `{ id: 'text' }`, a key and what is kept. */
export function contractOf(
  columns: Readonly<Record<string, string>>,
  key: readonly string[],
  options: { readonly keep?: Partial<KeptColumns>; readonly asText?: readonly string[] } = {},
): Contract {
  return {
    columns: Object.entries(columns).map(
      ([name, type], position): ContractColumn => ({
        id: `c${position}`,
        name,
        type: parseColumnType(type),
        origin: 'declared',
        key: key.includes(name),
        newest: false,
        ignored: false,
        asText: options.asText?.includes(name) === true,
      }),
    ),
    keep: { updatedAt: null, contentHash: null, gone: null, ...options.keep },
  }
}

let attempts = 0

export function startOf(options: Partial<RunStart> = {}): RunStart {
  const attemptId = `attempt-${process.pid}-${++attempts}`
  return {
    attemptId,
    runId: attemptId,
    pipeline: 'test',
    source: 'test rows',
    slice: 'all',
    strategy: 'upsert',
    truth: 'source',
    logicalTime: null,
    code: null,
    rerunOf: null,
    holder: `test:${process.pid}`,
    stetVersion: '0.0.0',
    ...options,
  }
}

export function recordOf(
  start: RunStart,
  counts: Partial<RunCounts> = {},
  options: Partial<RunRecord> = {},
): RunRecord {
  return {
    attemptId: start.attemptId,
    status: 'succeeded',
    counts: { ...NO_COUNTS, ...counts },
    window: null,
    files: [],
    rejects: [],
    error: null,
    ...options,
  }
}

export interface OpenedSession extends AsyncDisposable {
  readonly local: LocalEngine
  readonly session: TargetSession
  readonly notices: readonly string[]
}

/** A session with an engine of its own. */
export async function openTestSession(
  target: Target,
  table: string,
  write: WriteStrategy,
  options: Partial<OpenTargetOptions> = {},
): Promise<OpenedSession> {
  const local = await openLocalEngine({ threads: 2 })
  const notices: string[] = []
  try {
    const session = await target.open({
      table,
      write,
      local,
      mode: 'run',
      lockTimeoutMs: 10_000,
      leaseTimeoutMs: 10_000,
      signal: new AbortController().signal,
      notice: (message) => notices.push(message),
      ...options,
    })
    return {
      local,
      session,
      notices,
      [Symbol.asyncDispose]: async () => {
        await session[Symbol.asyncDispose]()
        await local[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await local[Symbol.asyncDispose]()
    throw error
  }
}

/** A difference by hand: `rows` are SQL rows of `op`, the contract's columns, `content_hash`, `row_id`. */
export async function differenceOf(
  local: LocalEngine,
  contract: Contract,
  rows: readonly string[],
): Promise<Difference> {
  const table = local.newName('difference')
  const ids = contract.columns.map((column) => column.id)
  const names = ['op', ...ids, 'content_hash', 'row_id']
  const values =
    rows.length === 0
      ? `select ${names.map(() => 'null').join(', ')} where false`
      : `values ${rows.join(', ')}`
  await local.run(`create table ${table} as from (${values}) as v(${names.join(', ')})`)
  const countOf = (op: string) => local.count(`select count(*) from ${table} where op = '${op}'`)
  return {
    table,
    inserts: await countOf('insert'),
    updates: await countOf('update'),
    deletes: await countOf('delete'),
    marks: await countOf('mark'),
  }
}

export interface ByHandOptions {
  /** Default: the whole table. */
  readonly scope?: Scope
  /** What the run says of its load; nothing by default. */
  readonly load?: Pick<SliceLoad, 'slice' | 'frozen'>
  readonly extras?: CommitExtras
  readonly start?: Partial<RunStart>
  readonly record?: Partial<RunRecord>
  readonly counts?: Partial<RunCounts>
}

/** One whole run with a difference by hand; a target that does not exist is made. */
export async function writeByHand(
  target: Target,
  table: string,
  write: WriteStrategy,
  contract: Contract,
  rows: readonly string[],
  options: ByHandOptions = {},
): Promise<Awaited<ReturnType<TargetSession['apply']>>> {
  await using opened = await openTestSession(target, table, write)
  const { local, session } = opened
  const start = startOf(options.start)
  await session.acquire(start)
  await session.describe()
  try {
    await session.prepare(contract)
    await session.begin()
    const scope = await session.rowsInScope(contract, options.scope ?? { kind: 'table' })
    const difference = await differenceOf(local, contract, rows)
    const load = options.load && { ...options.load, rows: difference.table, live: scope.rows }
    const applied = await session.apply(contract, difference, load)
    await session.commit(recordOf(start, { ...applied, ...options.counts }, options.record), options.extras)
    return applied
  } catch (error) {
    await session.fail(
      recordOf(start, {}, { status: 'failed', error: { code: 'STET_TEST', message: String(error) } }),
    )
    throw error
  }
}
