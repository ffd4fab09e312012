import type { Assignment } from './statement.ts'
import { columnOf, insideBracket, isSymbol, splitByComma, type Tokens, tokenAt } from './tokens.ts'

/** `a = x, (b, c) = (y, z), t.d = w`. */
export function readAssignments(tokens: Tokens): Assignment[] {
  const found: Assignment[] = []
  for (const part of splitByComma(tokens)) {
    const equals = part.findIndex(
      (token) =>
        token.kind === 'symbol' && (token.value === '=' || token.value === ':=' || token.value === '+='),
    )
    if (equals <= 0) continue
    const left = part.slice(0, equals)
    const start = tokenAt(part, 0).start
    if (isSymbol(left, 0, '(')) {
      const columns = splitByComma(insideBracket(left, 0)).map((one) => columnOf(one) ?? '')
      const values = isSymbol(part, equals + 1, '(') ? splitByComma(insideBracket(part, equals + 1)) : []
      columns.forEach((column, index) => {
        found.push({ column, value: values[index] ?? part.slice(equals + 1), start })
      })
      continue
    }
    const column = columnOf(left)
    if (column === undefined) continue
    // `n += 1` of Transact-SQL reads as `n = n + 1`.
    const value =
      tokenAt(part, equals).value === '+=' ? [...left, ...part.slice(equals)] : part.slice(equals + 1)
    found.push({ column, value, start })
  }
  return found
}
