/** Commands, redirections and the SQL inside of a shell script. */
import { type MappedText, plainMapping, textBuilder } from './mapped-text.ts'
import { ancestor, child, childOfType, descendants, parseTree, type SyntaxNode } from './tree.ts'

export interface ShellCommand {
  readonly name: string
  /** Arguments without their quotes. */
  readonly args: readonly { readonly text: string; readonly mapped: MappedText; readonly node: SyntaxNode }[]
  readonly appendsTo: { readonly path: string; readonly node: SyntaxNode } | undefined
  readonly writesTo: { readonly path: string; readonly node: SyntaxNode } | undefined
  readonly heredoc: MappedText | undefined
  readonly loop: boolean
  readonly start: number
  readonly end: number
}

export interface ShellFacts {
  readonly commands: readonly ShellCommand[]
  /** `set -e`, also as part of `set -euo pipefail` or of the first line. */
  readonly stopsOnError: boolean
  readonly errors: number
}

export async function readShell(text: string): Promise<ShellFacts> {
  const { root, errors } = await parseTree('bash', text)
  const commands: ShellCommand[] = []
  for (const node of descendants(root)) {
    if (node.type === 'command') commands.push(readCommand(node, text))
  }
  const stopsOnError =
    /^#!.*\s-\w*e/.test(text) ||
    commands.some(
      (command) => command.name === 'set' && command.args.some((one) => /^-\w*e|^errexit$/.test(one.text)),
    )
  return { commands, stopsOnError, errors }
}

function readCommand(node: SyntaxNode, text: string): ShellCommand {
  const name = child(node, 'name')
  const holder = node.parent?.type === 'redirected_statement' ? node.parent : undefined
  const args = node.children
    .filter((part) => part.field === 'argument')
    .map((part) => {
      const mapped = argumentText(part, text)
      return { text: mapped.text, mapped, node: part }
    })
  let appendsTo: ShellCommand['appendsTo']
  let writesTo: ShellCommand['writesTo']
  let heredoc: MappedText | undefined
  for (const redirect of holder?.children ?? []) {
    if (redirect.type === 'heredoc_redirect') {
      const body = childOfType(redirect, 'heredoc_body')
      if (body !== undefined) heredoc = plainMapping(text.slice(body.start, body.end), body.start)
    }
    if (redirect.type !== 'file_redirect') continue
    const path = child(redirect, 'destination')
    if (path === undefined) continue
    const operator = text.slice(redirect.start, path.start)
    const target = { path: argumentText(path, text).text, node: redirect }
    if (/^1?>>/.test(operator)) appendsTo = target
    else if (/^1?>\s*$/.test(operator)) writesTo = target
  }
  return {
    name: name === undefined ? '' : (text.slice(name.start, name.end).split('/').at(-1) ?? ''),
    args,
    appendsTo,
    writesTo,
    heredoc,
    loop: ancestor(node, 'for_statement', 'while_statement', 'c_style_for_statement') !== undefined,
    start: node.start,
    end: holder?.end ?? node.end,
  }
}

/** Without the quotes; `\"` and `` \` `` lose their backslash. */
function argumentText(node: SyntaxNode, text: string): MappedText {
  const raw = text.slice(node.start, node.end)
  if (node.type === 'raw_string') return plainMapping(raw.slice(1, -1), node.start + 1)
  if (node.type === 'string') {
    const into = textBuilder()
    into.literal(
      raw.slice(1, -1).replace(/\\([\s\S])/g, (_, char: string) => (char === '\n' ? ' \n' : ` ${char}`)),
      node.start + 1,
    )
    return into.build()
  }
  return plainMapping(raw, node.start)
}
