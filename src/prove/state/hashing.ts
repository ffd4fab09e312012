import type { ColumnShape } from './tables.ts'

export function ident(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** 64 bits of a value's text; null stays null. Text, so that 1.0 and 1.00 are two values, as they are to a reader. */
export function hashOf(column: ColumnShape): string {
  return `hashtextextended(${textOf(column)}, 0)`
}

/** A value as text; of a column that varies only whether there is one. */
export function textOf({ name, varies = false }: Pick<ColumnShape, 'name' | 'varies'>): string {
  return varies ? `case when ${ident(name)} is not null then '(varies)' end` : `${ident(name)}::text`
}

/** One hash of several columns, or a constant for none. */
export function hashOfRow(hashes: readonly string[], seed = 0): string {
  return hashes.length === 0 ? '0::bigint' : `hash_record_extended(row(${hashes.join(', ')}), ${seed})`
}
