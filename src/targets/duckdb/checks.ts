import { StetError } from '../../errors.ts'
import { quoteIdentifier } from '../../local/quote.ts'
import { identitySql } from '../../local/typing.ts'
import type { Contract } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import { groupDigits } from '../../model/words.ts'
import type { WriteStrategy } from '../../model/write.ts'
import type { FoundTable } from './catalog.ts'
import { readColumnSql } from './forms.ts'
import { keptColumns } from './kept.ts'
import { showIdentifier } from './table-name.ts'
import { nativeOfType } from './types.ts'

/** Names that differ in case only are one to DuckDB, also in quotes. */
function requireDistinctNames(contract: Contract): void {
  const seen = new Map<string, string>()
  for (const { name } of [...contract.columns, ...keptColumns(contract.keep)]) {
    const other = seen.get(name.toLowerCase())
    if (other !== undefined) {
      throw new StetError(
        'STET_COLUMNS',
        `Cannot load columns ${other} and ${name} into one table: DuckDB takes them for one name`,
        {
          hint: 'Rename one of them in the source, or name the columns that Stet keeps otherwise: --keep-updated-at, --keep-content-hash, --keep-gone (keep in a pipeline)',
        },
      )
    }
    seen.set(name.toLowerCase(), name)
  }
}

/** Whether a table that a run creates can hold the contract; DuckDB's own words decide on types that only it knows. */
export async function checkNewTable(local: LocalConnection, contract: Contract): Promise<void> {
  requireDistinctNames(contract)
  for (const column of contract.columns) {
    const native = nativeOfType(column.type, column.name)
    if (column.type.kind !== 'other') continue
    try {
      await local.run(`select null::${native} where false`)
    } catch (cause) {
      throw new StetError('STET_CONFIG', `Cannot make column ${column.name}: DuckDB has no type ${native}`, {
        hint: 'Declare another type; text holds anything',
        cause,
      })
    }
  }
}

/**
 * Whether an existing table can hold the contract.
 *
 * @throws {StetError} `STET_COLUMNS` with the statements that would make it so.
 */
export function checkColumns(table: FoundTable, contract: Contract): void {
  requireDistinctNames(contract)
  const byName = new Map(table.columns.map((column) => [column.name.toLowerCase(), column]))
  const missing = contract.columns.filter((column) => !byName.has(column.name.toLowerCase()))
  const kept = keptColumns(contract.keep).filter(({ name }) => !byName.has(name.toLowerCase()))
  if (missing.length > 0 || kept.length > 0) {
    const additions = [
      ...missing.map((column) => [column.name, nativeOfType(column.type, column.name)] as const),
      ...kept.map(({ name, native }) => [name, native] as const),
    ]
    const statements = additions.map(
      ([name, native]) => `alter table ${table.name} add column ${showIdentifier(name)} ${native}`,
    )
    throw new StetError(
      'STET_COLUMNS',
      `${table.name} has no column ${listOf(additions.map(([name]) => name))}`,
      {
        hint: `Run: ${statements.join('; ')}`,
        details: { table: table.name, missing: additions.map(([name]) => name), statements },
      },
    )
  }
  const written = writtenNames(contract)
  const generated = table.columns.filter(
    (column) => column.generated && written.has(column.name.toLowerCase()),
  )
  if (generated.length > 0) {
    throw new StetError(
      'STET_COLUMNS',
      `${table.name} computes ${listOf(generated.map((column) => column.name))} by itself, so it cannot be loaded`,
      { hint: 'Leave the column out of the source', details: { table: table.name } },
    )
  }
  requireMark(table, contract)
  const needed = table.columns.filter((column) => !column.optional && !written.has(column.name.toLowerCase()))
  if (needed.length > 0) {
    const statements = needed.map(
      ({ name }) => `alter table ${table.name} alter column ${showIdentifier(name)} set default ...`,
    )
    throw new StetError(
      'STET_COLUMNS',
      `${table.name} needs a value for ${listOf(needed.map((column) => column.name))}, which the source does not have`,
      {
        hint: `Give the source the column, or the table a default: ${statements.join('; ')}`,
        details: { table: table.name, missing: needed.map((column) => column.name) },
      },
    )
  }
}

/** The mark of a row that is gone is a moment, and no mark is NULL: another column would take neither, or not keep it. */
function requireMark(table: FoundTable, contract: Contract): void {
  const kept = keptColumns(contract.keep).find(({ role }) => role === 'gone')
  const found = table.columns.find(({ name }) => name.toLowerCase() === kept?.name.toLowerCase())
  if (kept === undefined || found === undefined) return
  const isMoment = found.type.kind === 'timestamptz' || found.type.kind === 'timestamp'
  if (isMoment && found.nullable) return
  const name = showIdentifier(found.name)
  throw new StetError(
    'STET_COLUMNS',
    isMoment
      ? `Column ${name} of ${table.name} refuses NULL, which every live row holds there`
      : `Column ${name} of ${table.name} is ${found.native}; keep.gone needs ${kept.native}`,
    {
      hint: isMoment
        ? `Run: alter table ${table.name} alter column ${name} drop not null`
        : 'Name another column: --keep-gone NAME (keep.gone in a pipeline)',
      details: { table: table.name, column: found.name },
    },
  )
}

/** Whether the table itself sees to it that a key comes only once. */
export function isKeyEnforced(table: FoundTable, contract: Contract, write: WriteStrategy): boolean {
  const key = new Set(
    contract.columns.filter((column) => column.key).map((column) => column.name.toLowerCase()),
  )
  const nullable = table.columns.some((column) => column.nullable && key.has(column.name.toLowerCase()))
  // A unique rule lets any number of NULLs in, so it does not serve a key in which NULL is a value.
  if (write.nullKeys === 'match' && nullable) return false
  return table.unique.some(
    (rule) => rule.columns.length > 0 && rule.columns.every((name) => key.has(name.toLowerCase())),
  )
}

/**
 * Whether a row that changes may be deleted and inserted: the contract has all there is to know of it, and no unique rule
 * is there, on which a foreign key may lean.
 */
export function isRewritable(table: FoundTable, contract: Contract): boolean {
  const written = writtenNames(contract)
  return table.unique.length === 0 && table.columns.every((column) => written.has(column.name.toLowerCase()))
}

/**
 * Whether no two rows have one key: in a table, or among those rows of it that `among` gives.
 *
 * @param among Joins `stet_t` to what narrows it.
 * @throws {StetError} `STET_KEY_CONSTRAINT` with one of the keys and the statement that would keep it so.
 */
export async function requireUniqueKey(
  local: LocalConnection,
  table: { readonly name: string; readonly qualified: string },
  contract: Contract,
  write: WriteStrategy,
  among = '',
): Promise<void> {
  const key = contract.columns.filter((column) => column.key)
  if (key.length === 0) return
  const list = key.map((column) => `stet_t.${quoteIdentifier(column.name)}`)
  // As keys are compared: under NOCASE `a` and `A` are two of them.
  const identity = key.map((column) => identitySql(column, readColumnSql(column)))
  const notNull =
    write.nullKeys === 'match' ? '' : `where ${list.map((name) => `${name} is not null`).join(' and ')}`
  const [doubled] = await local.rows(`
    select ${list.map((name, position) => `any_value(${name})::varchar as k${position}`).join(', ')}, count(*)::integer as copies
      from ${table.qualified} as stet_t
           ${among}
           ${notNull}
     group by ${identity.join(', ')}
    having count(*) > 1
     limit 1`)
  if (doubled === undefined) return
  const names = key.map((column) => showIdentifier(column.name)).join(', ')
  const values = key.map((column, position) => {
    const value = doubled[`k${position}`]
    return `${column.name}=${value === null || value === undefined ? 'NULL' : String(value)}`
  })
  throw new StetError(
    'STET_KEY_CONSTRAINT',
    `Cannot load into ${table.name} by (${names}): ${groupDigits(Number(doubled.copies))} of its rows have the key ${values.join(', ')} (G1)`,
    {
      hint: `Remove the surplus rows, or name another key. To keep it so: alter table ${table.name} add primary key (${names})`,
      details: { table: table.name, key: key.map((column) => column.name) },
    },
  )
}

/** The key, as it is told apart from others in the record. */
export function keyColumnsOf(contract: Contract): string {
  const names = contract.columns.filter((column) => column.key).map((column) => column.name.toLowerCase())
  return JSON.stringify(names.sort())
}

/** All columns that a run writes, as DuckDB tells names apart. */
function writtenNames(contract: Contract): ReadonlySet<string> {
  return new Set([...contract.columns, ...keptColumns(contract.keep)].map(({ name }) => name.toLowerCase()))
}

function listOf(names: readonly string[]): string {
  return names.map(showIdentifier).join(', ')
}
