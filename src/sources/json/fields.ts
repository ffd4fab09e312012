/** A place in a record: what is taken there, and what below it. */
export interface FieldNode {
  readonly key: string
  /** The key as it mostly stands in a file, so that it can be recognised without being read. */
  readonly quoted: string
  /** Which column takes the value; -1 for none. */
  column: number
  /** Declared places below; null where nothing below is asked for. */
  children: Map<string, FieldNode> | null
  /** The last record that had it. */
  record: number
}

/** The fields of a file's records: declared ones, and others as they turn up. */
export interface FieldSet {
  readonly root: FieldNode
  /** Names of columns, by position. */
  readonly names: readonly string[]
  /** A place for a top-level key that was not known before. */
  discover(key: string): FieldNode
}

/**
 * @param paths Where declared columns are found: `{ updated: 'properties.updated' }`. A top-level key of that very name,
 * dots included, is found as well.
 * @param addColumn Called for each column, in order.
 */
export function createFieldSet(paths: ReadonlyMap<string, string>, addColumn: () => void): FieldSet {
  const root = node('')
  const children = new Map<string, FieldNode>()
  root.children = children
  const names: string[] = []
  const add = (name: string) => {
    addColumn()
    return names.push(name) - 1
  }
  for (const [name, path] of paths) {
    const column = add(name)
    childOf(root, path).column = column
    const keys = path.split('.')
    if (keys.length > 1) keys.reduce((parent, key) => childOf(parent, key), root).column = column
  }
  return {
    root,
    names,
    discover(key) {
      const found = node(key)
      // A name that a declared path bears is taken.
      if (!paths.has(key)) found.column = add(key)
      children.set(key, found)
      return found
    },
  }
}

function node(key: string): FieldNode {
  return { key, quoted: JSON.stringify(key), column: -1, children: null, record: 0 }
}

function childOf(parent: FieldNode, key: string): FieldNode {
  parent.children ??= new Map()
  const known = parent.children.get(key)
  if (known !== undefined) return known
  const made = node(key)
  parent.children.set(key, made)
  return made
}
