import { StetError } from '../../errors.ts'

/** A table's name in parts, as the database stores it. */
export interface TableName {
  /** Null where the user named none; then the database's own default holds. */
  readonly schema: string | null
  readonly table: string
}

const PART = /(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{M}\p{N}_$]*))/u
const NAME = new RegExp(`^${PART.source}(?:\\.${PART.source})?$`, 'u')

/**
 * Reads a table's name as SQL does: `orders`, `sales.orders`, `"Sales"."Orders"`. Names without quotes are folded to
 * lower case, names in quotes stay as they are.
 *
 * @throws {StetError} `STET_CONFIG` when the text is not a name of one or two parts.
 * @example
 * parseTableName('sales.Orders') // { schema: 'sales', table: 'orders' }
 */
export function parseTableName(text: string): TableName {
  const match = NAME.exec(text.trim())
  if (match === null) {
    throw new StetError('STET_CONFIG', `Cannot read "${text}" as the name of a table`, {
      hint: 'Write orders, sales.orders, or "Sales"."Orders-2025" with quotes around unusual names',
    })
  }
  const [, quotedFirst, plainFirst, quotedSecond, plainSecond] = match
  const first = partOf(quotedFirst, plainFirst) ?? ''
  const second = partOf(quotedSecond, plainSecond)
  return second === undefined ? { schema: null, table: first } : { schema: first, table: second }
}

function partOf(quoted: string | undefined, plain: string | undefined): string | undefined {
  return quoted === undefined ? plain?.toLowerCase() : quoted.replaceAll('""', '"')
}

/**
 * Refuses a name that the target would cut or refuse later, in the middle of a run.
 *
 * @throws {StetError} `STET_CONFIG` naming the identifier and its length.
 */
export function requireIdentifierFits(name: string, bytesMax: number): void {
  const bytes = Buffer.byteLength(name, 'utf8')
  if (bytes <= bytesMax) return
  throw new StetError(
    'STET_CONFIG',
    `The name "${name}" has ${bytes} bytes; the target holds ${bytesMax} and would cut it`,
    { hint: 'Rename the column or table; a name that is cut silently could meet another one' },
  )
}
