import { collectFacts, type Dialect } from './collect.ts'
import type { HostFacts } from './host.ts'
import { decodeEscapes } from './mapped-text.ts'
import { child, parseTree, type SyntaxNode } from './tree.ts'

const PYTHON: Dialect = {
  language: 'python',
  functions: ['function_definition', 'lambda'],
  calls: ['call'],
  loops: ['for_statement', 'while_statement', 'list_comprehension', 'generator_expression'],
  members: ['attribute'],
  strings: ['string'],
  comments: ['comment'],
  isConcatenation(node, source) {
    if (node.type === 'concatenated_string') return true
    if (node.type !== 'binary_operator') return false
    const left = child(node, 'left')
    const right = child(node, 'right')
    if (left === undefined || right === undefined) return false
    const operator = source(node).slice(left.end - node.start, right.start - node.start)
    return operator.includes('+') && (holdsString(left) || holdsString(right))
  },
  appendString(node, text, into) {
    const opening = node.children.find((part) => part.type === 'string_start')
    const prefix = opening === undefined ? '' : text.slice(opening.start, opening.end).toLowerCase()
    const formatted = prefix.includes('f')
    for (const part of node.children) {
      if (part.type === 'interpolation') {
        into.hole(text.slice(part.start + 1, part.end - 1), part.start)
      } else if (part.type === 'string_content') {
        const raw = text.slice(part.start, part.end)
        const decoded = prefix.includes('r') ? raw : decodeEscapes(raw)
        into.literal(formatted ? halveBraces(decoded) : decoded, part.start)
      }
    }
  },
  functionName(node, source) {
    const name = child(node, 'name')
    return name === undefined ? '' : source(name)
  },
  decorators(node, source) {
    if (node.parent?.type !== 'decorated_definition') return ''
    return node.parent.children
      .filter((one) => one.type === 'decorator')
      .map((one) => source(one))
      .join(' ')
  },
  isModuleString: (node) => node.parent?.type === 'expression_statement',
}

function holdsString(node: SyntaxNode): boolean {
  if (node.type === 'string' || node.type === 'concatenated_string') return true
  if (node.type === 'parenthesized_expression' || node.type === 'binary_operator') {
    return node.children.some((part) => holdsString(part))
  }
  if (node.type === 'call') {
    const callee = child(node, 'function')
    const object = callee === undefined ? undefined : child(callee, 'object')
    return object?.type === 'string'
  }
  return false
}

/** `{{` of an f-string is one brace; spaces keep the length. */
function halveBraces(text: string): string {
  return text.replace(/\{\{+|\}\}+/g, (run) => {
    const half = Math.ceil(run.length / 2)
    return run.slice(0, half) + ' '.repeat(run.length - half)
  })
}

export async function readPython(text: string): Promise<HostFacts> {
  return collectFacts(await parseTree('python', text), text, PYTHON)
}
