import { quoteIdentifier, quoteLiteral } from '../../local/quote.ts'
import { endsFor } from '../../local/slice.ts'
import type { ColumnType } from '../../model/columns.ts'
import type { SourceContext } from '../../model/source.ts'
import type { QueryField } from './fields.ts'

/** Types whose order at the server is the one by which slices and windows are cut. */
const TIMES = new Set<ColumnType['kind']>(['date', 'timestamp', 'timestamptz'])
const NUMBERS = new Set<ColumnType['kind']>(['smallint', 'integer', 'bigint', 'numeric'])

/**
 * The query, narrowed to what the run reads: the window of its cursor, and its slice. Where a column has another type
 * than the ends are in, nothing is left out here; the pipeline looks at every row again.
 */
export async function narrowQuery(
  query: string,
  fields: readonly QueryField[],
  { cursor, slice, mayNarrow }: Pick<SourceContext, 'cursor' | 'slice' | 'mayNarrow'>,
): Promise<string> {
  const conditions: string[] = []
  const cursorField = fields.find(({ name }) => name === cursor?.column)
  if (cursor !== undefined && cursorField !== undefined && isOrdered(cursorField.type)) {
    const window = await cursor.window(cursorField.type)
    if (window !== null) {
      const name = `q.${quoteIdentifier(cursorField.name)}`
      const ends = [
        ...(window.from === null ? [] : [`${name} >= ${quoteLiteral(window.from)}`]),
        ...(window.to === null ? [] : [`${name} <= ${quoteLiteral(window.to)}`]),
      ].join(' and ')
      // A row without a value comes as well: the pipeline says what becomes of it, and counts it.
      if (ends !== '') conditions.push(`((${ends}) or ${name} is null)`)
    }
  }
  const sliceField = fields.find(({ name }) => name === slice?.by)
  if (slice !== undefined && sliceField !== undefined && mayNarrow?.(sliceField.type) === true) {
    const name = `q.${quoteIdentifier(sliceField.name)}`
    const { bounds } = slice
    const fits = bounds.kind === 'time' ? TIMES : NUMBERS
    if (bounds.kind === 'value') {
      // One value of another type has many texts; there the pipeline looks by itself.
      if (['text', 'varchar'].includes(sliceField.type.kind))
        conditions.push(`${name} = ${quoteLiteral(bounds.value)}`)
    } else if (fits.has(sliceField.type.kind)) {
      const { from, to } = endsFor(sliceField.type, bounds)
      conditions.push(`(${name} >= ${quoteLiteral(from)} and ${name} < ${quoteLiteral(to)})`)
    }
  }
  if (conditions.length === 0) return query
  return `select q.* from (${query}\n) as q where ${conditions.join(' and ')}`
}

function isOrdered({ kind }: ColumnType): boolean {
  return TIMES.has(kind) || NUMBERS.has(kind)
}
