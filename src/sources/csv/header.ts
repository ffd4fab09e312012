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
      hint: "It may be UTF-16 without a byte order mark: name it with encoding: 'utf-16le' or 'utf-16be'",
      details,
    })
  }
  if (!isUtf8(record)) {
    throw new StetError('STET_SOURCE', `Cannot read "${file}": its header is not UTF-8`, {
      hint: "Name the file's encoding, such as encoding: 'windows-1252'",
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
        hint: 'Name all columns, or list their names in header and leave the first line out with skip: 1',
        details,
      },
    )
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) {
    throw new StetError('STET_COLUMNS', `Cannot read "${file}": its header names column "${twice}" twice`, {
      hint: 'List other names in header and leave the first line out with skip: 1',
      details: { ...details, column: twice },
    })
  }
  return names
}
