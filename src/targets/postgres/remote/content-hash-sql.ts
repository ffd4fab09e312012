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
      // As the double of the same value.
      return floatSql(`${expr}::double precision`)
    case 'double':
      return floatSql(expr)
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
 * The shortest decimal that reads back as the same double. PostgreSQL prints it, but for one that is exactly half-way to the
 * next double: such a decimal reads back as the even of the two, and PostgreSQL does not count on that. A half-way point with
 * fewer digits than a double's seventeen is a multiple of 10 and of 2^1 to 2^79, so that only numbers of that size are
 * looked at: for them the multiples of the greatest power of ten next to the exact value that read back decide.
 */
function floatSql(expr: string): string {
  return `(select case when abs(x) < 2::double precision ^ 54 or abs(x) >= 2::double precision ^ 134
                then trim_scale(x::text::numeric)::text
                else (select case when x < 0 then '-' else '' end || c
                        from (select bits & 4503599627370495 | 4503599627370496 as m, (bits >> 52 & 2047)::integer - 1075 as e
                                from (select ('x' || encode(float8send(x), 'hex'))::bit(64)::bigint as bits) as b) as parts,
                             lateral (select m::numeric * power(2::numeric, e)) as value (exact),
                             generate_series(40, 0, -1) as j,
                             lateral (select power(10::numeric, j)) as unit (u),
                             lateral (select (div(exact, u) + k) * u from (values (0), (1)) as v (k)) as near (at),
                             lateral (select trim_scale(at)::text) as text (c)
                       where c::double precision = abs(x)
                       order by j desc, abs(at - exact), div(at, u) % 2
                       limit 1) end
          from (select ${expr}) as o (x))`
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
