/** `target/manifest.json`: what dbt made of configuration, properties and tests, macros and packages included. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface ModelProperties {
  readonly config: Record<string, unknown>
  readonly columns: ReadonlyMap<string, { notNull: boolean; unique: boolean }>
  readonly uniqueCombination: readonly (readonly string[])[]
}

/** Larger ones cost more time than all the rest of a run. */
const SIZE_LIMIT = 100_000_000

/** Models and snapshots by their path within the project; empty without a manifest, or with one that is broken. */
export function readManifest(root: string, folder: string): ReadonlyMap<string, ModelProperties> {
  const path = join(root, folder, 'target', 'manifest.json')
  if (!existsSync(path) || statSync(path).size > SIZE_LIMIT) return new Map()
  const nodes = Object.entries(record(field(parse(readFileSync(path, 'utf8')), 'nodes')))
  const found = new Map<string, Mutable>()
  const byId = new Map<string, Mutable>()
  for (const [id, node] of nodes) {
    if (!/^(?:model|snapshot)\./.test(id)) continue
    const model: Mutable = {
      config: record(field(node, 'config')),
      columns: new Map(),
      uniqueCombination: [],
    }
    for (const [column, definition] of Object.entries(record(field(node, 'columns')))) {
      const constraints = list(field(definition, 'constraints')).map((one) => String(field(one, 'type')))
      model.columns.set(column.toLowerCase(), {
        notNull: constraints.some((type) => type === 'not_null' || type === 'primary_key'),
        unique: constraints.some((type) => type === 'unique' || type === 'primary_key'),
      })
    }
    byId.set(id, model)
    found.set(String(field(node, 'original_file_path')).replaceAll('\\', '/'), model)
  }
  for (const [id, node] of nodes) {
    if (!id.startsWith('test.')) continue
    const model = byId.get(String(field(node, 'attached_node')))
    if (model !== undefined) addTest(model, record(field(node, 'test_metadata')))
  }
  return found
}

interface Mutable extends ModelProperties {
  columns: Map<string, { notNull: boolean; unique: boolean }>
  uniqueCombination: (readonly string[])[]
}

function addTest(model: Mutable, metadata: Readonly<Record<string, unknown>>): void {
  const options = record(metadata.kwargs)
  const name = String(metadata.name)
  const combination = list(options.combination_of_columns).map((one) => String(one).toLowerCase())
  if (combination.length > 0) model.uniqueCombination.push(combination)
  if (typeof options.column_name !== 'string') return
  const column = options.column_name.toLowerCase()
  const before = model.columns.get(column) ?? { notNull: false, unique: false }
  model.columns.set(column, {
    notNull: before.notNull || name === 'not_null',
    unique: before.unique || name === 'unique',
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A manifest that is being written, or none of dbt's.
    return undefined
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

function field(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
