import { quoteLiteral } from '../local/quote.ts'
import { readSql } from '../local/typing.ts'
import type { Contract, ContractColumn } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import type { ShownRow } from '../model/remote.ts'
import type { SourcePart } from '../model/source.ts'

/** Where a row stands: its file, and the line, or the row's number where there are no lines. */
export interface Place {
  readonly file: string
  readonly line: number
}

/**
 * Where landed rows stand in the files that they came from, by reading the parts again; for errors, which may cost a scan.
 *
 * @param rows By the columns' names, as the local engine prints the values.
 * @returns one for each row; null where it is in no file, or its values cannot tell.
 */
export async function placesOf(
  local: LocalConnection,
  parts: readonly SourcePart[],
  contract: Contract,
  rows: readonly ShownRow[],
  normalizeKey: 'nfc' | undefined,
): Promise<readonly (Place | null)[]> {
  const places: (Place | null)[] = rows.map(() => null)
  // The target's own form of a text says nothing of how the file has it.
  const telling = contract.columns.filter((column) => !column.asText)
  if (!telling.some((column) => column.key)) return places
  const names = contract.columns.map(({ name }) => name)
  // Row numbers mean something only in the file's own order, which the landing gives up for speed.
  await local.run('set preserve_insertion_order = true')
  try {
    for (const part of parts) {
      if (part.file === null || !places.includes(null)) continue
      const select = (part.selectByOneThread ?? part.select)(names)
      const found = await local.rows(`
        select n, shown
          from (select n, unnest([${rows.map((row, index) => `case when ${isRow(telling, row, normalizeKey)} then ${index} end`).join(', ')}]) as shown
                  from (select row_number() over () as n, * from (${select})) as s)
         where shown is not null
        -- a file may have one row a million times, and no more of them are asked for
       qualify row_number() over (partition by shown order by n) <= ${rows.length}
         order by n`)
      const shownAt = new Map<number, number[]>()
      for (const { n, shown } of found) {
        const known = shownAt.get(Number(n)) ?? []
        known.push(Number(shown))
        shownAt.set(Number(n), known)
      }
      const numbers = [...shownAt.keys()]
      const lines = await part.locate(numbers)
      for (const [index, n] of numbers.entries()) {
        const line = lines[index]?.line ?? null
        // Of rows that look alike each takes the next line.
        const shown = shownAt.get(n)?.find((row) => places[row] === null)
        if (shown !== undefined && line !== null) places[shown] = { file: part.file.path, line }
      }
    }
  } finally {
    await local.run('set preserve_insertion_order = false')
  }
  return places
}

function isRow(columns: readonly ContractColumn[], row: ShownRow, normalizeKey: 'nfc' | undefined): string {
  return columns
    .map((column) => {
      const isNormalized = column.key && normalizeKey === 'nfc'
      const text = isNormalized ? `nfc_normalize(s.${column.id})` : `s.${column.id}`
      const value = row[column.name] ?? null
      return `(${readSql(column, text)})::varchar is not distinct from ${value === null ? 'null' : quoteLiteral(value)}`
    })
    .join(' and ')
}
