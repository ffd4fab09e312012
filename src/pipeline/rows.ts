import { land, type Landed } from '../local/land.ts'
import { keepNewest } from '../local/newest.ts'
import { parseColumnType } from '../model/column-type.ts'
import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { Reject, SourcePart } from '../model/source.ts'
import type { OpenSource } from '../model/source.ts'
import type { TargetSession, TargetTable } from '../model/target.ts'
import { StetError } from '../errors.ts'
import { contractOf, type TypedName, typesOfSource } from './contract.ts'
import { bringIntoTargetForm, withTextColumns } from './target-form.ts'
import { applyTransform } from './transform.ts'
import type { DefinedPipeline } from './types.ts'

/** The load, ready to be compared: one row for each key, in the contract's types. */
export interface ReadyRows {
  readonly contract: Contract
  readonly table: string
  readonly read: number
  readonly filtered: number
  readonly added: number
  readonly afterTransform: number
  readonly rejected: number
  readonly duplicate: number
  readonly rejects: readonly Reject[]
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
}

/** Lands, transforms, checks, and keeps the newest row of each key. */
export async function readyRows(context: RowsContext): Promise<ReadyRows> {
  const { pipeline, local, source, table, notice } = context
  const sourceTypes = await typesOfSource(pipeline, source, table, local, notice)
  const contract = (types: readonly TypedName[]) => contractOf(types, pipeline, table, notice)
  if (pipeline.transform === undefined) {
    const settled = contract(sourceTypes)
    await context.prepare(settled)
    const landed = await landAll(context, settled, source.parts)
    await source.verify()
    refuseEmptyInference(context, settled, landed.read)
    return finish(context, landed, {
      read: landed.read,
      filtered: 0,
      added: 0,
      afterTransform: landed.read,
    })
  }
  const raw = await landUntilHeld(context, plainContract(sourceTypes), source.parts, { keysMatter: false })
  await source.verify()
  const transformed = await applyTransform(local, pipeline.transform, raw.table, raw.contract, context.signal)
  const settled = contract(typesAfter(pipeline, sourceTypes, transformed.names, table))
  await context.prepare(settled)
  const landed = await landAll(context, settled, [transformed.part])
  return finish(
    context,
    { ...landed, rejected: landed.rejected + raw.rejected, rejects: [...raw.rejects, ...landed.rejects] },
    {
      read: raw.read,
      filtered: transformed.filtered,
      added: transformed.added,
      afterTransform: transformed.rows + raw.rejected,
    },
  )
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
  )
  return {
    ...landed,
    rejected: landed.rejected + refused.rejected,
    rejects: [...landed.rejects, ...refused.rejects],
  }
}

/** Lands again, with a column as text, when it holds a value that the local type cannot (a date before year 1). */
async function landUntilHeld(
  { local, pipeline }: RowsContext,
  contract: Contract,
  parts: readonly SourcePart[],
  { keysMatter }: { readonly keysMatter: boolean },
): Promise<LandedByContract> {
  const rules = {
    nullKeys: keysMatter ? (pipeline.write.nullKeys ?? 'reject') : 'match',
    normalizeKey: keysMatter ? pipeline.write.normalizeKey : undefined,
  } as const
  for (let current = contract; ; ) {
    const landed = await land(local, parts, current, rules)
    if (landed.unheld.length === 0) return { ...landed, contract: current }
    await local.run(`drop table ${landed.table}`)
    current = withTextColumns(current, landed.unheld)
  }
}

async function finish(
  { local }: RowsContext,
  landed: LandedByContract,
  counts: Pick<ReadyRows, 'read' | 'filtered' | 'added' | 'afterTransform'>,
): Promise<ReadyRows> {
  const duplicate = await keepNewest(local, landed.table, landed.contract)
  const { contract, table, rejected, rejects } = landed
  return { contract, table, ...counts, rejected, duplicate, rejects }
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
    keep: { updatedAt: null, contentHash: null },
  }
}

function typesAfter(
  pipeline: DefinedPipeline,
  sourceTypes: readonly TypedName[],
  names: readonly string[],
  table: TargetTable | null,
): readonly TypedName[] {
  return names.map((name): TypedName => {
    const ofTarget = table?.columns.find((column) => column.name === name)
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
