import { quoteLiteral } from '../../local/quote.ts'
import type { ContractColumn } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import { comparedForm, storedForm } from './forms.ts'

const INTEGER = '[+-]?[0-9]+'
const DAY = '[+-]?[0-9]{1,6}-[0-9]{1,2}-[0-9]{1,2}'

/**
 * What a text must look like before DuckDB may cast it to one of its own types. DuckDB rounds `1.5` to a whole number and
 * cuts fractions of a second; what could be changed that way is refused instead (G9). The types that Stet knows itself
 * have been read strictly when they were landed.
 */
const EXACT_BY_NATIVE: Readonly<Record<string, string>> = {
  TINYINT: INTEGER,
  HUGEINT: INTEGER,
  UTINYINT: INTEGER,
  USMALLINT: INTEGER,
  UINTEGER: INTEGER,
  UBIGINT: INTEGER,
  UHUGEINT: INTEGER,
  BIGNUM: INTEGER,
  TIMESTAMP_S: momentPattern('(\\.0+)?'),
  TIMESTAMP_MS: momentPattern('(\\.[0-9]{1,3}0*)?'),
  TIMESTAMP_NS: momentPattern('(\\.[0-9]{1,9})?'),
  'TIME WITH TIME ZONE': '[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2})',
}

function momentPattern(fraction: string): string {
  return `(${DAY}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}${fraction})?)?( \\(BC\\))?|[+-]?infinity)`
}

/** The form of one column's texts after DuckDB has stored them: a local table `text`, `canonical` (null when refused), `reason`. */
export async function canonicalTexts(
  local: LocalConnection,
  column: ContractColumn,
  native: string,
  from: string,
): Promise<string> {
  const table = local.newName('canonical')
  const canonical = comparedForm(column, `try_cast(${storedForm(column, 'text')} as ${native})`)
  const exact = column.type.kind === 'other' ? exactSql(native) : 'true'
  await local.run(`
    create table ${table} as
    select text,
           case when ${exact} then canonical end as canonical,
           case when canonical is null then ${quoteLiteral(`is not a value of DuckDB's ${native}`)}
                when not (${exact}) then ${quoteLiteral(`would be changed by DuckDB's ${native}`)}
           end as reason
      from (select text, ${canonical} as canonical from ${from})`)
  return table
}

function exactSql(native: string): string {
  const pattern = EXACT_BY_NATIVE[native.toUpperCase()]
  if (pattern !== undefined) return `regexp_full_match(trim(text), ${quoteLiteral(pattern)}, 'i')`
  // Elements of lists, structs and maps are cast by the same lax rules; only what comes out as it went in has lost nothing.
  const isNested = /[[(]/.test(native) && !/^ENUM\(/i.test(native)
  return isNested ? `${bareSql('text')} = ${bareSql('canonical')}` : 'true'
}

function bareSql(text: string): string {
  return `regexp_replace(${text}, '[\\s''"]', '', 'g')`
}
