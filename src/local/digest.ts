import type { Contract } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { identitySql } from './typing.ts'

/**
 * A digest of a difference that does not depend on the order of its rows. Every value goes in with its length, so that
 * `('ab', 'c')` and `('a', 'bc')` differ; sums, unlike xor, do not let a doubled row cancel itself out.
 */
export async function digestOf(
  local: LocalConnection,
  difference: string,
  contract: Contract,
): Promise<string> {
  const values = contract.columns.map((column) => `(${identitySql(column, `d.${column.id}`)})::varchar`)
  const framed = [`d.op`, ...values].map(
    (value) => `coalesce(length(${value})::varchar || ':' || ${value}, '-')`,
  )
  const names = contract.columns.map((column) => column.name).join(',')
  const [row] = await local.rows(`
    select count(*)::varchar || '-' || coalesce(sum(md5_number_lower(text)::hugeint), 0)::varchar
                             || '-' || coalesce(sum(md5_number_upper(text)::hugeint), 0)::varchar as digest,
           md5('${names.replaceAll("'", "''")}') as columns
      from (select ${framed.join(` || `)} as text from ${difference} as d)`)
  return `${String(row?.columns)}-${String(row?.digest)}`
}
