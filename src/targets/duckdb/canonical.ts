import { callSql } from '../../local/functions.ts'
import { quoteLiteral } from '../../local/quote.ts'
import type { ContractColumn } from '../../model/columns.ts'
import type { LocalConnection } from '../../model/local.ts'
import { CUT_INTERVAL } from '../shared/interval.ts'
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
  TIME_NS: '[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9}0*)?)?',
  'TIME WITH TIME ZONE': '[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2})',
}

/** A quote doubled inside of an element, which DuckDB takes for the end of one and the beginning of another. */
const DOUBLED_QUOTE = `[^\\[,{(:=\\s](''|"")|(''|"")[^\\],}):=\\s]`

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
  // PostgreSQL prints `-1 mons +3 days`; DuckDB knows no plus, and both give each unit its own sign.
  const text = native.toUpperCase() === 'INTERVAL' ? `replace(text, '+', '')` : 'text'
  const stored = `try_cast(${storedForm(column, text)} as ${native})`
  const forms =
    column.type.kind === 'other' && isNested(native)
      ? nestedForms(native)
      : `select text, ${comparedForm(column, stored)} as canonical, ${column.type.kind === 'other' ? exactSql(native) : 'true'} as exact from texts`
  await local.run(`
    create table ${table} as
      with texts as (select text from ${from})
    select text,
           case when exact then canonical end as canonical,
           case when canonical is null then ${quoteLiteral(`is not a value of DuckDB's ${native}`)}
                when not exact then ${quoteLiteral(`would be changed by DuckDB's ${native}`)}
           end as reason
      from (${forms})`)
  return table
}

function exactSql(native: string): string {
  if (native.toUpperCase() === 'INTERVAL')
    return `not regexp_matches(text, ${quoteLiteral(CUT_INTERVAL)}, 'i')`
  const pattern = EXACT_BY_NATIVE[native.toUpperCase()]
  return pattern === undefined ? 'true' : `regexp_full_match(trim(text), ${quoteLiteral(pattern)}, 'i')`
}

/** Lists, structs, maps and unions. */
function isNested(native: string): boolean {
  return /[[(]/.test(native) && !/^ENUM\(/i.test(native)
}

/**
 * Elements of lists, structs and maps are cast by the same lax rules as single values; only what comes out as it went in
 * has lost nothing. It may go in as DuckDB prints it or as JSON, which is how other sources hold such values.
 */
function nestedForms(native: string): string {
  const isSameJson = (value: string) =>
    `${callSql('json_identity', `to_json(${value})::varchar`)} = ${callSql('json_identity', 'text')}`
  const isOwnForm = `
    (${bareSql('text')} = ${bareSql('cast_value::varchar')} and not regexp_matches(text, ${quoteLiteral(DOUBLED_QUOTE)}))`
  // What DuckDB prints is what is compared and written: it has to be read back as the same.
  const isReadBack = (value: string) =>
    `try_cast(${value}::varchar as ${native}) is not distinct from ${value}`
  // A map with a key twice is an error of try_cast, too. In Stet's form of a document every key is there once, the last one,
  // as jsonb has it.
  return `
    select text, cast_exact or json_exact as exact,
           case when json_exact and not cast_exact then json_form else coalesce(cast_form, json_form) end as canonical
      from (select text, cast_value::varchar as cast_form, json_value::varchar as json_form,
                   coalesce((${isOwnForm} or ${isSameJson('cast_value')}) and ${isReadBack('cast_value')}, false) as cast_exact,
                   coalesce(${isSameJson('json_value')} and ${isReadBack('json_value')}, false) as json_exact
              from (select text, try(try_cast(text as ${native})) as cast_value,
                           try_cast(${callSql('json', 'text')}::json as ${native}) as json_value
                      from texts))`
}

function bareSql(text: string): string {
  return `regexp_replace(${text}, '[\\s''"]', '', 'g')`
}
