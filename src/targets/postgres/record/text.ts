/** jsonb cannot hold U+0000, nor half of a surrogate pair; a rejected value may hold either, and must not fail its own record. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'string' ? withoutNul(part) : part))
}

/** U+0000 becomes its picture, and half of a surrogate pair the replacement character. */
export function withoutNul(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8').replaceAll('\0', '\u2400')
}

/** A moment of the server as ISO 8601 in UTC with microseconds, in SQL. */
export function utcSql(expression: string): string {
  return `to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}
