import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract, ContractColumn, KeptColumns } from '../../model/columns.ts'
import type { ReplacePartition, WriteStrategy } from '../../model/write.ts'
import { requireIdentifierFits } from '../shared/table-name.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  KEPT_ROLES,
  type TableIdentity,
  type UniqueIndex,
} from './catalog.ts'

/** PostgreSQL cuts longer identifiers with no more than a notice. */
export const IDENTIFIER_BYTES_MAX = 63

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

const KIND_NAMES: Readonly<Record<string, string>> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
  S: 'a sequence',
  c: 'a composite type',
  i: 'an index',
  I: 'an index',
}

/** Refuses what is no table that rows can be compared and written in. */
export function requireTable({ identity, kind, rules, hasInheritanceChildren }: CatalogTable): void {
  const name = identity.qualified
  if (kind !== 'r' && kind !== 'p') {
    throw new StetError('STET_CONFIG', `Cannot load into ${name}: it is ${KIND_NAMES[kind] ?? 'no table'}`, {
      hint: 'Load into the table behind it',
    })
  }
  if (hasInheritanceChildren) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot load into ${name}: other tables inherit from it, and no constraint holds across them`,
      { hint: 'Load into one of the child tables, or make it a partitioned table' },
    )
  }
  if (rules.length > 0) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot load into ${name}: its rule ${rules.join(', ')} rewrites what is written`,
      { hint: `Make it a trigger, or drop it: drop rule ${quoteIdentifier(rules[0] ?? '')} on ${name}` },
    )
  }
}

const SYSTEM_COLUMNS = new Set(['tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax'])

/** Refuses a new table whose names PostgreSQL would cut, or whose schema is not there. */
export function requireCreatable(identity: TableIdentity, contract: Contract): void {
  if (!identity.schemaExists || identity.schema === '') {
    throw new StetError(
      'STET_CONFIG',
      `Cannot create ${identity.qualified}: there is no schema "${identity.schema}"`,
      { hint: `Run: create schema ${quoteIdentifier(identity.schema)}` },
    )
  }
  for (const name of [...contract.columns.map((column) => column.name), ...keptNames(contract)]) {
    requireIdentifierFits(name, IDENTIFIER_BYTES_MAX)
    if (SYSTEM_COLUMNS.has(name)) {
      throw new StetError(
        'STET_COLUMNS',
        `Cannot create ${identity.qualified} with a column "${name}": PostgreSQL has a column of that name in every table`,
        { hint: 'Rename it in the source, or leave it out' },
      )
    }
  }
}

/** Refuses a contract that the columns of the table cannot hold, with the statement that would change it. */
export function requireColumns(table: CatalogTable, contract: Contract): void {
  const name = table.identity.qualified
  const byName = new Map(table.columns.map((column) => [column.name, column]))
  const missing = contract.columns.filter((column) => !byName.has(column.name))
  for (const column of missing) requireIdentifierFits(column.name, IDENTIFIER_BYTES_MAX)
  if (missing.length > 0) {
    const added = missing.map(
      (column) => `add column ${quoteIdentifier(column.name)} ${formatColumnType(column.type)}`,
    )
    throw new StetError('STET_COLUMNS', `${name} has no column ${listed(missing)}, which the load has`, {
      hint: `Run: alter table ${name} ${added.join(', ')}`,
      details: { missing: missing.map((column) => column.name) },
    })
  }
  for (const column of contract.columns) requireWritable(name, column, byName.get(column.name))
  const written = new Set([...contract.columns.map((column) => column.name), ...keptNames(contract)])
  const needed = table.columns.filter(
    (column) => !column.optional && !column.generated && !written.has(column.name),
  )
  if (needed.length > 0) {
    throw new StetError(
      'STET_COLUMNS',
      `${name} demands a value for ${listed(needed)}, which the load does not have`,
      {
        hint: `Add it to the source, or give it a default: alter table ${name} alter column ${quoteIdentifier(needed[0]?.name ?? '')} set default …`,
        details: { needed: needed.map((column) => column.name) },
      },
    )
  }
  requireKept(table, contract)
}

function requireWritable(table: string, column: ContractColumn, found: CatalogColumn | undefined): void {
  if (found === undefined) return
  if (found.generated) {
    throw new StetError('STET_COLUMNS', `${table} computes "${column.name}" itself; it cannot be loaded`, {
      hint: 'Leave the column out of the pipeline',
    })
  }
  if (found.alwaysIdentity) {
    throw new StetError('STET_COLUMNS', `${table} numbers "${column.name}" itself (generated always)`, {
      hint: `Leave the column out, or run: alter table ${table} alter column ${quoteIdentifier(column.name)} set generated by default`,
    })
  }
  if (formatColumnType(found.type) !== formatColumnType(column.type)) {
    throw new StetError(
      'STET_SERIALIZATION',
      `Column "${column.name}" of ${table} has become ${found.native} since the run looked at it; it was ${formatColumnType(column.type)}`,
      { hint: 'Run again' },
    )
  }
}

/** Types whose values have several texts, so that which slice a row belongs to would depend on who is asked. */
const NO_SLICE_VALUES: Readonly<Record<string, string>> = {
  json: 'one value of it can be spelled in many ways',
  jsonb: 'one value of it can be spelled in many ways',
  xml: 'its values cannot be compared',
  real: 'it holds -0 and 0, which are equal and two texts, and rounds what is written',
  'double precision': 'it holds -0 and 0, which are equal and two texts, and rounds what is written',
}

/** Refuses slices by value of a type whose values are no names: rows would be found by one side and missed by the other. */
export function requireSliceValues(name: string, contract: Contract, { by, size }: ReplacePartition): void {
  const column = contract.columns.find((found) => found.name === by)
  if (size !== 'value' || column === undefined) return
  const type = formatColumnType(column.type)
  const why = NO_SLICE_VALUES[type]
  if (why === undefined) return
  throw new StetError(
    'STET_CONFIG',
    `Cannot cut ${name} into slices by the value of "${by}": ${type}: ${why}`,
    {
      hint: 'Cut by a column of type text, a number without rounding, or an enum',
    },
  )
}

function keptNames({ keep }: Contract): readonly string[] {
  return KEPT_ROLES.map((role) => keep[role]).filter((name) => name !== null)
}

/** Types that can hold what Stet writes into its own columns. */
const KEPT_TYPES: Readonly<Record<keyof KeptColumns, readonly string[]>> = {
  updatedAt: ['timestamptz', 'timestamp'],
  contentHash: ['text', 'varchar'],
  gone: ['timestamptz', 'timestamp'],
}

function requireKept(table: CatalogTable, contract: Contract): void {
  for (const role of KEPT_ROLES) {
    const name = contract.keep[role]
    if (name === null) continue
    const found = table.columns.find((column) => column.name === name)
    const types = KEPT_TYPES[role]
    const table_ = table.identity.qualified
    if (found !== undefined && types.includes(found.type.kind) && !found.generated) {
      if (role === 'gone' && !found.nullable) {
        throw new StetError(
          'STET_COLUMNS',
          `Column "${name}" of ${table_} refuses NULL, which live rows hold in the column that marks those that are gone`,
          { hint: `Run: alter table ${table_} alter column ${quoteIdentifier(name)} drop not null` },
        )
      }
      continue
    }
    throw new StetError(
      'STET_COLUMNS',
      found === undefined
        ? `${table_} has no column "${name}", which Stet is to keep`
        : `Column "${name}" of ${table_} is ${found.native}; keep.${role} needs ${types[0]}`,
      { hint: `Run: alter table ${table_} add column ${quoteIdentifier(name)} ${types[0]}` },
    )
  }
}

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

function listed(columns: readonly { readonly name: string }[]): string {
  return columns.map((column) => `"${column.name}"`).join(', ')
}
