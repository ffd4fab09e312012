import { isUtf8 } from 'node:buffer'
import { splitFields } from './fields.ts'
import type { Layout } from './layout.ts'

/** Why a record is no row, in words; null when nothing is wrong with it. */
export function whyRefused(
  record: Buffer,
  layout: Layout,
  names: readonly string[],
): { readonly column: string | null; readonly value: string | null; readonly reason: string } | null {
  const fields = splitFields(record, layout.shape)
  for (const [i, field] of fields.entries()) {
    const raw = record.subarray(field.start, field.end)
    const column = names[i] ?? null
    if (!layout.isUtf8 && !isUtf8(raw)) {
      const reason = "is not UTF-8; name the file's encoding, such as encoding: 'windows-1252'"
      return { column, value: raw.toString('utf8'), reason }
    }
    if (field.quoted && record.toString('latin1', field.closed, field.end).replace(/ +$/, '') !== '') {
      return { column, value: raw.toString('utf8'), reason: 'something follows the closing quote' }
    }
  }
  if (fields.length === names.length) return null
  const count = fields.length === 1 ? '1 field' : `${fields.length} fields`
  const wanted = layout.hasHeader ? `the header has ${names.length}` : `${names.length} columns are named`
  return { column: null, value: null, reason: `has ${count}, ${wanted}` }
}
