import { StetError } from '../../errors.ts'
import type { Difference } from '../../model/comparison.ts'
import type { Slice } from '../../model/slice.ts'
import type { Applied, SliceLoad } from '../../model/target.ts'
import { countOf, groupDigits } from '../../model/words.ts'
import type { ReplacePartition } from '../../model/write.ts'
import { type ApplyOptions, applyToTable, NOTHING } from './apply.ts'
import type { CatalogTable } from './catalog.ts'
import { hasRowsInDefault, type MissingPartition, makePartition } from './missing-partition.ts'
import { type PartitionsOfSlice, partitionsOfSlice } from './partitions.ts'
import type { Patience } from './short-locks.ts'
import type { WriteContext } from './sql.ts'
import { prepareSwap, type Swap, swapPartition } from './swap.ts'
import { obstaclesOf } from './swap-checks.ts'

/** How a slice can be applied. */
export type SliceWay =
  | { readonly how: 'swap'; readonly swap: Swap }
  | { readonly how: 'diff'; readonly found: PartitionsOfSlice; readonly why: string | null }

/** A write into one slice. */
export interface SliceWrite {
  readonly context: WriteContext & { readonly write: ReplacePartition; readonly slice: Slice }
  readonly attemptId: string
  readonly patience: Patience
}

/** Whether the pipeline lets a partition be exchanged. */
export function mayExchange({ context: { write } }: SliceWrite): boolean {
  return write.apply === 'swap' || write.apply === 'auto'
}

/**
 * Finds out how the slice lies to the table's partitions, and whether it can be exchanged as a whole.
 *
 * @throws {StetError} `STET_CONFIG` with the reason, where the pipeline demands a swap and none is possible.
 */
export async function waysOfSlice(
  connection: ApplyOptions['connection'],
  { context, attemptId }: Omit<SliceWrite, 'patience'>,
): Promise<SliceWay> {
  const { table, slice, write } = context
  const found = await partitionsOfSlice(connection, table, slice, write)
  const { place, rest } = found
  if (write.apply === undefined || write.apply === 'diff') return { how: 'diff', found, why: null }
  if (place.kind === 'exact') {
    const obstacles = await obstaclesOf(connection, table, place.partition, rest)
    const why = obstacles[0]?.why
    if (why === undefined) {
      return { how: 'swap', swap: await prepareSwap(connection, context, place.partition, attemptId) }
    }
    if (write.apply === 'auto') return { how: 'diff', found, why }
    throw cannotSwap(table, slice, why, obstacles.length)
  }
  // There is nothing to exchange: into a new partition the rows go at once.
  if (place.kind === 'missing') {
    if (place.otherGrain === null || write.apply === 'auto') return { how: 'diff', found, why: null }
    throw cannotSwap(table, slice, `its neighbour ${place.otherGrain.qualified} is of another size`, 1)
  }
  if (write.apply === 'auto') return { how: 'diff', found, why: place.why }
  throw cannotSwap(table, slice, place.why, 1)
}

/** @throws {StetError} `STET_CONFIG`, before anything is landed, where a swap is demanded of a table that has no partitions. */
export function requirePartitioned(name: string, table: CatalogTable | null, write: ReplacePartition): void {
  if (write.apply !== 'swap' || table?.kind === 'p') return
  throw new StetError(
    'STET_CONFIG',
    table === null
      ? `Cannot swap slices of ${name}: there is no such table, and one that Stet makes has no partitions`
      : `Cannot swap slices of ${name}: it is not partitioned`,
    {
      hint: `Make it: create table ${name} (…) partition by ${write.size === 'value' ? 'list' : 'range'} (${write.by}), or use apply: 'diff'`,
    },
  )
}

function cannotSwap({ identity }: CatalogTable, slice: Slice, why: string, reasons: number): StetError {
  return new StetError(
    'STET_CONFIG',
    `Cannot swap slice ${slice.name} of ${identity.qualified}: ${why}${reasons > 1 ? ` (and ${countOf(reasons - 1, 'more reason')})` : ''}`,
    { hint: "Use apply: 'diff', which only writes the rows that differ" },
  )
}

/** From so large a part of the slice on, building anew costs less than writing row by row. */
const SWAP_SHARE = 1 / 3

/** Writes the difference into the slice: in place, or by exchanging its partition. */
export async function applyToSlice(
  options: ApplyOptions,
  write: SliceWrite,
  load: Pick<SliceLoad, 'frozen' | 'live'>,
): Promise<Applied> {
  const { difference, notice, connection } = options
  const changes = difference.inserts + difference.updates + difference.deletes + difference.marks
  if (changes === 0) return NOTHING
  const way = await waysOfSlice(connection, write)
  const { context, patience } = write
  const { slice } = context
  if (context.write.apply === 'auto') {
    const rows = load.live + difference.inserts
    const large = changes >= rows * SWAP_SHARE
    const said = `${groupDigits(changes)} of ${countOf(rows, 'row')} of slice ${slice.name} change`
    if (way.how === 'swap' && large) {
      notice(`${said}: its partition is exchanged (apply auto)`)
      return swapPartition(options, way.swap, patience, load.frozen)
    }
    const because = large && way.how === 'diff' && way.why !== null ? `, because ${way.why}` : ''
    notice(`${said}: the rows are written in place (apply auto)${because}`)
  } else if (way.how === 'swap') return swapPartition(options, way.swap, patience, load.frozen)
  if (way.how === 'swap') return applyToTable(options, context, load.frozen)
  return applyInPlace(options, write, way.found, load.frozen)
}

/** Writes the rows that differ, and makes the partition where there is none that holds the slice. */
async function applyInPlace(
  options: ApplyOptions,
  { context, patience }: SliceWrite,
  { place, rest }: PartitionsOfSlice,
  frozen: boolean,
): Promise<Applied> {
  const { connection, notice, difference } = options
  const { table, slice } = context
  const apply = () => applyToTable(options, context, frozen)
  if (place.kind !== 'missing' || !hasRowsToPut(difference)) return apply()
  const name = table.identity.qualified
  if (place.otherGrain !== null) {
    if (rest !== null) return apply()
    throw new StetError(
      'STET_CONFIG',
      `${name} has no partition for slice ${slice.name}, and partition ${place.otherGrain.qualified} beside it is of another size`,
      { hint: 'Create the partition that the slice is a part of' },
    )
  }
  const missing: MissingPartition = { table, slice, bound: place.bound, rest }
  const make = async () => {
    const made = await makePartition(connection, missing, patience)
    const moved = made.moved === 0 ? '' : `, with ${countOf(made.moved, 'row')} from ${rest?.qualified}`
    notice(`Partition "${made.name}" of ${name} was made for slice ${slice.name}${moved}`)
  }
  if (rest === null) {
    await make()
    return apply()
  }
  const against = (await obstaclesOf(connection, table, rest, rest)).find(
    (obstacle) => obstacle.against === 'moving',
  )
  if (against !== undefined) {
    notice(`Slice ${slice.name} stays in default partition ${rest.qualified}: ${against.why}`)
    return apply()
  }
  if (!(await hasRowsInDefault(connection, missing))) {
    await make()
    return apply()
  }
  // The difference may name rows by their places, so they are moved when it is done.
  const applied = await apply()
  await make()
  return applied
}

function hasRowsToPut({ inserts, updates }: Difference): boolean {
  return inserts + updates > 0
}
