/** Definitions of tables that are no SQL: schemas and migrations of ORMs. */
import { readJavaScriptMigrations } from './javascript-migrations.ts'
import { readPrisma } from './prisma.ts'
import { readPythonModels } from './python-models.ts'
import type { DdlFact } from './table.ts'

const JAVASCRIPT_SIGN =
  /\bpgm\s*\.\s*\w+\(|\bschema\s*(?:\.\s*\w+\([^)]*\)\s*)*\.\s*(?:createTable|alterTable|table)/
const PYTHON_SIGN = /\bmodels\.Model\b|__tablename__|\bop\.create_|\bop\.add_column|\bTable\(\s*['"]/

/** Tables and changes that a file defines in the words of an ORM; none for any other file. */
export function readModels(path: string, text: string): DdlFact[] {
  if (path.endsWith('.prisma')) return readPrisma(path, text)
  if (path.endsWith('.py')) return PYTHON_SIGN.test(text) ? readPythonModels(path, text) : []
  return /\.[cm]?[jt]s$/.test(path) && JAVASCRIPT_SIGN.test(text) ? readJavaScriptMigrations(path, text) : []
}
