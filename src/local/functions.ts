import { BOOLEAN, DuckDBScalarFunction, type DuckDBType, VARCHAR } from '@duckdb/node-api'
import { formatColumnType, parseColumnType } from '../model/column-type.ts'
import type { ColumnType } from '../model/columns.ts'
import type { LocalConnection } from '../model/local.ts'
import { canonicalJson, jsonIdentity } from './canonical-json.ts'
import { quoteLiteral } from './quote.ts'
import { decimalIdentity, decimalOrder } from './typing/decimal.ts'
import { momentOrder } from './typing/moment.ts'
import { type Reading, readText } from './typing/reading.ts'

type OwnFunction =
  | 'read'
  | 'read_wide'
  | 'reason'
  | 'is_wide'
  | 'decimal'
  | 'decimal_order'
  | 'moment_order'
  | 'json'
  | 'json_identity'

/** Goes before every text: the driver takes a byte order mark off the beginning of what it hands over. */
const LEAD = '.'

/** SQL that calls one of Stet's own functions with a text, and with a column's type where the answer depends on it. */
export function callSql(name: OwnFunction, text: string, type?: ColumnType): string {
  const more = type === undefined ? '' : `, ${quoteLiteral(formatColumnType(type))}`
  return `stet_${name}('${LEAD}' || ${text}${more})`
}

/** Adds the functions of {@link callSql} to the engine that `local` is a connection of; all its connections have them. */
export function registerFunctions(local: LocalConnection): void {
  const functions = [
    ofTextAndType('read', VARCHAR, (reading) => ('text' in reading && !reading.wide ? reading.text : null)),
    ofTextAndType('read_wide', VARCHAR, (reading) => ('text' in reading ? reading.text : null)),
    ofTextAndType('reason', VARCHAR, reasonOf),
    ofTextAndType('is_wide', BOOLEAN, (reading) => 'text' in reading && reading.wide),
    ofText('decimal', decimalIdentity),
    ofText('decimal_order', decimalOrder),
    ofText('moment_order', momentOrder),
    ofText('json', canonicalJson),
    ofText('json_identity', jsonIdentity),
  ]
  for (const scalar of functions) local.duckdb.registerScalarFunction(scalar)
}

function reasonOf(reading: Reading): string | null {
  if ('reason' in reading) return reading.reason
  return reading.wide ? 'is a value that only the target can hold, and is compared there as text' : null
}

function ofText(name: OwnFunction, answer: (text: string) => string | null): DuckDBScalarFunction {
  return DuckDBScalarFunction.create({
    name: `stet_${name}`,
    parameterTypes: [VARCHAR],
    returnType: VARCHAR,
    mainFunction: (_info, input, output) => {
      const texts = input.getColumnVector(0)
      const rows = input.rowCount
      for (let row = 0; row < rows; row++) {
        const text = texts.getItem(row)
        output.setItem(row, typeof text === 'string' ? answer(text.slice(LEAD.length)) : null)
      }
      output.flush()
    },
  })
}

/** The second argument is the column's type as {@link parseColumnType} reads it, the same constant in all rows. */
function ofTextAndType(
  name: OwnFunction,
  returnType: DuckDBType,
  answer: (reading: Reading) => string | boolean | null,
): DuckDBScalarFunction {
  return DuckDBScalarFunction.create({
    name: `stet_${name}`,
    parameterTypes: [VARCHAR, VARCHAR],
    returnType,
    mainFunction: (_info, input, output) => {
      const texts = input.getColumnVector(0)
      const type = parseColumnType(String(input.getColumnVector(1).getItem(0)))
      const rows = input.rowCount
      for (let row = 0; row < rows; row++) {
        const text = texts.getItem(row)
        output.setItem(row, typeof text === 'string' ? answer(readText(type, text.slice(LEAD.length))) : null)
      }
      output.flush()
    },
  })
}
