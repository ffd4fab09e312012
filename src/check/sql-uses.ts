/** Statements with where they stand and how they are run; the bodies of routines count as statements of their own. */
import type { Context } from './context.ts'
import type { SqlUse } from './facts.ts'
import type { HostCall, HostFunction, HostText } from './languages/host.ts'
import type { MappedText } from './languages/mapped-text.ts'
import type { ShellCommand } from './languages/shell.ts'
import { lexSql } from './sql/lexer.ts'
import { splitStatements } from './sql/split.ts'
import type { Statement } from './sql/statement.ts'

/** How a text begins that is SQL. */
export const SQL_START: RegExp =
  /^\s*(?:(?:--[^\n]*\n|\/\*[\s\S]*?\*\/|⟦[^⟧]*⟧)\s*)*(?:insert\s+(?:\w+\s+){0,3}[\w."`⟦[{$]|delete\s+from\b|merge\s+(?:into\b)?|update\s+[\s\S]{1,120}?\bset\b|truncate\s+(?:table\s+)?[\w."`⟦{$]|copy\s+(?:into\s+)?[\w."`⟦{$][\s\S]*\bfrom\b|replace\s+into\b|create\s+[\w\s]{0,40}(?:table|index|view|trigger|function|procedure|stage|sequence|schema)\b|alter\s+table\b|drop\s+(?:table|view)\b|begin\s*(?:;|transaction\b|work\b|$)|start\s+transaction\b|commit\s*(?:;|$)|rollback\s*(?:;|$)|load\s+data\b|with\s+[\w"⟦`]+\s*(?:\([^)]*\)\s*)?as\s*(?:(?:not\s+)?materialized\s*)?\(|select\b[\s\S]*\bfrom\b|upsert\s+into\b|declare\b[\s\S]*;)/i

interface UseOptions {
  readonly origin: SqlUse['origin']
  readonly context: Context
  readonly text?: HostText
  readonly fn?: HostFunction | undefined
  readonly call?: HostCall | undefined
  readonly command?: ShellCommand
  readonly transaction?: string | undefined
  readonly commitsAlone?: boolean
  readonly loop?: boolean
  readonly order?: number
}

export function usesOf(statements: readonly Statement[], mapped: MappedText, options: UseOptions): SqlUse[] {
  const uses: SqlUse[] = []
  for (const statement of statements) {
    const start = mapped.at(statement.start)
    uses.push({
      statement,
      mapped,
      origin: options.origin,
      start,
      end: mapped.at(Math.max(statement.start, statement.end - 1)) + 1,
      text: options.text,
      fn: options.fn,
      call: options.call,
      command: options.command,
      // Statements of one text run at one place, one after the other.
      order: (options.order ?? start) + statement.start / 1e7,
      transaction: options.transaction,
      commitsAlone: options.commitsAlone ?? false,
      loop: options.loop ?? false,
      context: options.context,
    })
    uses.push(...routineUses(statement, mapped, options))
  }
  return uses
}

/** The body of `create function ... as $$ ... $$` and `do $$ ... $$`, which is atomic with its caller. */
function routineUses(statement: Statement, mapped: MappedText, options: UseOptions): SqlUse[] {
  const isDo = statement.tokens[0]?.value === 'do'
  if (statement.kind !== 'create-routine' && !isDo) return []
  const uses: SqlUse[] = []
  for (const token of statement.tokens) {
    if (token.kind !== 'string' || !token.text.startsWith('$')) continue
    const offset = token.start + token.text.indexOf('$', 1) + 1
    const inner: MappedText = { text: token.value, at: (at) => mapped.at(offset + at) }
    const trigger = statement.tokens.some((one) => one.kind === 'word' && one.value === 'trigger')
    uses.push(
      ...usesOf(splitStatements(lexSql(token.value)), inner, {
        ...options,
        origin: 'routine',
        context: trigger ? 'request' : options.context,
        transaction: `routine ${mapped.at(token.start)}`,
        commitsAlone: false,
      }),
    )
  }
  return uses
}

/** Gives the statements between `BEGIN` and `COMMIT` one transaction. */
export function withExplicitTransactions(
  uses: readonly SqlUse[],
  sameSession: (left: SqlUse, right: SqlUse) => boolean,
): SqlUse[] {
  let open: SqlUse | undefined
  return uses.map((use) => {
    const { kind } = use.statement
    if (kind === 'begin') open = use
    if (open !== undefined && sameSession(open, use)) {
      const transaction = `begin ${open.start}`
      if (kind === 'commit' || kind === 'rollback') open = undefined
      return { ...use, transaction, commitsAlone: false }
    }
    return use
  })
}
