import { isNumberType, isTimeType } from '../model/column-type.ts'
import type { ColumnType } from '../model/columns.ts'
import type { CursorWindow, Narrowing, Slice } from '../model/slice.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'
import { endsFor } from './slice.ts'

/**
 * A query in standard SQL, less what is outside of the window and the slice as far as its own types can tell. It may leave
 * in too much, and never out: whoever reads the answer looks at every row again.
 */
export function narrowQuery(query: string, { window, slice }: Narrowing): string {
  const conditions = [
    ...(window === null ? [] : inWindow(window)),
    ...(slice === null ? [] : inSlice(slice.slice, slice.type)),
  ]
  if (conditions.length === 0) return query
  // The line end closes a comment at the end of the query.
  return `select q.* from (${query}\n) as q where ${conditions.join(' and ')}`
}

function inWindow({ cursor, from, to }: CursorWindow): readonly string[] {
  const name = `q.${quoteIdentifier(cursor)}`
  const ends = [
    ...(from === null ? [] : [`${name} >= ${quoteLiteral(from)}`]),
    ...(to === null ? [] : [`${name} <= ${quoteLiteral(to)}`]),
  ]
  // A row without a value comes as well: the pipeline says what becomes of it, and counts it.
  return ends.length === 0 ? [] : [`((${ends.join(' and ')}) or ${name} is null)`]
}

function inSlice({ by, bounds }: Slice, type: ColumnType): readonly string[] {
  const name = `q.${quoteIdentifier(by)}`
  if (bounds.kind === 'value') {
    // One value of another type has many texts.
    return type.kind === 'text' || type.kind === 'varchar' ? [`${name} = ${quoteLiteral(bounds.value)}`] : []
  }
  if (!(bounds.kind === 'time' ? isTimeType(type) : isNumberType(type))) return []
  const { from, to } = endsFor(type, bounds)
  return [`(${name} >= ${quoteLiteral(from)} and ${name} < ${quoteLiteral(to)})`]
}
