/**
 * Splits a lexed text into statements. The recogniser behind it is deliberately shallow: the rules need the same few
 * facts in every dialect, and a statement that is not understood is kept as `other`, never an error.
 */
import { HEADS } from './heads.ts'
import type { LexedSql, Token } from './lexer.ts'
import { recognise } from './recognise.ts'
import type { Statement } from './statement.ts'
import { isWord } from './tokens.ts'

/** Words behind which a head is the part of a clause: `on delete cascade`, `then update`, `for update`. */
const CLAUSE_BEFORE_HEAD = new Set([
  ...['then', 'do', 'on', 'for', 'or', 'before', 'after', 'of', 'explain', 'as', 'instead', 'analyze'],
  ...[
    'grant',
    'revoke',
    'and',
    'not',
    'no',
    'key',
    'is',
    'in',
    'default',
    'using',
    'option',
    'with',
    'pre',
    'post',
  ],
])

const WITHOUT_SPLIT = new Set(['grant', 'revoke', 'comment'])

export function splitStatements({ tokens }: LexedSql): Statement[] {
  const statements: Statement[] = []
  let current: Token[] = []
  const finish = (): void => {
    if (current.length > 0) statements.push(...recognise(current))
    current = []
  }
  for (const token of tokens) {
    if (token.kind === 'symbol' && token.value === ';') {
      finish()
      continue
    }
    if (token.kind === 'meta') {
      finish()
      current = [token]
      finish()
      continue
    }
    if (startsAnother(current, token)) finish()
    current.push(token)
  }
  finish()
  return statements
}

/** Transact-SQL and many scripts leave the semicolon out; a head at the start of a line is then all there is. */
function startsAnother(current: readonly Token[], token: Token): boolean {
  const first = current[0]
  const before = current.at(-1)
  if (first === undefined || before === undefined || !token.startsLine || token.kind !== 'word') return false
  if (token.value === 'go' && current.length > 0) return true
  if (!HEADS.has(token.value) || token.depth > first.depth) return false
  if (WITHOUT_SPLIT.has(first.value)) return false
  if (before.kind === 'symbol' && before.value !== ')' && before.value !== ']') return false
  if (before.kind === 'word' && CLAUSE_BEFORE_HEAD.has(before.value)) return false
  // `if not exists (...) begin insert` belongs together up to its first statement.
  if (
    isWord(current, 0, 'if') &&
    !current.some((part) => part.depth === first.depth && HEADS.has(part.value))
  )
    return false
  // `with x as (...)` and `explain` lead up to their statement.
  if (isWord(current, 0, 'with'))
    return current.some((part) => part.depth === first.depth && HEADS.has(part.value))
  if (isWord(current, 0, 'create') && current.some((part) => part.value === 'trigger')) return false
  // The words of an `alter table` with several actions: `alter table t\n add a,\n drop b`.
  if (isWord(current, 0, 'alter')) {
    return !(token.value === 'drop' || token.value === 'alter') || isWord([token], 0, 'create')
  }
  return true
}
