import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import { formatColumnType } from '../../model/column-type.ts'
import type { Contract, ContractColumn, KeptColumns } from '../../model/columns.ts'
import { groupDigits } from '../../model/words.ts'
import type { ReplacePartition } from '../../model/write.ts'
import { requireIdentifierFits } from '../shared/table-name.ts'
import { type CatalogColumn, type CatalogTable, KEPT_ROLES, type TableIdentity } from './catalog.ts'

/** PostgreSQL cuts longer identifiers with no more than a notice. */
export const IDENTIFIER_BYTES_MAX = 63

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

/** PostgreSQL's own limit. */
const COLUMNS_MAX = 1_600

/** Refuses a new table whose names PostgreSQL would cut, that has too many columns, or whose schema is not there. */
export function requireCreatable(identity: TableIdentity, contract: Contract): void {
  if (!identity.schemaExists) {
    throw new StetError(
      'STET_CONFIG',
      `Cannot create ${identity.qualified}: there is no schema "${identity.schema}"`,
      { hint: `Run: create schema ${quoteIdentifier(identity.schema)}` },
    )
  }
  const names = [...contract.columns.map((column) => column.name), ...keptNames(contract)]
  if (names.length > COLUMNS_MAX) {
    throw new StetError(
      'STET_COLUMNS',
      `Cannot create ${identity.qualified} with ${groupDigits(names.length)} columns: PostgreSQL holds ${groupDigits(COLUMNS_MAX)} in a table, fewer where they are full`,
      { hint: 'Leave columns out, or load columns that are data as rows or as one jsonb column' },
    )
  }
  for (const name of names) {
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

function listed(columns: readonly { readonly name: string }[]): string {
  return columns.map((column) => `"${column.name}"`).join(', ')
}
