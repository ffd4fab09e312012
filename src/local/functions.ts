import { BOOLEAN, DuckDBScalarFunction, type DuckDBType, VARCHAR } from '@duckdb/node-api'
import { parseColumnType } from '../model/column-type.ts'
import type { LocalConnection } from '../model/local.ts'
import { canonicalJson, jsonIdentity } from './canonical-json.ts'
import { decimalIdentity, decimalOrder } from './typing/decimal.ts'
import { momentOrder } from './typing/moment.ts'
import { type Reading, readText } from './typing/reading.ts'

/**
 * Adds Stet's own functions to the engine that `local` is a connection of: `stet_read`, `stet_reason` and the others that
 * the SQL of `typing.ts` and `content-hash.ts` calls. Once per engine; all its connections then have them.
 */
export function registerFunctions(local: LocalConnection): void {
  const functions = [
    ofTextAndType('stet_read', VARCHAR, (reading) =>
      'text' in reading && !reading.wide ? reading.text : null,
    ),
    ofTextAndType('stet_read_wide', VARCHAR, (reading) => ('text' in reading ? reading.text : null)),
    ofTextAndType('stet_reason', VARCHAR, reasonOf),
    ofTextAndType('stet_is_wide', BOOLEAN, (reading) => 'text' in reading && reading.wide),
    ofText('stet_decimal', decimalIdentity),
    ofText('stet_decimal_order', decimalOrder),
    ofText('stet_moment_order', momentOrder),
    ofText('stet_json', canonicalJson),
    ofText('stet_json_identity', jsonIdentity),
  ]
  for (const scalar of functions) local.duckdb.registerScalarFunction(scalar)
}

function reasonOf(reading: Reading): string | null {
  if ('reason' in reading) return reading.reason
  return reading.wide ? 'is a value that only the target can hold, and is compared there as text' : null
}

function ofText(name: string, answer: (text: string) => string | null): DuckDBScalarFunction {
  return DuckDBScalarFunction.create({
    name,
    parameterTypes: [VARCHAR],
    returnType: VARCHAR,
    mainFunction: (_info, input, output) => {
      const texts = input.getColumnVector(0)
      for (let row = 0; row < input.rowCount; row++) {
        const text = texts.getItem(row)
        output.setItem(row, typeof text === 'string' ? answer(text) : null)
      }
      output.flush()
    },
  })
}

/** The second argument is the column's type as {@link parseColumnType} reads it, the same constant in all rows. */
function ofTextAndType(
  name: string,
  returnType: DuckDBType,
  answer: (reading: Reading) => string | boolean | null,
): DuckDBScalarFunction {
  return DuckDBScalarFunction.create({
    name,
    parameterTypes: [VARCHAR, VARCHAR],
    returnType,
    mainFunction: (_info, input, output) => {
      const texts = input.getColumnVector(0)
      const type = parseColumnType(String(input.getColumnVector(1).getItem(0)))
      for (let row = 0; row < input.rowCount; row++) {
        const text = texts.getItem(row)
        output.setItem(row, typeof text === 'string' ? answer(readText(type, text)) : null)
      }
      output.flush()
    },
  })
}
