import { StetError } from '../errors.ts'
import { stemOf } from './formats.ts'

/** A table named after a file, and what of the file's name did not count. */
export interface TableName {
  readonly name: string
  /** `-2024-05-01` of `orders-2024-05-01.csv`; empty where the whole name counts. */
  readonly dropped: string
}

// What tells one delivery from the next: numbers, dates and times behind a separator, the word `part` before them, a
// browser's ` (1)`, and the wildcards of a pattern. `sp500` and `flights-3m` have none of these.
const DELIVERY_PART =
  /(?:(?:^|[-_. ]+)(?:part[-_. ]?)?(?:\d{1,14}(?:T\d{2,6}Z?)?|\(\d+\)|[*?]+|\[[^\]]*\]|\{[^}]*\}))+$/i

/**
 * The table that a load without `--table` goes to: the file's name in lower case, without folder, format and
 * compression, everything but letters and digits as `_`, and without a date or number at its end, so that
 * tomorrow's `orders-2024-05-02.csv` goes where today's went.
 *
 * @throws {StetError} `STET_USAGE` when the name gives none or several files give different ones.
 */
export function tableNameFor(files: readonly string[]): TableName {
  const [first = '-', ...others] = files
  const table = tableNameOf(first)
  for (const file of others) {
    const other = tableNameOf(file)
    if (other.name !== table.name) {
      throw new StetError(
        'STET_USAGE',
        `Cannot name one table after these files: "${first}" gives "${table.name}", "${file}" gives "${other.name}"`,
        { hint: 'Name the table: --table orders' },
      )
    }
  }
  return table
}

function tableNameOf(file: string): TableName {
  const stem = file === '-' ? '' : stemOf(file)
  const dropped = DELIVERY_PART.exec(stem)?.[0] ?? ''
  const kept = stem.slice(0, stem.length - dropped.length)
  const name = kept
    .normalize('NFC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}]+/gu, '_')
    .replaceAll(/^_+|_+$/g, '')
  // A pattern in the middle would make the table depend on which files are there today.
  if (name === '' || /[*?[\]{}]/.test(kept)) {
    const what = file === '-' ? 'standard input' : `"${file}"`
    throw new StetError('STET_USAGE', `Cannot name a table after ${what}`, {
      hint: 'Name the table: --table orders',
    })
  }
  return { name: /^\p{N}/u.test(name) ? `t_${name}` : name, dropped }
}
