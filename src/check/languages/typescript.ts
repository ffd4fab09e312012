import { collectFacts, type Dialect } from './collect.ts'
import type { HostFacts } from './host.ts'
import { decodeEscapes } from './mapped-text.ts'
import { child, parseTree, type SyntaxNode } from './tree.ts'

const TYPESCRIPT: Dialect = {
  language: 'typescript',
  functions: [
    ...['function_declaration', 'function_expression', 'arrow_function', 'method_definition'],
    ...['generator_function_declaration', 'generator_function'],
  ],
  calls: ['call_expression', 'new_expression'],
  loops: ['for_statement', 'for_in_statement', 'while_statement', 'do_statement'],
  members: ['member_expression'],
  strings: ['string', 'template_string'],
  comments: ['comment'],
  isConcatenation(node, source) {
    if (node.type !== 'binary_expression') return false
    const left = child(node, 'left')
    const right = child(node, 'right')
    if (left === undefined || right === undefined) return false
    const operator = source(node).slice(left.end - node.start, right.start - node.start)
    return operator.includes('+') && (holdsString(left) || holdsString(right))
  },
  appendString(node, text, into) {
    const quote = 1
    let at = node.start + quote
    for (const part of node.children) {
      if (part.type !== 'template_substitution') continue
      into.literal(decodeEscapes(text.slice(at, part.start)), at)
      into.hole(text.slice(part.start + 2, part.end - 1), part.start)
      at = part.end
    }
    into.literal(decodeEscapes(text.slice(at, node.end - quote)), at)
  },
  functionName(node, source) {
    const name = child(node, 'name')
    if (name !== undefined) return source(name)
    const holder = node.parent
    const given =
      holder?.type === 'variable_declarator' || holder?.type === 'public_field_definition'
        ? child(holder, 'name')
        : holder?.type === 'pair'
          ? child(holder, 'key')
          : holder?.type === 'assignment_expression'
            ? child(holder, 'left')
            : undefined
    return given === undefined ? '' : source(given)
  },
  decorators(node, source) {
    const siblings = node.parent?.children ?? []
    const index = siblings.indexOf(node)
    const found: string[] = []
    for (let at = index - 1; at >= 0 && siblings[at]?.type === 'decorator'; at -= 1) {
      const decorator = siblings[at]
      if (decorator !== undefined) found.unshift(source(decorator))
    }
    return found.join(' ')
  },
  isModuleString: (node) => node.parent?.type === 'import_statement' || node.parent?.type === 'literal_type',
}

function holdsString(node: SyntaxNode): boolean {
  if (node.type === 'string' || node.type === 'template_string') return true
  return (
    (node.type === 'binary_expression' || node.type === 'parenthesized_expression') &&
    node.children.some((part) => holdsString(part))
  )
}

export async function readTypeScript(path: string, text: string): Promise<HostFacts> {
  const grammar = /\.[cm]?ts$/.test(path) ? 'typescript' : 'tsx'
  return collectFacts(await parseTree(grammar, text), text, TYPESCRIPT)
}
