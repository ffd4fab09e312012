/**
 * Concrete syntax trees of Python, TypeScript and shell out of tree-sitter, copied once into plain objects: the walk
 * over the WebAssembly boundary is the dear part, so it is done once a file and only for files that matter.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Language, Parser, TreeCursor } from 'web-tree-sitter'

export type Grammar = 'python' | 'typescript' | 'tsx' | 'bash'

export interface SyntaxNode {
  readonly type: string
  /** The role in the parent (`left`, `function`), or an empty text. */
  readonly field: string
  readonly start: number
  readonly end: number
  /** Named children only. */
  readonly children: readonly SyntaxNode[]
  readonly parent: SyntaxNode | undefined
}

export interface SyntaxTree {
  readonly root: SyntaxNode
  /** Statements that the grammar could not read. */
  readonly errors: number
}

const require = createRequire(import.meta.url)
const parsers = new Map<Grammar, Promise<Parser>>()

/** The built package carries its grammars; a checkout reads them from the package they come from. */
function grammarPath(grammar: Grammar): string {
  const shipped = fileURLToPath(new URL(`../grammars/tree-sitter-${grammar}.wasm`, import.meta.url))
  if (existsSync(shipped)) return shipped
  return require.resolve(`@vscode/tree-sitter-wasm/wasm/tree-sitter-${grammar}.wasm`)
}

async function open(grammar: Grammar): Promise<Parser> {
  const { Parser, Language } = await import('web-tree-sitter')
  await Parser.init()
  const language: Language = await Language.load(readFileSync(grammarPath(grammar)))
  const parser = new Parser()
  parser.setLanguage(language)
  return parser
}

export async function parseTree(grammar: Grammar, text: string): Promise<SyntaxTree> {
  let parser = parsers.get(grammar)
  if (parser === undefined) {
    parser = open(grammar)
    parsers.set(grammar, parser)
  }
  try {
    return read(await parser, text)
  } catch (cause) {
    // What a crash leaves in the parser must not spoil the files behind it.
    parsers.delete(grammar)
    throw cause
  }
}

function read(parser: Parser, text: string): SyntaxTree {
  const tree = parser.parse(text)
  if (tree === null)
    return {
      root: { type: 'ERROR', field: '', start: 0, end: text.length, children: [], parent: undefined },
      errors: 1,
    }
  const cursor = tree.walk()
  try {
    const counted = { errors: 0, look: tree.rootNode.hasError }
    const root = copy(cursor, tree.language, counted)
    return { root, errors: counted.errors }
  } finally {
    cursor.delete()
    tree.delete()
  }
}

interface MutableNode extends SyntaxNode {
  children: MutableNode[]
}

/** Without recursion: generated code nests thousands of levels deep. */
function copy(
  cursor: TreeCursor,
  language: Language,
  counted: { errors: number; look: boolean },
): SyntaxNode {
  // Names by their number: every text that crosses the boundary costs more than all the rest of a node.
  const types = language.types
  const fields = language.fields
  const root = read(undefined)
  let current: MutableNode = root
  const ancestors: MutableNode[] = []
  // Unnamed nodes (`def`, `(`) are not copied, but their named children are never below them, so they can be skipped.
  let descend = true
  for (;;) {
    if (descend && cursor.gotoFirstChild()) {
      ancestors.push(current)
      descend = visit()
      continue
    }
    if (cursor.gotoNextSibling()) {
      descend = visit()
      continue
    }
    if (!cursor.gotoParent()) return root
    current = ancestors.pop() ?? root
    if (ancestors.length === 0 && current === root) return root
    descend = false
  }

  function visit(): boolean {
    if (!cursor.nodeIsNamed) return false
    const holder = ancestors.at(-1) ?? root
    const node = read(holder)
    if (counted.look && (node.type === 'ERROR' || cursor.nodeIsMissing)) counted.errors += 1
    holder.children.push(node)
    current = node
    return true
  }

  function read(parent: SyntaxNode | undefined): MutableNode {
    return {
      // The number of an ERROR node is none of the table.
      type: types[cursor.nodeTypeId] ?? cursor.nodeType,
      field: fields[cursor.currentFieldId] ?? '',
      start: cursor.startIndex,
      end: cursor.endIndex,
      children: [],
      parent,
    }
  }
}

export function child(node: SyntaxNode, field: string): SyntaxNode | undefined {
  return node.children.find((one) => one.field === field)
}

export function childOfType(node: SyntaxNode, ...types: readonly string[]): SyntaxNode | undefined {
  return node.children.find((one) => types.includes(one.type))
}

/** The nearest ancestor of one of these types. */
export function ancestor(node: SyntaxNode, ...types: readonly string[]): SyntaxNode | undefined {
  for (let at = node.parent; at !== undefined; at = at.parent) if (types.includes(at.type)) return at
  return undefined
}

/** The node and all below it, in the order of the text. */
export function* descendants(node: SyntaxNode): Generator<SyntaxNode> {
  const stack: SyntaxNode[] = [node]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    yield next
    for (let index = next.children.length - 1; index >= 0; index -= 1) {
      const one = next.children[index]
      if (one !== undefined) stack.push(one)
    }
  }
}
