import { openLocalEngine } from '../../src/local/engine.ts'
import { quoteLiteral } from '../../src/local/quote.ts'
import { localType, localTypeOf } from '../../src/local/typing.ts'
import { parseColumnType } from '../../src/model/column-type.ts'
import type { Contract, KeptColumns } from '../../src/model/columns.ts'
import type { Difference } from '../../src/model/comparison.ts'
import type { LocalConnection } from '../../src/model/local.ts'
import { NO_COUNTS, type RunRecord, type RunStart } from '../../src/model/run.ts'
import type { Slice, SliceSize } from '../../src/model/slice.ts'
import type {
  Applied,
  CommitExtras,
  RowsInScope,
  Scope,
  Target,
  TargetSession,
  TargetTable,
} from '../../src/model/target.ts'
import type { WriteStrategy } from '../../src/model/write.ts'
import { sliceOf } from '../../src/pipeline/slices.ts'

export interface Load {
  readonly table: string
  readonly write: WriteStrategy
  readonly columns: Readonly<Record<string, string>>
  readonly rows: readonly (readonly (string | null)[])[]
  readonly keep?: Partial<KeptColumns>
  /** Ids of columns to compare as text, as a landing finds out that they hold what the local engine cannot. */
  readonly asText?: readonly string[]
  readonly attemptId?: string
  readonly slice?: string | Slice
  readonly truth?: RunStart['truth']
  readonly start?: Partial<RunStart>
  /** Existing keys may not change. */
  readonly frozen?: boolean
  readonly record?: Partial<RunRecord>
  readonly extras?: Partial<CommitExtras>
  readonly scope?: 'table' | 'keys'
  readonly lockTimeoutMs?: number
  readonly leaseTimeoutMs?: number
  readonly signal?: AbortSignal
  readonly notice?: (message: string) => void
  readonly beforeBegin?: (session: TargetSession) => Promise<void>
  readonly beforeApply?: (session: TargetSession) => Promise<void>
  readonly beforeCommit?: (session: TargetSession) => Promise<void>
}

let attempts = 0

/** The slice of a name, as a pipeline cuts the table. */
export function sliceNamed(name: string, by: string, size: SliceSize, zone = 'UTC'): Slice {
  return sliceOf({ by, size, zone }, name)
}

export function startOf(load: Pick<Load, 'write' | 'attemptId' | 'slice' | 'truth' | 'start'>): RunStart {
  const attemptId = load.attemptId ?? `attempt-${process.pid}-${++attempts}`
  return {
    attemptId,
    runId: `run-of-${attemptId}`,
    pipeline: 'p',
    source: 'rows',
    slice: (typeof load.slice === 'object' ? load.slice.name : load.slice) ?? 'all',
    strategy: load.write.strategy,
    truth: load.truth ?? 'source',
    logicalTime: null,
    code: null,
    rerunOf: null,
    holder: `test:${process.pid}`,
    stetVersion: '0.0.0',
    ...load.start,
  }
}

export function recordOf(
  attemptId: string,
  applied?: Partial<Applied>,
  error: RunRecord['error'] = null,
): RunRecord {
  return {
    attemptId,
    status: error === null ? 'succeeded' : 'failed',
    counts: { ...NO_COUNTS, ...applied },
    window: null,
    files: [{ path: 'a.csv', bytes: 3, sha256: 'ab' }],
    rejects: [],
    error,
  }
}

export function contractFor(load: Load, table: TargetTable | null, asText: readonly string[] = []): Contract {
  const columns = Object.entries(load.columns).map(([name, declared], position) => {
    const found = table?.columns.find((column) => column.name === name)
    const type = found?.type ?? parseColumnType(declared)
    return {
      id: `c${position}`,
      name,
      type,
      origin: found === undefined ? ('declared' as const) : ('target' as const),
      key: (load.write.key ?? []).includes(name),
      newest: load.write.newest === name,
      ignored: (load.write.ignore ?? []).includes(name),
      asText:
        type.kind === 'other' ||
        type.kind === 'char' ||
        [...asText, ...(load.asText ?? [])].includes(`c${position}`),
    }
  })
  const marked = (role: keyof KeptColumns) =>
    table?.columns.find((column) => column.kept === role)?.name ?? null
  const keep = load.keep ?? {
    updatedAt: marked('updatedAt'),
    contentHash: marked('contentHash'),
    gone: marked('gone'),
  }
  return { columns, keep: { updatedAt: null, contentHash: null, gone: null, ...keep } }
}

/** One attempt from beginning to end, with a comparison just good enough for tests of a target. */
export async function load(target: Target, options: Load): Promise<Applied> {
  await using local = await openLocalEngine()
  const start = startOf(options)
  const controller = new AbortController()
  await using session = await target.open({
    table: options.table,
    write: options.write,
    local,
    mode: 'run',
    lockTimeoutMs: options.lockTimeoutMs ?? 10_000,
    leaseTimeoutMs: options.leaseTimeoutMs ?? 15_000,
    signal: options.signal ?? controller.signal,
    notice: options.notice ?? (() => undefined),
  })
  try {
    await session.acquire(start)
    const table = await session.describe()
    let contract = contractFor(options, table)
    await session.prepare(contract)
    await options.beforeBegin?.(session)
    await session.begin()
    let landed = await land(local, contract, session, options.rows)
    let difference: Difference
    if (table === null) difference = await insertsOf(local, landed, contract)
    else {
      let scope = await session.rowsInScope(contract, scopeOf(options, landed))
      if (scope.unheld.length > 0) {
        contract = contractFor(options, table, scope.unheld)
        landed = await land(local, contract, session, options.rows)
        scope = await session.rowsInScope(contract, scopeOf(options, landed))
      }
      difference = await differenceOf(local, landed, scope, contract, options)
    }
    await options.beforeApply?.(session)
    const slice = typeof options.slice === 'object' ? options.slice : null
    const frozen = options.frozen === true
    const applied = await session.apply(contract, difference, { slice, frozen, rows: landed, live: 0 })
    await options.beforeCommit?.(session)
    const counts = { ...NO_COUNTS, afterTransform: options.rows.length, ...applied }
    const extras = { watermark: null, quarantine: [], ...options.extras }
    await session.commit({ ...recordOf(start.attemptId), counts, ...options.record }, extras)
    return applied
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    await session.fail(recordOf(start.attemptId, undefined, { code: 'TEST', message }))
    throw error
  }
}

function scopeOf(options: Load, landed: string): Scope {
  if (typeof options.slice === 'object') return { kind: 'slice', slice: options.slice }
  if (options.scope === 'keys') return { kind: 'keys', keys: landed, count: options.rows.length }
  return { kind: 'table' }
}

export async function land(
  local: LocalConnection,
  contract: Contract,
  session: TargetSession,
  rows: readonly (readonly (string | null)[])[],
): Promise<string> {
  const table = local.newName('landed')
  const ids = contract.columns.map(({ id }) => id)
  await local.run(
    `create table ${table} (${contract.columns.map((column) => `${column.id} ${localTypeOf(column)}`).join(', ')})`,
  )
  for (const row of rows) {
    const values = contract.columns.map((column, position) => {
      const text = row[position] ?? null
      return text === null ? 'null' : `${quoteLiteral(text)}::${localTypeOf(column)}`
    })
    await local.run(`insert into ${table} (${ids.join(', ')}) values (${values.join(', ')})`)
  }
  for (const column of contract.columns.filter(
    ({ asText, type }) => asText || localType(type) === 'VARCHAR',
  )) {
    if (!column.asText) continue
    const texts = local.newName('texts')
    await local.run(
      `create table ${texts} as select distinct ${column.id} as text from ${table} where ${column.id} is not null`,
    )
    const forms = await session.canonical(column, texts)
    await local.run(
      `update ${table} as l set ${column.id} = f.canonical from ${forms} as f where f.text = l.${column.id}`,
    )
  }
  return table
}

async function insertsOf(local: LocalConnection, landed: string, contract: Contract): Promise<Difference> {
  const table = local.newName('difference')
  await local.run(
    `create table ${table} as select 'insert' as op, ${contract.columns.map(({ id }) => id).join(', ')}, 'h' as content_hash, null::varchar as row_id from ${landed}`,
  )
  return {
    table,
    inserts: await local.count(`select count(*) from ${table}`),
    updates: 0,
    deletes: 0,
    marks: 0,
  }
}

async function differenceOf(
  local: LocalConnection,
  landed: string,
  { table: pulled }: RowsInScope,
  contract: Contract,
  { write, frozen }: Load,
): Promise<Difference> {
  const table = local.newName('difference')
  const ids = contract.columns.map(({ id }) => id)
  const key = contract.columns.filter((column) => column.key).map(({ id }) => id)
  const listOf = (alias: string) => ids.map((id) => `${alias}.${id}`).join(', ')
  const on = (of: readonly string[]) => of.map((id) => `l.${id} is not distinct from t.${id}`).join(' and ')
  const compared = contract.columns.filter((column) => !column.ignored).map(({ id }) => id)
  const isKeyed = key.length > 0
  const match = on(isKeyed ? key : ids)
  const isGone = contract.keep.gone === null ? 'false' : 't.is_gone'
  await local.run(`
    create table ${table} as
    select case when t.hit is null then 'insert' else 'update' end as op, ${listOf('l')}, 'h' as content_hash, null::varchar as row_id
      from ${landed} as l
      left join (select *, true as hit from ${pulled}) as t on ${match}
     where t.hit is null or ${isGone} or not (${on(compared)})`)
  const insertsOnly = write.strategy === 'insert-once' || frozen === true
  if (insertsOnly) await local.run(`delete from ${table} where op = 'update'`)
  const missing = insertsOnly ? 'keep' : missingOf(write)
  if (missing !== 'keep') {
    await local.run(`
      insert into ${table}
      select '${missing}', ${listOf('t')}, null, ${isKeyed ? 'null' : 't.row_id'}
        from ${pulled} as t
       where not exists (select 1 from ${landed} as l where ${match})
         ${missing === 'mark' ? `and not ${isGone}` : ''}`)
  }
  const countOf = (op: string) => local.count(`select count(*) from ${table} where op = '${op}'`)
  return {
    table,
    inserts: await countOf('insert'),
    updates: await countOf('update'),
    deletes: await countOf('delete'),
    marks: await countOf('mark'),
  }
}

function missingOf(write: WriteStrategy): 'keep' | 'delete' | 'mark' {
  if (write.strategy === 'replace-table') return 'delete'
  if (write.strategy === 'replace-partition') return write.missing ?? 'delete'
  return write.strategy === 'upsert' ? (write.missing ?? 'keep') : 'keep'
}
