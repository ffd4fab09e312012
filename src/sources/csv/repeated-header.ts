import { quoteLiteral } from '../../local/quote.ts'
import { splitFields } from './fields.ts'
import type { RecordShape } from './records.ts'

const BYTE_ORDER_MARK = '\ufeff'

/**
 * Whether a record of data says the names of all columns: files were joined with their headers, or names were listed for a
 * file that has a header. As a row it would be text like any other, and make every column text on a first load.
 */
export interface RepeatedHeader {
  /** Whether a row is none, over columns `f0`, `f1`, … of the reader. */
  readonly notSql: string
  /** The same of a record's bytes. */
  is(record: Buffer): boolean
}

export function repeatedHeader(
  names: readonly string[],
  shape: RecordShape,
  nullTexts: readonly string[],
): RepeatedHeader {
  // Each of the joined files may have had a mark of its own.
  const spellings = ([name = ''] = names) => [name, BYTE_ORDER_MARK + name]
  const [, ...others] = names.map((name, i) => `f${i} is distinct from ${quoteLiteral(name)}`)
  const first = `coalesce(f0 not in (${spellings().map(quoteLiteral).join(', ')}), true)`
  const needle = Buffer.from(unquotable(names[0] ?? '', shape))
  return {
    notSql: `(${[first, ...others].join(' or ')})`,
    is: (record) => {
      // Nearly no record holds it, and taking one apart is the dearer look.
      if (!record.includes(needle)) return false
      const fields = splitFields(record, shape)
      const says = ({ text, quoted }: (typeof fields)[number], name: string | undefined) =>
        text === name && (quoted || !nullTexts.includes(text))
      return (
        fields.every((field, i) =>
          i === 0
            ? spellings().some((name) => says(field, name))
            : i < names.length
              ? says(field, names[i])
              : field.text === '' && !field.quoted,
        ) && fields.length >= names.length
      )
    },
  }
}

/** A piece of the name that stands in every spelling of it: without what quotes would have to be put before. */
function unquotable(name: string, { quote, quoteEscape }: RecordShape): string {
  const marks = [quote, quoteEscape].filter((mark) => mark !== null).map((mark) => String.fromCharCode(mark))
  return [...name].some((character) => marks.includes(character)) ? '' : name
}
