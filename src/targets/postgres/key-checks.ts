import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import type { Contract } from '../../model/columns.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { CatalogColumn, CatalogTable, UniqueIndex } from './catalog.ts'
import { IDENTIFIER_BYTES_MAX } from './checks.ts'

/** How the key of an existing table is enforced. */
export type KeyEnforcement =
  /** No key in the pipeline. */
  | 'none'
  /** A unique index on exactly the key: `on conflict` can name it. */
  | 'index'
  /**
   * A partitioned table, whose unique index must contain the partition column, so that two rows of one key are possible
   * as far as the index goes. New keys are then inserted under a lock that keeps other writers out.
   */
  | 'table lock'

/**
 * How the table enforces the pipeline's key (G1): without a constraint two writers at once, or a second spelling of one
 * key, would put a row twice.
 *
 * @throws {StetError} `STET_KEY_CONSTRAINT` with the exact statement that adds the constraint.
 */
export function requireKeyEnforced(
  table: CatalogTable,
  contract: Contract,
  write: WriteStrategy,
): KeyEnforcement {
  const key = contract.columns.filter((column) => column.key).map((column) => column.name)
  if (key.length === 0) return 'none'
  const columns = key.map((name) => table.columns.find((column) => column.name === name))
  for (const column of columns) if (column !== undefined) requireExactKey(table, column)
  const nullable = columns.filter((column) => column?.nullable === true)
  const matchesNull = write.nullKeys === 'match' && nullable.length > 0
  const faults: string[] = []
  for (const index of table.uniques) {
    const fault = faultOf(index, key, matchesNull)
    if (fault === null) return 'index'
    if (fault !== 'other columns') faults.push(fault)
  }
  if (isEnforcedByLock(table, key)) {
    if (matchesNull) {
      throw keyError(table, key, write, [
        'a partitioned table cannot match NULL in a key that its index does not cover',
      ])
    }
    return 'table lock'
  }
  throw keyError(table, key, write, faults)
}

/** Why an index does not enforce the key; null when it does. */
function faultOf(index: UniqueIndex, key: readonly string[], matchesNull: boolean): string | null {
  const sameColumns =
    index.columns !== null &&
    index.columns.length === key.length &&
    key.every((name) => index.columns?.includes(name))
  if (!sameColumns) return 'other columns'
  if (index.partial) return `unique index "${index.name}" holds only where its condition does`
  if (!index.valid) return `unique index "${index.name}" is not valid`
  if (!index.immediate) return `unique constraint "${index.name}" is deferrable`
  if (index.coarseCollation !== null) {
    return `unique index "${index.name}" takes different texts for equal (collation "${index.coarseCollation}")`
  }
  if (matchesNull && !index.nullsNotDistinct)
    return `unique index "${index.name}" lets NULL in more than once`
  return null
}

function isEnforcedByLock(
  { kind, partitionColumns, uniques }: CatalogTable,
  key: readonly string[],
): boolean {
  if (kind !== 'p' || partitionColumns === null) return false
  return uniques.some(
    ({ columns, valid, partial }) =>
      columns !== null &&
      valid &&
      !partial &&
      key.every((name) => columns.includes(name)) &&
      columns.every((name) => key.includes(name) || partitionColumns.includes(name)),
  )
}

function keyError(
  { identity, uniques, partitionColumns }: CatalogTable,
  key: readonly string[],
  write: WriteStrategy,
  faults: readonly string[],
): StetError {
  // Of a partitioned table PostgreSQL takes no unique constraint without the columns that it is partitioned by.
  const enforced = [...key, ...(partitionColumns ?? []).filter((name) => !key.includes(name))]
  const list = enforced.map(quoteIdentifier).join(', ')
  const unique = write.nullKeys === 'match' ? 'unique nulls not distinct' : 'unique'
  const why = faults.length === 0 ? 'no unique constraint covers exactly these columns' : faults.join('; ')
  return new StetError(
    'STET_KEY_CONSTRAINT',
    `Cannot load into ${identity.qualified} by (${key.join(', ')}): ${why} (G1)`,
    {
      hint: `Run: alter table ${identity.qualified} add constraint ${quoteIdentifier(constraintName(identity.table, enforced, uniques))} ${unique} (${list})`,
      details: { key },
    },
  )
}

/** `orders_order_ref_key`, as PostgreSQL would name it: within its limit, and not as an index that is there. */
function constraintName(table: string, key: readonly string[], uniques: readonly UniqueIndex[]): string {
  const full = `${table}_${key.join('_')}_key`
  const base = Buffer.byteLength(full, 'utf8') < IDENTIFIER_BYTES_MAX ? full : 'stet_key'
  const isTaken = (name: string) => uniques.some((index) => index.name === name)
  let name = base
  for (let n = 1; isTaken(name); n++) name = `${base}${n}`
  return name
}

/**
 * Base types outside the proved list in which equal values have one text. In all others (`citext`, `interval`, `jsonb`,
 * `numrange`) two texts can be one key, and then a load would write one row twice or update the wrong one.
 */
const EXACT_TEXT_TYPES = new Set([
  'inet',
  'cidr',
  'macaddr',
  'macaddr8',
  'oid',
  'name',
  'bit',
  'bit varying',
  '"bit"',
  'money',
  'bytea',
  'xid8',
  'pg_lsn',
])

/** Refuses a key column in which two different texts can be one key. */
export function requireExactKey(
  { identity }: Pick<CatalogTable, 'identity'>,
  column: Pick<CatalogColumn, 'name' | 'type' | 'native' | 'base' | 'typeCategory' | 'coarseCollation'>,
): void {
  const refuse = (why: string) =>
    new StetError(
      'STET_KEY_CONSTRAINT',
      `Cannot load into ${identity.qualified} by "${column.name}": ${why}, so two different keys of the load can be one row (G1)`,
      {
        hint: 'Use a key of type text with an ordinary collation, or bring the column into one form before loading',
      },
    )
  if (column.coarseCollation !== null) {
    throw refuse(`its collation "${column.coarseCollation}" takes different texts for equal`)
  }
  const { kind } = column.type
  if (kind === 'json' || kind === 'jsonb') throw refuse(`${column.native} has several spellings of one value`)
  if (kind === 'real' || kind === 'double')
    throw refuse(`${column.native} holds -0 and 0, which are one key and two texts`)
  if (kind !== 'other' || column.typeCategory === 'e') return
  if (!EXACT_TEXT_TYPES.has(column.base)) throw refuse(`${column.native} can take different texts for equal`)
}
