import { isUtf8 } from 'node:buffer'
import { StetError } from '../../errors.ts'
import { splitFields } from './fields.ts'
import type { RecordShape } from './records.ts'

/**
 * The names of a header record, in order. Names that differ only in case are two names.
 *
 * @throws {StetError} `STET_SOURCE` for what is no text, `STET_COLUMNS` for a column without a name or a name that
 * two columns share: matching by name could not tell which is meant.
 */
export function headerNames(record: Buffer, shape: RecordShape, file: string): readonly string[] {
  const details = { file }
  if (record.includes(0)) {
    throw new StetError('STET_SOURCE', `Cannot read "${file}": its header holds NUL bytes`, {
      hint: 'It may be UTF-16 without a byte order mark: name it: --encoding utf-16le or utf-16be (encoding in a pipeline)',
      details,
    })
  }
  if (!isUtf8(record)) {
    throw new StetError('STET_SOURCE', `Cannot read "${file}": its header is not UTF-8`, {
      hint: "Name the file's encoding: --encoding windows-1252 (encoding in a pipeline)",
      details,
    })
  }
  const fields = splitFields(record, shape)
  const names = fields.map(({ text }) => text)
  const nameless = names.findIndex((name) => name.trim() === '')
  if (nameless !== -1) {
    throw new StetError(
      'STET_COLUMNS',
      `Cannot read "${file}": column ${nameless + 1} of ${names.length} has no name in its header`,
      {
        hint: 'Name all columns, or list their names and leave the first line out: --header a,b --skip 1 (header and skip in a pipeline)',
        details,
      },
    )
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) {
    throw new StetError('STET_COLUMNS', `Cannot read "${file}": its header names column "${twice}" twice`, {
      hint: 'List other names and leave the first line out: --header a,b --skip 1 (header and skip in a pipeline)',
      details: { ...details, column: twice },
    })
  }
  return names
}
