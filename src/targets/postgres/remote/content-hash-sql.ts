import { CONTRACT, compareBytes, headOf } from '../../../local/content-hash.ts'
import { quoteLiteral } from '../../../local/quote.ts'
import type { ColumnType, ContractColumn } from '../../../model/columns.ts'

/** A function takes a hundred arguments at most. */
const PARTS_A_CALL = 50

/** The content hash of `docs/content-hash.md` as PostgreSQL computes it, for values of the table's own types. */
export function contentHashSql(
  columns: readonly { readonly column: Pick<ContractColumn, 'name' | 'type'>; readonly expr: string }[],
): string {
  const parts = columns
    .toSorted((a, b) => compareBytes(a.column.name, b.column.name))
    .map(({ column, expr }) => {
      const value = canonicalSql(column.type, expr)
      // Bytes of UTF-8, whatever the encoding of the database.
      const length = `octet_length(convert_to(${value}, 'UTF8'))`
      return `case when ${expr} is not null then ${length} || ${quoteLiteral(headOf(column.type, column.name))} || ${value} end`
    })
  const calls: string[] = []
  for (let from = 0; from < parts.length; from += PARTS_A_CALL) {
    calls.push(`concat(${parts.slice(from, from + PARTS_A_CALL).join(', ')})`)
  }
  const preimage = [quoteLiteral(CONTRACT), ...calls].join(' || ')
  return `encode(sha256(convert_to(${preimage}, 'UTF8')), 'hex')`
}

function canonicalSql(type: ColumnType, expr: string): string {
  switch (type.kind) {
    case 'numeric':
      return `trim_scale(${expr})::text`
    case 'real':
      // As the double of the same value; the detour over numeric writes the exponent out.
      return `trim_scale(${expr}::double precision::text::numeric)::text`
    case 'double':
      return `trim_scale(${expr}::text::numeric)::text`
    case 'timestamptz':
      return `(${expr} at time zone 'UTC')::text`
    case 'char':
      return `rtrim(${expr}::text, ' ')`
    case 'bytea':
      return `'\\x' || encode(${expr}, 'hex')`
    case 'json':
    case 'jsonb':
      return jsonSql(`${expr}::jsonb::text`)
    default:
      return `${expr}::text`
  }
}

/**
 * What jsonb prints is the contract's form but for the zeros at the end of decimals. They are taken off outside of strings:
 * the text is cut into strings and what is between them.
 */
function jsonSql(text: string): string {
  const trimmed = `regexp_replace(regexp_replace(p[1], '(\\.[0-9]*[1-9])0+(?![0-9])', '\\1', 'g'), '\\.0+(?![0-9])', '', 'g')`
  return `(select case when j !~ '\\.[0-9]*0(?![0-9])' then j
               else (select string_agg(case when left(p[1], 1) = '"' then p[1] else ${trimmed} end, '' order by n)
                       from regexp_matches(j, '("(?:[^"\\\\]|\\\\.)*"|[^"]+)', 'g') with ordinality as m (p, n)) end
          from (select ${text}) as o (j))`
}
