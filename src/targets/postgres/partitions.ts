import { quoteLiteral } from '../../local/quote.ts'
import { endsFor } from '../../local/slice.ts'
import type { Slice } from '../../model/slice.ts'
import type { ReplacePartition } from '../../model/write.ts'
import type { CatalogColumn, CatalogTable } from './catalog.ts'
import type { Connection } from './connection.ts'

/** One partition, as the catalogue has it. */
export interface Partition {
  readonly oid: string
  readonly schema: string
  readonly name: string
  /** Quoted where needed, as the server prints it. */
  readonly qualified: string
  /** `FOR VALUES FROM (…) TO (…)`, `FOR VALUES IN (…)`, `DEFAULT`. */
  readonly bound: string
  readonly pages: number
}

/** How a slice lies to the partitions of its table. */
type SlicePlace =
  /** The table is not partitioned by the slice's column alone, or not so that a slice could be a partition. */
  | { readonly kind: 'unfit'; readonly why: string }
  /** The slice is exactly one partition. */
  | { readonly kind: 'exact'; readonly partition: Partition }
  /** Partitions and slices overlap in some other way. */
  | { readonly kind: 'other'; readonly why: string }
  /** No partition holds any row that could belong to the slice. */
  | {
      readonly kind: 'missing'
      /** `for values …` of the partition that the slice would be. */
      readonly bound: string
      /** A partition of another length, where the neighbour is one: then the slice is not to become a partition. */
      readonly otherGrain: Partition | null
    }

export interface PartitionsOfSlice {
  readonly place: SlicePlace
  /** The default partition. */
  readonly rest: Partition | null
}

/** Finds out which partition, if any, a slice is. */
export async function partitionsOfSlice(
  connection: Connection,
  table: CatalogTable,
  slice: Slice,
  write: ReplacePartition,
): Promise<PartitionsOfSlice> {
  const name = table.identity.qualified
  const unfit = (why: string): PartitionsOfSlice => ({ place: { kind: 'unfit', why }, rest: null })
  if (table.kind !== 'p') return unfit(`${name} is not partitioned`)
  const column = table.columns.find((found) => found.name === slice.by)
  if (column === undefined || table.partitionColumns?.join() !== slice.by) {
    return unfit(`${name} is not partitioned by "${slice.by}" alone`)
  }
  const [found] = await connection.query(
    'select partstrat as strategy from pg_partitioned_table where partrelid = $1',
    [table.oid],
  )
  const wanted = slice.bounds.kind === 'value' ? 'l' : 'r'
  if (found?.strategy !== wanted) {
    return unfit(
      `${name} is not partitioned by ${wanted === 'l' ? 'list' : 'range'}, as slices of this size are`,
    )
  }
  const all = await readPartitions(connection, table.oid)
  const rest = all.find(({ bound }) => bound === 'DEFAULT') ?? null
  const others = all.filter((partition) => partition !== rest)
  return slice.bounds.kind === 'value'
    ? { place: await placeOfValue(connection, column, others, slice.bounds.value), rest }
    : { place: await placeOfRange(connection, column, others, slice, write), rest }
}

async function readPartitions(connection: Connection, parent: string): Promise<readonly Partition[]> {
  const rows = await connection.query(
    `select c.oid, n.nspname as schema, c.relname as name,
            quote_ident(n.nspname) || '.' || quote_ident(c.relname) as qualified,
            pg_get_expr(c.relpartbound, c.oid) as bound,
            coalesce(pg_relation_size(c.oid), 0) / 8192 as pages
       from pg_inherits as i
       join pg_class as c on c.oid = i.inhrelid
       join pg_namespace as n on n.oid = c.relnamespace
      where i.inhparent = $1
      order by c.oid`,
    [parent],
  )
  return rows.map((row) => ({
    oid: row.oid ?? '',
    schema: row.schema ?? '',
    name: row.name ?? '',
    qualified: row.qualified ?? '',
    bound: row.bound ?? '',
    pages: Number(row.pages),
  }))
}

async function placeOfValue(
  connection: Connection,
  { base, coarseCollation, type, typeCategory }: CatalogColumn,
  partitions: readonly Partition[],
  value: string,
): Promise<SlicePlace> {
  if (coarseCollation !== null || (type.kind === 'other' && typeCategory !== 'e')) {
    return { kind: 'unfit', why: 'its partitions take different texts for equal, and slices do not' }
  }
  const literal = `${quoteLiteral(value)}::${base}`
  for (const partition of partitions) {
    // The list is what the server prints: literals of the column's type.
    const list = `array[${partition.bound.slice('FOR VALUES IN ('.length, -1)}]::${base}[]`
    const [row] = await connection.query(
      `select ${literal} = any (array_remove(${list}, null)) as holds, cardinality(${list}) = 1 as alone`,
    )
    if (row?.holds !== 't') continue
    if (row.alone === 't') return { kind: 'exact', partition }
    return { kind: 'other', why: `partition ${partition.qualified} holds other values as well` }
  }
  return { kind: 'missing', bound: `for values in (${quoteLiteral(value)})`, otherGrain: null }
}

/** Lengths in seconds that a slice of a size can have: months differ, and clocks are changed. */
const SECONDS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  hour: [3_600, 3_600],
  day: [23 * 3_600, 25 * 3_600],
  month: [28 * 86_400 - 3_600, 31 * 86_400 + 3_600],
}

const BITS: Readonly<Record<string, number>> = { smallint: 16, integer: 32, bigint: 64 }

/** An end of a partition: where the slice reaches beyond what the column can hold, the partition is open. */
function boundOf({ type }: CatalogColumn, text: string, open: 'MINVALUE' | 'MAXVALUE'): string {
  const bits = BITS[type.kind]
  const isHeld = bits === undefined || BigInt.asIntN(bits, BigInt(text)) === BigInt(text)
  return isHeld ? quoteLiteral(text) : open
}

async function placeOfRange(
  connection: Connection,
  column: CatalogColumn,
  partitions: readonly Partition[],
  { bounds }: Slice,
  { size }: ReplacePartition,
): Promise<SlicePlace> {
  if (bounds.kind === 'value') return { kind: 'unfit', why: 'a value is no range' }
  const { from, to } = endsFor(column.type, bounds)
  // As numbers, in which instants, dates and whole numbers compare alike; seconds have all of their microseconds.
  const asNumber = (literal: string) =>
    bounds.kind === 'range'
      ? `(${literal})::numeric`
      : `extract(epoch from (${literal})::${column.base}::timestamptz)`
  const end = (literal: string, open: string) =>
    /^(MINVALUE|MAXVALUE)$/.test(literal) ? `'${open}'::numeric` : asNumber(literal)
  const first = boundOf(column, from, 'MINVALUE')
  const next = boundOf(column, to, 'MAXVALUE')
  const missing: SlicePlace = {
    kind: 'missing',
    bound: `for values from (${first}) to (${next})`,
    otherGrain: null,
  }
  if (partitions.length === 0) return missing
  const values = partitions.map(({ bound }, position) => {
    const ends = /^FOR VALUES FROM \((.+)\) TO \((.+)\)$/.exec(bound)
    return `(${position}, ${end(ends?.[1] ?? 'MINVALUE', '-infinity')}, ${end(ends?.[2] ?? 'MAXVALUE', 'infinity')})`
  })
  const rows = await connection.query(
    `select p.position, p.first = s.first and p.next = s.next as exact,
            p.first < s.next and p.next > s.first as overlaps,
            p.next - p.first as length
       from (values ${values.join(', ')}) as p (position, first, next)
      cross join (select ${end(first, '-infinity')} as first, ${end(next, 'infinity')} as next) as s
      order by p.first >= s.next, case when p.first >= s.next then p.first - s.next else s.first - p.next end`,
  )
  const partitionOf = (row: (typeof rows)[number] | undefined) => partitions[Number(row?.position)]
  const exact = partitionOf(rows.find((row) => row.exact === 't'))
  if (exact !== undefined) return { kind: 'exact', partition: exact }
  const overlapping = partitionOf(rows.find((row) => row.overlaps === 't'))
  if (overlapping !== undefined) {
    return { kind: 'other', why: `partition ${overlapping.qualified} is ${overlapping.bound.toLowerCase()}` }
  }
  // The nearest one before the slice, else the nearest after it, says how long a partition of this table is now.
  const length = Number(rows[0]?.length)
  const [least, most] = typeof size === 'object' ? [size.range, size.range] : (SECONDS[size] ?? [0, 0])
  const isOther = !(length >= least && length <= most)
  return { ...missing, otherGrain: isOther ? (partitionOf(rows[0]) ?? null) : null }
}
