import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'

const folder = new URL('../../schemas/', import.meta.url)

/** What of a document does not fit its published schema; empty when all does. */
export function violations(schema: string, document: unknown): readonly string[] {
  const ajv = new Ajv2020({ allErrors: true, strictTypes: false })
  for (const name of readdirSync(folder)) {
    ajv.addSchema(JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as object)
  }
  const validate = ajv.getSchema(schema)
  if (validate === undefined) throw new Error(`there is no schema ${schema}`)
  return validate(document) === true
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`)
}
