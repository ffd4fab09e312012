import { countOf } from '../model/words.ts'
import type { Found } from './found.ts'
import type { Attempt } from './workplace.ts'
import { sliceToReplace } from './workplace.ts'

/**
 * What a plan says of keys that it would insert into a slice and that the table has in another one: a key names one row of
 * the whole table, and the run is refused. It is no refusal of the plan, because in a backfill the slice of those rows may
 * come first. Null where there is nothing to say.
 */
export async function keysElsewhere(attempt: Attempt, found: Found): Promise<string | null> {
  const { pipeline, local, session } = attempt
  const slice = sliceToReplace(pipeline, attempt.slice)
  const { contract, table, comparison } = found
  const key = contract.columns.filter((column) => column.key)
  const by = contract.columns.find(({ name }) => name === slice?.by)
  const { difference } = comparison
  if (slice === null || table === null || by === undefined) return null
  if (key.length === 0 || by.key || difference.inserts === 0) return null
  if (difference.isInTarget === true) {
    attempt.notice(UNKNOWN)
    return null
  }
  const keys = local.newName('keys')
  await local.run(
    `create table ${keys} as select ${key.map(({ id }) => id).join(', ')} from ${difference.table} where op = 'insert'`,
  )
  const scope = await session.rowsInScope(contract, { kind: 'keys', keys, count: difference.inserts })
  if (scope.unheld.length > 0) {
    attempt.notice(UNKNOWN)
    return null
  }
  if (scope.rows === 0) return null
  const shown = [...key, by]
  const [row] = await local.rows(
    `select ${shown.map(({ id }) => `${id}::varchar as ${id}`).join(', ')} from ${scope.table} order by all limit 1`,
  )
  const value = (id: string) => (row?.[id] === null || row === undefined ? 'NULL' : String(row[id]))
  const example = key.map(({ id, name }) => `${name}=${value(id)}`).join(' ')
  const it = scope.rows === 1 ? 'it' : 'them'
  return (
    `${countOf(scope.rows, 'key of this load is', 'keys of this load are')} in another slice, such as ${example} with ${by.name}=${value(by.id)}: ` +
    `a run is refused (STET_KEY_CONSTRAINT) until that slice was loaded without ${it}`
  )
}

const UNKNOWN =
  'Whether the table has a new key in another slice, which refuses the run, only the run can tell'
