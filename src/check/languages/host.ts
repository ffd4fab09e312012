/** What the rules want to know of a Python, TypeScript or JavaScript file, in one form for all of them. */
import type { MappedText } from './mapped-text.ts'
import type { SyntaxNode } from './tree.ts'

export interface HostFunction {
  readonly name: string
  readonly node: SyntaxNode
  readonly parent: HostFunction | undefined
  readonly parameters: readonly string[]
  /** Decorators as written, joined. */
  readonly decorators: string
  readonly className: string | undefined
}

export interface HostCall {
  readonly node: SyntaxNode
  /** `hook.run`, `pool.query`; calls in the chain as `()`: `spark.read().load`. */
  readonly callee: string
  /** The last part of it. */
  readonly name: string
  readonly receiver: string
  readonly args: readonly SyntaxNode[]
  /** Keyword arguments; of TypeScript the properties of object literals among the arguments. */
  readonly named: ReadonlyMap<string, SyntaxNode>
  readonly fn: HostFunction | undefined
  readonly loop: boolean
  readonly start: number
  readonly end: number
}

/** A text with all that is joined to it by `+`, and where it goes. */
export interface HostText {
  readonly node: SyntaxNode
  readonly mapped: MappedText
  readonly fn: HostFunction | undefined
  /** The variable it is given to. */
  readonly variable: string | undefined
  /** The call it is an argument of, through wrappers such as `text(...)` and `.format(...)`. */
  readonly call: HostCall | undefined
  readonly argument: string | undefined
  readonly inList: boolean
  readonly start: number
  readonly end: number
}

export interface HostAssignment {
  readonly name: string
  readonly value: SyntaxNode
  readonly fn: HostFunction | undefined
  readonly start: number
  /** `+=` */
  readonly appends: boolean
}

/** `except` or `catch` around something. */
export interface HostCatch {
  readonly node: SyntaxNode
  readonly body: SyntaxNode
  readonly handler: SyntaxNode
  readonly fn: HostFunction | undefined
}

export interface HostFacts {
  readonly language: 'python' | 'typescript'
  readonly text: string
  readonly root: SyntaxNode
  readonly functions: readonly HostFunction[]
  readonly calls: readonly HostCall[]
  readonly texts: readonly HostText[]
  readonly assignments: readonly HostAssignment[]
  readonly catches: readonly HostCatch[]
  /** Names of imported modules, joined by spaces. */
  readonly imports: string
  readonly errors: number
  source(node: SyntaxNode): string
  /** The text of a string literal or concatenation; undefined for anything else. */
  textOf(node: SyntaxNode): string | undefined
  /** The entries of an object literal or dict. */
  entriesOf(node: SyntaxNode): ReadonlyMap<string, SyntaxNode>
  functionOf(node: SyntaxNode): HostFunction | undefined
  callOf(node: SyntaxNode): HostCall | undefined
}
