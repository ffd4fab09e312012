import { countOf } from '../model/words.ts'
import type { Found } from './found.ts'
import { type Attempt, missingOf, sliceToReplace } from './workplace.ts'

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
  if (difference.isInTarget === true || difference.inserts > KEYS_MAX) {
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
  // A target may give more rows than were asked for: those with a NULL in the key.
  const same = key.map(({ id }) => `k.${id} is not distinct from t.${id}`).join(' and ')
  const shown = [...key, by].map(({ id }) => `t.${id}::varchar as ${id}`).join(', ')
  const [row] = await local.rows(
    `select count(*) over ()::integer as rows, ${shown}
       from ${scope.table} as t
      where exists (select 1 from ${keys} as k where ${same})
      order by all
      limit 1`,
  )
  if (row === undefined) return null
  const count = Number(row.rows)
  const value = (id: string) => (row[id] === null ? 'NULL' : String(row[id]))
  const example = key.map(({ id, name }) => `${name}=${value(id)}`).join(' ')
  // A row that is only marked, or kept, still has its key; and no slice holds a row without a value.
  const isInSlice = row[by.id] !== null
  const leaves = isInSlice && missingOf(pipeline) === 'delete'
  return (
    `${countOf(count, 'key of this load is', 'keys of this load are')} ${isInSlice ? 'in another slice' : 'in no slice'}, such as ${example} with ${by.name}=${value(by.id)}: ` +
    `a run is refused (STET_KEY_CONSTRAINT) ${leaves ? `until that slice was loaded without ${count === 1 ? 'it' : 'them'}` : `as long as ${by.name} is no part of the key`}`
  )
}

/** So many keys go to the target in the text of a query; more would be too long a text. */
const KEYS_MAX = 100_000

const UNKNOWN =
  'Whether the table has a new key in another slice, which refuses the run, only the run can tell'
