import type { Row, Session } from '../sandbox/cluster.ts'
import { countingColumns } from './fingerprint.ts'
import { hashOf, hashOfRow, ident, textOf } from './hashing.ts'
import type { Ignore } from './ignore.ts'
import type { ColumnShape, TableShape } from './tables.ts'

/** One row's values as text, by column, and how often each side has it. */
export interface RowExample {
  readonly values: Row
  readonly clean: number
  readonly here: number
}

/** A row that has the same key on both sides, and another content. */
export interface ChangedExample {
  readonly key: Row
  readonly changes: readonly {
    readonly column: string
    readonly clean: string | null
    readonly here: string | null
  }[]
}

export interface TableDiff {
  /** Copies too many of rows that a clean run leaves. */
  readonly doubled: number
  /** Rows of a clean run that are not here. */
  readonly lost: number
  /** Rows of both with other values. */
  readonly changed: number
  /** Rows that no clean run leaves. */
  readonly extra: number
  readonly examples: readonly RowExample[]
  readonly changes: readonly ChangedExample[]
}

interface Tally {
  clean: number
  here: number
}

const BUCKETS = 1024
/** Buckets looked at in one go: 128 of a table of a million rows hold 125,000 hashes. */
const BUCKETS_AT_ONCE = 128
/** Read to choose the first in a reader's order from, and kept. */
const CANDIDATES = 200
const EXAMPLES = 20

/**
 * Finds the rows in which two states of one table differ, whatever its size: hashes of rows by bucket first, then the
 * hashes in the buckets that differ, then the values of a few rows.
 */
export async function diffTable(
  clean: Session,
  here: Session,
  table: TableShape,
  ignore: Ignore,
): Promise<TableDiff> {
  const columns = countingColumns(table, ignore).filter((column) => !column.isGenerated)
  const key = columns.filter((column) => column.isKey)
  const isKeyed = key.length > 0 && key.length === table.columns.filter((column) => column.isKey).length
  const rowHash = hashOfRow(columns.map(hashOf))
  const keyHash = isKeyed ? hashOfRow(key.map(hashOf)) : rowHash
  const hashed = `(select ${keyHash} as key, ${rowHash} as row from only ${table.reference}) as hashed`

  const total = { doubled: 0, lost: 0, changed: 0, extra: 0 }
  const exampleHashes = new Map<string, Tally>()
  const changedKeys: string[] = []

  const buckets = await differingBuckets(clean, here, hashed)
  for (let at = 0; at < buckets.length; at += BUCKETS_AT_ONCE) {
    const some = buckets.slice(at, at + BUCKETS_AT_ONCE)
    const byKey = await tallies(clean, here, hashed, some)
    for (const [keyValue, rows] of byKey) {
      const counted = classify(rows, isKeyed)
      total.doubled += counted.doubled
      total.lost += counted.lost
      total.changed += counted.changed
      total.extra += counted.extra
      if (counted.changed > 0 && isKeyed) {
        if (changedKeys.length < CANDIDATES) changedKeys.push(keyValue)
      } else if (exampleHashes.size < CANDIDATES) {
        for (const [row, tally] of rows) if (tally.clean !== tally.here) exampleHashes.set(row, tally)
      }
    }
  }
  if (!isKeyed) {
    // Without a key a changed row looks like one lost and one that nobody knows.
    const pairs = Math.min(total.lost, total.extra)
    total.changed += pairs
    total.lost -= pairs
    total.extra -= pairs
  }
  const examples = await readExamples(clean, here, table, columns, rowHash, exampleHashes)
  const changes = isKeyed ? await readChanges(clean, here, table, columns, key, keyHash, changedKeys) : []
  return { ...total, examples, changes }
}

async function differingBuckets(clean: Session, here: Session, hashed: string): Promise<readonly string[]> {
  const sql = `
select key & ${BUCKETS - 1} as bucket, count(*) as rows, sum(row) as sum
  from ${hashed}
 group by 1`
  const sums = new Map<string, string>()
  for (const row of await clean.query(sql)) sums.set(row.bucket ?? '', `${row.rows} ${row.sum}`)
  const differing: string[] = []
  for (const row of await here.query(sql)) {
    const bucket = row.bucket ?? ''
    if (sums.get(bucket) !== `${row.rows} ${row.sum}`) differing.push(bucket)
    sums.delete(bucket)
  }
  return [...differing, ...sums.keys()]
}

async function tallies(
  clean: Session,
  here: Session,
  hashed: string,
  buckets: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, Tally>>> {
  const sql = `
select key, row, count(*) as n
  from ${hashed}
 where key & ${BUCKETS - 1} = any ($1)
 group by 1, 2`
  const byKey = new Map<string, Map<string, Tally>>()
  const add = (found: readonly Row[], side: keyof Tally) => {
    for (const { key, row, n } of found) {
      const rows = byKey.get(key ?? '') ?? new Map<string, Tally>()
      byKey.set(key ?? '', rows)
      const tally = rows.get(row ?? '') ?? { clean: 0, here: 0 }
      rows.set(row ?? '', tally)
      tally[side] = Number(n)
    }
  }
  add(await clean.query(sql, [buckets]), 'clean')
  add(await here.query(sql, [buckets]), 'here')
  return byKey
}

/** What the rows of one key (or, without a key, of one content) say. */
function classify(
  rows: ReadonlyMap<string, Tally>,
  isKeyed: boolean,
): { doubled: number; lost: number; changed: number; extra: number } {
  let [doubled, lost, extra] = [0, 0, 0]
  for (const { clean, here } of rows.values()) {
    if (clean > here) lost += clean - here
    else if (clean === 0) extra += here
    else doubled += here - clean
  }
  const changed = isKeyed ? Math.min(lost, extra) : 0
  return { doubled, lost: lost - changed, changed, extra: extra - changed }
}

function textColumns(columns: readonly ColumnShape[]): string {
  return columns.map((column) => `${textOf(column)} as ${ident(column.name)}`).join(', ')
}

async function readExamples(
  clean: Session,
  here: Session,
  table: TableShape,
  columns: readonly ColumnShape[],
  rowHash: string,
  wanted: ReadonlyMap<string, Tally>,
): Promise<readonly RowExample[]> {
  if (wanted.size === 0) return []
  const sql = `
select distinct on (1) ${rowHash} as "stet row", ${textColumns(columns)}
  from only ${table.reference}
 where ${rowHash} = any ($1)`
  const found = new Map<string, RowExample>()
  for (const session of [here, clean]) {
    for (const { 'stet row': hash, ...values } of await session.query(sql, [[...wanted.keys()]])) {
      found.set(hash ?? '', { values, ...(wanted.get(hash ?? '') ?? { clean: 0, here: 0 }) })
    }
  }
  return [...found.values()].sort(byValues).slice(0, EXAMPLES)
}

const inReadersOrder = new Intl.Collator('en', { numeric: true })

/** Hashes come in no order that a reader could follow. */
export function byValues(one: RowExample, other: RowExample): number {
  const text = ({ values }: RowExample) => Object.values(values).join(' ')
  return inReadersOrder.compare(text(one), text(other))
}

async function readChanges(
  clean: Session,
  here: Session,
  table: TableShape,
  columns: readonly ColumnShape[],
  key: readonly ColumnShape[],
  keyHash: string,
  wanted: readonly string[],
): Promise<readonly ChangedExample[]> {
  if (wanted.length === 0) return []
  const sql = `
select ${keyHash} as "stet key", ${textColumns(columns)}
  from only ${table.reference}
 where ${keyHash} = any ($1)`
  const before = new Map((await clean.query(sql, [wanted])).map((row) => [row['stet key'], row]))
  const changes: ChangedExample[] = []
  for (const row of await here.query(sql, [wanted])) {
    const old = before.get(row['stet key'] ?? null)
    if (old === undefined) continue
    changes.push({
      key: Object.fromEntries(key.map(({ name }) => [name, row[name] ?? null])),
      changes: columns
        .map(({ name }) => ({ column: name, clean: old[name] ?? null, here: row[name] ?? null }))
        .filter((cell) => cell.clean !== cell.here),
    })
  }
  return changes
}

/** Whether every changed cell is a number and twice what it was: the mark of a sum added up again. */
export function isTwiceAsMuch(changes: readonly ChangedExample[]): boolean {
  const cells = changes.flatMap((row) => row.changes)
  return cells.length > 0 && cells.every(({ clean, here }) => isTwice(clean, here))
}

function isTwice(clean: string | null, here: string | null): boolean {
  const [one, two] = [decimal(clean), decimal(here)]
  if (one === null || two === null || one.digits === 0n) return false
  const scale = Math.max(one.scale, two.scale)
  return one.digits * 10n ** BigInt(scale - one.scale) * 2n === two.digits * 10n ** BigInt(scale - two.scale)
}

function decimal(text: string | null): { readonly digits: bigint; readonly scale: number } | null {
  const match = /^(-?\d+)(?:\.(\d+))?$/.exec(text ?? '')
  if (match === null) return null
  const fraction = match[2] ?? ''
  return { digits: BigInt(`${match[1]}${fraction}`), scale: fraction.length }
}
