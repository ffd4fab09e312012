/** Builds the facts of a Python or TypeScript file in one walk over its tree; what differs is in a {@link Dialect}. */
import type { HostAssignment, HostCall, HostCatch, HostFacts, HostFunction, HostText } from './host.ts'
import { type MappedText, type TextBuilder, textBuilder } from './mapped-text.ts'
import { child, childOfType, type SyntaxNode, type SyntaxTree } from './tree.ts'

/** The names under which one grammar has what both languages know. */
export interface Dialect {
  readonly language: 'python' | 'typescript'
  readonly functions: readonly string[]
  readonly calls: readonly string[]
  readonly loops: readonly string[]
  readonly members: readonly string[]
  readonly strings: readonly string[]
  readonly comments: readonly string[]
  isConcatenation(node: SyntaxNode, source: (node: SyntaxNode) => string): boolean
  appendString(node: SyntaxNode, text: string, into: TextBuilder): void
  functionName(node: SyntaxNode, source: (node: SyntaxNode) => string): string
  decorators(node: SyntaxNode, source: (node: SyntaxNode) => string): string
  isModuleString(node: SyntaxNode): boolean
}

/** Calls that only pass a text on. */
const WRAPPERS = new Set([
  'text',
  'SQL',
  'sql',
  'dedent',
  'textwrap.dedent',
  'sql.SQL',
  'sa.text',
  'sqlalchemy.text',
  'str',
  'Template',
  'cleandoc',
  'inspect.cleandoc',
  'raw',
  'sql.raw',
  'Prisma.raw',
  'Prisma.sql',
  'gql',
  'DDL',
])
const PASSING_METHODS = new Set([
  'format',
  'strip',
  'replace',
  'trim',
  'lower',
  'upper',
  'rstrip',
  'lstrip',
  'format_map',
  'substitute',
  'safe_substitute',
  'join',
  'encode',
  'as_string',
  'bindparams',
  'execution_options',
  'replaceAll',
])
const SQL_KEYS = new Set([
  'text',
  'sql',
  'query',
  'statement',
  'queryString',
  'hql',
  'sqlText',
  'Sql',
  'SQL',
  'values',
])

export function collectFacts(tree: SyntaxTree, text: string, dialect: Dialect): HostFacts {
  const functions: HostFunction[] = []
  const calls: HostCall[] = []
  const assignments: HostAssignment[] = []
  const catches: HostCatch[] = []
  const imports: string[] = []
  const stringNodes: { node: SyntaxNode; fn: HostFunction | undefined }[] = []
  const functionByNode = new Map<SyntaxNode, HostFunction>()
  const callByNode = new Map<SyntaxNode, HostCall>()
  const source = (node: SyntaxNode): string => text.slice(node.start, node.end)

  const stack: {
    node: SyntaxNode
    fn: HostFunction | undefined
    loop: boolean
    className: string | undefined
  }[] = [{ node: tree.root, fn: undefined, loop: false, className: undefined }]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node } = next
    let { fn, loop, className } = next
    if (dialect.functions.includes(node.type)) {
      fn = {
        name: dialect.functionName(node, source),
        node,
        parent: fn,
        parameters: parameterNames(node, source),
        decorators: dialect.decorators(node, source),
        className,
      }
      functions.push(fn)
      functionByNode.set(node, fn)
      loop = false
    } else if (dialect.loops.includes(node.type)) loop = true
    else if (node.type === 'class_definition' || node.type === 'class_declaration') {
      const name = child(node, 'name')
      className = name === undefined ? '' : source(name)
    } else if (dialect.calls.includes(node.type)) {
      const call = readCall(node, fn, loop, source, entriesOf)
      if (call !== undefined) {
        calls.push(call)
        callByNode.set(node, call)
        if (call.callee === 'require' && call.args[0] !== undefined) imports.push(source(call.args[0]))
      }
    } else if (node.type.startsWith('import')) {
      imports.push(source(node).replace(/[\s,;]+/g, ' '))
    } else if (node.type === 'try_statement') {
      const body = child(node, 'body')
      for (const handler of node.children) {
        if (body !== undefined && (handler.type === 'except_clause' || handler.type === 'catch_clause')) {
          catches.push({ node, body, handler, fn })
        }
      }
    } else readAssignment(node, fn, source, assignments)
    if (dialect.strings.includes(node.type)) {
      stringNodes.push({ node, fn })
      // Holes may hold calls and further texts.
    }
    for (let index = node.children.length - 1; index >= 0; index -= 1) {
      const one = node.children[index]
      if (one !== undefined && !dialect.comments.includes(one.type))
        stack.push({ node: one, fn, loop, className })
    }
  }
  calls.sort((left, right) => left.start - right.start || right.end - left.end)
  assignments.sort((left, right) => left.start - right.start)

  const built = new Set<SyntaxNode>()
  const texts: HostText[] = []
  for (const { node, fn } of stringNodes) {
    const whole = wholeText(node)
    if (built.has(whole)) continue
    built.add(whole)
    if (dialect.isModuleString(whole)) continue
    texts.push({ ...buildText(whole), fn })
  }
  texts.sort((left, right) => left.start - right.start)

  /** Climbs to the whole concatenation a literal is part of. */
  function wholeText(node: SyntaxNode): SyntaxNode {
    let whole = node
    for (let at = node; at.parent !== undefined; at = at.parent) {
      const { parent } = at
      if (dialect.isConcatenation(parent, source)) whole = parent
      else if (parent.type !== 'parenthesized_expression') break
    }
    return whole
  }

  function mappedText(node: SyntaxNode): MappedText {
    const into = textBuilder()
    append(node, into)
    return into.build()
  }

  function append(node: SyntaxNode, into: TextBuilder): void {
    if (dialect.strings.includes(node.type)) dialect.appendString(node, text, into)
    else if (dialect.isConcatenation(node, source) || node.type === 'parenthesized_expression') {
      for (const part of node.children) append(part, into)
    } else {
      const inner = stringBehindMethod(node)
      if (inner !== undefined) append(inner, into)
      else if (!dialect.comments.includes(node.type)) into.hole(source(node), node.start)
    }
  }

  /** The literal of `'...'.format(x)` or `text('...')` inside a concatenation. */
  function stringBehindMethod(node: SyntaxNode): SyntaxNode | undefined {
    if (!dialect.calls.includes(node.type)) return undefined
    const callee = child(node, 'function')
    const object = callee === undefined ? undefined : child(callee, 'object')
    if (object === undefined || !dialect.strings.includes(object.type)) return undefined
    return object
  }

  function buildText(node: SyntaxNode): Omit<HostText, 'fn'> {
    const goesTo = destination(node)
    return { node, mapped: mappedText(node), start: node.start, end: node.end, ...goesTo }
  }

  function destination(node: SyntaxNode): Pick<HostText, 'variable' | 'call' | 'argument' | 'inList'> {
    let argument: string | undefined
    let inList = false
    for (let at = node; at.parent !== undefined; at = at.parent) {
      const { parent } = at
      if (parent.type === 'keyword_argument' || parent.type === 'pair') {
        const key = child(parent, 'name') ?? child(parent, 'key')
        const name = key === undefined ? '' : source(key).replace(/^['"]|['"]$/g, '')
        if (parent.type === 'pair' && !SQL_KEYS.has(name)) argument ??= name
        else argument ??= name
        continue
      }
      if (dialect.members.includes(parent.type)) {
        const method = child(parent, 'attribute') ?? child(parent, 'property')
        if (method === undefined || !PASSING_METHODS.has(source(method))) break
        continue
      }
      if (dialect.calls.includes(parent.type)) {
        const call = callByNode.get(parent)
        if (call === undefined) break
        const passes = at.field === 'function' || WRAPPERS.has(call.callee) || WRAPPERS.has(call.name)
        if (passes && parent.parent !== undefined) {
          // A tagged template runs by itself: sql`insert ...` of postgres.js.
          if (call.callee === 'sql' && at.type === 'template_string' && !goesFurther(parent))
            return { variable: undefined, call, argument, inList }
          continue
        }
        return { variable: undefined, call, argument, inList }
      }
      if (parent.type === 'list' || parent.type === 'array' || parent.type === 'tuple') {
        inList = true
        continue
      }
      const target = assignmentTarget(parent, at)
      if (target !== undefined)
        return { variable: source(target).replace(/^this\./, 'self.'), call: undefined, argument, inList }
      if (
        [
          'argument_list',
          'arguments',
          'parenthesized_expression',
          'binary_operator',
          'await_expression',
          'await',
          'dictionary',
          'object',
          'conditional_expression',
          'ternary_expression',
          'as_expression',
          'template_literal',
          'expression_list',
          'boolean_operator',
        ].includes(parent.type)
      ) {
        continue
      }
      break
    }
    return { variable: undefined, call: undefined, argument, inList }
  }

  function goesFurther(node: SyntaxNode): boolean {
    const parent = node.parent
    return parent !== undefined && (parent.type === 'arguments' || parent.type === 'variable_declarator')
  }

  function textOf(node: SyntaxNode): string | undefined {
    if (dialect.strings.includes(node.type) || dialect.isConcatenation(node, source))
      return mappedText(node).text
    if (node.type === 'parenthesized_expression' && node.children[0] !== undefined)
      return textOf(node.children[0])
    const inner = stringBehindMethod(node)
    return inner === undefined ? undefined : mappedText(inner).text
  }

  function entriesOf(node: SyntaxNode): ReadonlyMap<string, SyntaxNode> {
    const entries = new Map<string, SyntaxNode>()
    for (const pair of node.children) {
      if (pair.type === 'shorthand_property_identifier') entries.set(source(pair), pair)
      if (pair.type !== 'pair') continue
      const key = child(pair, 'key')
      const value = child(pair, 'value')
      if (key !== undefined && value !== undefined)
        entries.set(source(key).replace(/^['"]|['"]$/g, ''), value)
    }
    return entries
  }

  return {
    language: dialect.language,
    text,
    root: tree.root,
    functions,
    calls,
    texts,
    assignments,
    catches,
    imports: imports.join(' '),
    errors: tree.errors,
    source,
    textOf,
    entriesOf,
    functionOf(node) {
      for (let at: SyntaxNode | undefined = node; at !== undefined; at = at.parent) {
        const found = functionByNode.get(at)
        if (found !== undefined) return found
      }
      return undefined
    },
    callOf: (node) => callByNode.get(node),
  }
}

function assignmentTarget(parent: SyntaxNode, at: SyntaxNode): SyntaxNode | undefined {
  if (
    parent.type === 'assignment' ||
    parent.type === 'assignment_expression' ||
    parent.type === 'augmented_assignment'
  ) {
    return at.field === 'right' ? child(parent, 'left') : undefined
  }
  if (parent.type === 'variable_declarator' || parent.type === 'public_field_definition')
    return child(parent, 'name')
  return undefined
}

function readAssignment(
  node: SyntaxNode,
  fn: HostFunction | undefined,
  source: (node: SyntaxNode) => string,
  into: HostAssignment[],
): void {
  const declares = node.type === 'variable_declarator' || node.type === 'public_field_definition'
  const appends = node.type === 'augmented_assignment' || node.type === 'augmented_assignment_expression'
  if (!declares && !appends && node.type !== 'assignment' && node.type !== 'assignment_expression') return
  const name = child(node, declares ? 'name' : 'left')
  const value = child(node, declares ? 'value' : 'right')
  if (name === undefined || value === undefined) return
  into.push({ name: source(name).replace(/^this\./, 'self.'), value, fn, start: node.start, appends })
}

function readCall(
  node: SyntaxNode,
  fn: HostFunction | undefined,
  loop: boolean,
  source: (node: SyntaxNode) => string,
  entriesOf: (node: SyntaxNode) => ReadonlyMap<string, SyntaxNode>,
): HostCall | undefined {
  const callee = child(node, 'function') ?? child(node, 'constructor')
  if (callee === undefined) return undefined
  const text = calleeText(callee, source)
  const dot = text.lastIndexOf('.')
  const list = child(node, 'arguments') ?? childOfType(node, 'argument_list', 'arguments', 'template_string')
  const args: SyntaxNode[] = []
  const named = new Map<string, SyntaxNode>()
  const children = list === undefined ? [] : list.type === 'template_string' ? [list] : list.children
  for (const argument of children) {
    if (argument.type === 'comment') continue
    if (argument.type === 'keyword_argument') {
      const name = child(argument, 'name')
      const value = child(argument, 'value')
      if (name !== undefined && value !== undefined) named.set(source(name), value)
      continue
    }
    args.push(argument)
    if (argument.type === 'object') for (const [key, value] of entriesOf(argument)) named.set(key, value)
  }
  return {
    node,
    callee: text,
    name: dot < 0 ? text : text.slice(dot + 1),
    receiver: dot < 0 ? '' : text.slice(0, dot),
    args,
    named,
    fn,
    loop,
    start: node.start,
    end: node.end,
  }
}

/** `a.b(c).d` as `a.b().d`, so that arguments do not hide the name. */
function calleeText(node: SyntaxNode, source: (node: SyntaxNode) => string): string {
  const object = child(node, 'object')
  const name = child(node, 'attribute') ?? child(node, 'property')
  if (object !== undefined && name !== undefined) return `${calleeText(object, source)}.${source(name)}`
  const called = child(node, 'function')
  if (called !== undefined) return `${calleeText(called, source)}()`
  if (
    node.type === 'await_expression' ||
    node.type === 'parenthesized_expression' ||
    node.type === 'non_null_expression' ||
    node.type === 'await'
  ) {
    const inner = node.children[0]
    return inner === undefined ? '' : calleeText(inner, source)
  }
  if (node.type === 'subscript' || node.type === 'subscript_expression') {
    const value = child(node, 'value') ?? child(node, 'object')
    return value === undefined ? '' : `${calleeText(value, source)}[]`
  }
  return source(node).slice(0, 80).replace(/\s+/g, ' ')
}

function parameterNames(node: SyntaxNode, source: (node: SyntaxNode) => string): string[] {
  const list = child(node, 'parameters')
  const single = child(node, 'parameter')
  if (list === undefined) return single === undefined ? [] : [source(single)]
  return list.children.map((parameter) => {
    const name = child(parameter, 'name') ?? child(parameter, 'pattern') ?? parameter.children[0] ?? parameter
    return source(name)
  })
}
