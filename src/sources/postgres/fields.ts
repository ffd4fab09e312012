import { StetError } from '../../errors.ts'
import { parseColumnType } from '../../model/column-type.ts'
import type { ColumnType } from '../../model/columns.ts'
import type { SourceField } from '../../model/source.ts'
import type { DescribedColumn, ReadSession } from './session.ts'

/** A column of the query's answer. */
export interface QueryField extends SourceField {
  readonly type: ColumnType
  /** Whether a value may hold what CSV readers stumble over: quotes, line ends, a byte order mark. */
  readonly quoted: boolean
}

/** Types whose texts are digits, signs and words. */
const PLAIN_KINDS = new Set<ColumnType['kind']>([
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double',
  'boolean',
  'date',
  'timestamp',
  'timestamptz',
  'time',
  'uuid',
])

/**
 * The columns that a query gives, without running it.
 *
 * @throws {StetError} `STET_COLUMNS` when it has none, or two of one name.
 */
export async function describeQuery(session: ReadSession, query: string): Promise<readonly QueryField[]> {
  // The line end closes a comment at the end of the query.
  const columns = await session.describe(`select * from (${query}\n) as q limit 0`)
  refuse(columns)
  const types = await session.query(
    // A type of the source's own (an enum, an extension's) may not exist in the target: its values go as text.
    `select case when t.typnamespace = 'pg_catalog'::regnamespace
                 then format_type(c.type_id, c.modifier)
                 else 'text'
            end as type
       from unnest($1::oid[], $2::int[]) with ordinality as c (type_id, modifier, position)
       left join pg_type as t on t.oid = c.type_id
      order by c.position`,
    [columns.map((column) => column.typeId), columns.map((column) => column.typeModifier)],
  )
  return columns.map(({ name }, i) => {
    const type = typeOf(types[i]?.type ?? 'text')
    return { name, type, quoted: !PLAIN_KINDS.has(type.kind) }
  })
}

/** `name` is PostgreSQL's for its own catalogs; as a column of a new table it would cut what is longer. */
function typeOf(native: string): ColumnType {
  return native === 'name' ? { kind: 'text' } : parseColumnType(native)
}

function refuse(columns: readonly DescribedColumn[]): void {
  if (columns.length === 0) {
    throw new StetError('STET_COLUMNS', 'Cannot read the query: it gives no columns')
  }
  const seen = new Set<string>()
  for (const { name } of columns) {
    if (seen.has(name)) {
      throw new StetError('STET_COLUMNS', `Cannot read the query: it gives two columns "${name}"`, {
        hint: `Name each apart: select a.${name} as …`,
        details: { column: name },
      })
    }
    seen.add(name)
  }
}
