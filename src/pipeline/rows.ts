import { StetError } from '../errors.ts'
import { type Landed, type LandingRules, land } from '../local/land.ts'
import { keepNewest } from '../local/newest.ts'
import { parseColumnType } from '../model/column-type.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Seen } from '../model/remote.ts'
import type { RunRecord } from '../model/run.ts'
import type { CursorWindow, Slice } from '../model/slice.ts'
import type { OpenSource, Reject, SourcePart } from '../model/source.ts'
import type { TargetSession, TargetTable } from '../model/target.ts'
import { countOf } from '../model/words.ts'
import { contractOf, type TypedName, typesOfSource } from './contract.ts'
import { keepWindow } from './keep-window.ts'
import { placesOf } from './places.ts'
import { refuseOtherSlices } from './slice-rows.ts'
import { tableColumn } from './table-column.ts'
import { bringIntoTargetForm, withTextColumns } from './target-form.ts'
import { applyTransform } from './transform.ts'
import type { DefinedPipeline } from './types.ts'
import { type CursorPlan, nextWatermark, type ResolvedWindow, resolveWindow } from './window.ts'

/** The load, ready to be compared: one row for each key, in the contract's types. */
export interface ReadyRows {
  readonly contract: Contract
  readonly table: string
  readonly read: number
  readonly outside: number
  readonly filtered: number
  readonly added: number
  readonly afterTransform: number
  readonly rejected: number
  readonly duplicate: number
  readonly rejects: readonly Reject[]
  /** What was read by the cursor; null without one. */
  readonly cursor: ReadByCursor | null
}

/** What a run has read by its cursor, and how far the watermark may go. */
interface ReadByCursor extends Seen {
  readonly window: RunRecord['window']
  /** Null where it stays. */
  readonly watermark: string | null
}

export interface RowsContext {
  readonly pipeline: DefinedPipeline
  readonly local: LocalConnection
  readonly session: TargetSession
  readonly source: OpenSource
  readonly table: TargetTable | null
  readonly signal: AbortSignal
  readonly notice: (message: string) => void
  /** Called once, when the contract is settled and before anything is landed by it. */
  readonly prepare: (contract: Contract) => Promise<void>
  readonly cursor: CursorPlan | null
  /** The slice that the load replaces: rows of another refuse the run. */
  readonly slice: Slice | null
}

/** Lands, takes the window of the cursor, transforms, checks, and keeps the newest row of each key. */
export async function readyRows(context: RowsContext): Promise<ReadyRows> {
  const { pipeline, local, source, table, notice } = context
  const sourceTypes = await typesOfSource(pipeline, source, table, local, notice)
  const contract = (types: readonly TypedName[]) =>
    contractOf(types, pipeline.write, pipeline.keep, table, notice)
  if (pipeline.transform === undefined) {
    const settled = withCursor(contract(sourceTypes), context.cursor)
    await context.prepare(settled)
    const landed = await landAll(context, settled, source.parts)
    await source.verify()
    refuseEmptyInference(context, settled, landed.read)
    const cursor = await takeLocalWindow(context, landed)
    const outside = cursor?.outside ?? 0
    return finish(context, landed, cursor, {
      read: landed.read,
      outside,
      filtered: 0,
      added: 0,
      afterTransform: landed.read - outside,
    })
  }
  const plain = withCursor(plainContract(sourceTypes), context.cursor)
  const raw = await landUntilHeld(context, plain, source.parts, { keysMatter: false })
  await source.verify()
  const cursor = await takeLocalWindow(context, raw)
  const transformed = await applyTransform(local, pipeline.transform, raw.table, raw.contract, context)
  const settled = contract(typesAfter(pipeline, sourceTypes, transformed.names, table))
  await context.prepare(settled)
  const landed = await landAll(context, settled, [transformed.part])
  return finish(
    context,
    { ...landed, rejected: landed.rejected + raw.rejected, rejects: [...raw.rejects, ...landed.rejects] },
    cursor,
    {
      read: raw.read,
      outside: cursor?.outside ?? 0,
      filtered: transformed.filtered,
      added: transformed.added,
      afterTransform: transformed.rows + raw.rejected,
    },
  )
}

/** Without a cursor value a row can neither be found again nor move the watermark; the pipeline says what becomes of it. */
export function withCursor(contract: Contract, plan: CursorPlan | null): Contract {
  if (plan === null || plan.incremental.nulls === 'include') return contract
  const columns = contract.columns.map((column) =>
    column.name === plan.incremental.cursor ? { ...column, required: 'cursor' as const } : column,
  )
  return { ...contract, columns }
}

function takeLocalWindow(context: RowsContext, landed: LandedByContract): Promise<ReadByCursor | null> {
  return takeWindow(context, context.cursor, landed.contract, (column, window, slice) =>
    keepWindow(context.local, landed.table, column, window, slice),
  )
}

/**
 * Takes the window of the cursor out of the landed rows, and says how far the watermark may go.
 *
 * @param keep Leaves only what is in the window, where the rows lie.
 */
export async function takeWindow(
  { local, notice }: Pick<RowsContext, 'local' | 'notice'>,
  plan: CursorPlan | null,
  contract: Contract,
  keep: (column: ContractColumn, window: CursorWindow, slice: Slice | null) => Promise<Seen>,
): Promise<ReadByCursor | null> {
  if (plan === null) return null
  const column = contract.columns.find(({ name }) => name === plan.incremental.cursor)
  if (column === undefined) {
    throw new StetError('STET_COLUMNS', `The source has no column "${plan.incremental.cursor}" to read by`)
  }
  const resolved = await resolveWindow(local, plan, column)
  const seen = await keep(column, resolved.window, plan.slice)
  sayOfWindow(notice, column, resolved, seen)
  const watermark = await nextWatermark(local, plan, column, seen, resolved.window.from)
  return { ...seen, window: resolved.recorded, watermark }
}

/** What of a window people should hear. */
function sayOfWindow(
  notice: (message: string) => void,
  column: ContractColumn,
  resolved: ResolvedWindow,
  seen: Seen,
): void {
  if (seen.later > 0) {
    notice(
      `${countOf(seen.later, 'row has', 'rows have')} a value of ${column.name} after ${resolved.window.to}, the end of what this run reads; a later run will take ${seen.later === 1 ? 'it' : 'them'} (G4)`,
    )
  }
  if (seen.withoutCursor > 0) {
    notice(
      `${countOf(seen.withoutCursor, 'row')} without a value of ${column.name} ${seen.withoutCursor === 1 ? 'was' : 'were'} read as well; every run reads them again`,
    )
  }
}

type LandedByContract = Landed & { readonly contract: Contract }

async function landAll(
  context: RowsContext,
  contract: Contract,
  parts: readonly SourcePart[],
): Promise<LandedByContract> {
  const landed = await landUntilHeld(context, contract, parts, { keysMatter: true })
  const refused = await bringIntoTargetForm(
    context.local,
    context.session,
    landed.table,
    landed.contract,
    parts,
    rulesOf(context.pipeline, { keysMatter: true }),
  )
  return {
    ...landed,
    rejected: landed.rejected + refused.rejected,
    rejects: [...landed.rejects, ...refused.rejects],
  }
}

/** How many rejects a quarantine may have to take whole; more of them refuse the run. */
export function keepRejectsOf({ onReject, maxRejects = 0 }: DefinedPipeline): number | undefined {
  return onReject === 'quarantine' ? maxRejects : undefined
}

function rulesOf(pipeline: DefinedPipeline, { keysMatter }: { readonly keysMatter: boolean }): LandingRules {
  return {
    nullKeys: keysMatter ? (pipeline.write.nullKeys ?? 'reject') : 'match',
    normalizeKey: keysMatter ? pipeline.write.normalizeKey : undefined,
    keepRejects: keepRejectsOf(pipeline),
  }
}

/** Lands again, with a column as text, when it holds a value that the local type cannot (a date before year 1). */
async function landUntilHeld(
  { local, pipeline }: RowsContext,
  contract: Contract,
  parts: readonly SourcePart[],
  { keysMatter }: { readonly keysMatter: boolean },
): Promise<LandedByContract> {
  const rules = rulesOf(pipeline, { keysMatter })
  for (let current = contract; ; ) {
    const landed = await land(local, parts, current, rules)
    if (landed.unheld.length === 0) return { ...landed, contract: current }
    await local.run(`drop table ${landed.table}`)
    current = withTextColumns(current, landed.unheld)
  }
}

async function finish(
  { local, pipeline: { write, transform }, slice, source }: RowsContext,
  landed: LandedByContract,
  cursor: ReadByCursor | null,
  counts: Pick<ReadyRows, 'read' | 'outside' | 'filtered' | 'added' | 'afterTransform'>,
): Promise<ReadyRows> {
  if (slice !== null && write.strategy === 'replace-partition') {
    await refuseOtherSlices(local, landed.table, landed.contract, slice, write.size)
  }
  // What a transform made stands in no file.
  const parts = transform === undefined ? source.parts : []
  const duplicate = await keepNewest(local, landed.table, landed.contract, (rows) =>
    placesOf(local, parts, landed.contract, rows, write.normalizeKey),
  )
  const { contract, table, rejected, rejects } = landed
  return { contract, table, ...counts, rejected, duplicate, rejects, cursor }
}

/** From no rows nothing can be told: all columns would be text, for good. */
function refuseEmptyInference({ table, source }: RowsContext, contract: Contract, read: number): void {
  if (table !== null || read > 0) return
  const guessed = contract.columns
    .filter((column) => column.origin === 'inferred')
    .map((column) => column.name)
  if (guessed.length === 0) return
  const columns = contract.columns.map((column) => `${column.name}:TYPE`).join(',')
  throw new StetError(
    'STET_SOURCE',
    `A first load cannot tell the types of ${guessed.join(', ')}: ${source.files[0]?.path ?? 'the source'} holds no rows`,
    {
      hint: `Declare them (--columns '${columns}', columns in the pipeline), or wait for the first rows`,
    },
  )
}

/** Source columns before a transform: no roles yet, since a transform may make the key. */
function plainContract(types: readonly TypedName[]): Contract {
  return {
    columns: types.map(({ name, type, origin }, position) => ({
      id: `c${position}`,
      name,
      type,
      origin,
      key: false,
      newest: false,
      ignored: false,
      asText: false,
    })),
    keep: { updatedAt: null, contentHash: null, gone: null },
  }
}

function typesAfter(
  pipeline: DefinedPipeline,
  sourceTypes: readonly TypedName[],
  names: readonly string[],
  table: TargetTable | null,
): readonly TypedName[] {
  return names.map((name): TypedName => {
    const ofTarget = tableColumn(table, name)
    if (ofTarget !== undefined) return { name, type: ofTarget.type, origin: 'target' }
    const declared = pipeline.transform?.adds?.[name]
    if (declared !== undefined) return { name, type: parseColumnType(declared), origin: 'declared' }
    const before = sourceTypes.find((candidate) => candidate.name === name)
    if (before !== undefined) return before
    throw new StetError('STET_CONFIG', `The transform makes a column "${name}" whose type nobody declared`, {
      hint: `Declare it: transform: { …, adds: { ${name}: 'text' } }`,
    })
  })
}
