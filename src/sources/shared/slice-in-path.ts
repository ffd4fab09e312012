import { StetError } from '../../errors.ts'
import type { Slice } from '../../model/slice.ts'

const PLACE = '{slice}'

/**
 * Puts the name of the run's slice in the place of `{slice}` in paths and patterns: `inbox/orders-{slice}.csv`.
 *
 * @throws {StetError} `STET_USAGE` when a path asks for a slice and the run has none; `STET_CONFIG` for a slice whose name
 * would lead to another folder or be taken for a pattern.
 */
export function withSlice(patterns: readonly string[], slice: Slice | undefined): readonly string[] {
  if (!patterns.some((pattern) => pattern.includes(PLACE))) return patterns
  if (slice === undefined) {
    throw new StetError(
      'STET_USAGE',
      `The files are named by the slice (${patterns.join(', ')}), and this run has none`,
      {
        hint: 'Where runs are of slices, name one: --slice 2026-08-07, or --at with a logical time; else name the files without {slice}',
      },
    )
  }
  if (/[\\/*?[\]{}()!\0]|^\.\.?$/.test(slice.name)) {
    throw new StetError(
      'STET_CONFIG',
      `The slice ${JSON.stringify(slice.name)} cannot be part of a file's name: it holds a character of paths or patterns`,
      { hint: 'Name the files without {slice} for this slice' },
    )
  }
  return patterns.map((pattern) => pattern.replaceAll(PLACE, () => slice.name))
}
