/** A name as an SQL identifier, always quoted: `order` and `Order` stay what they are. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as an SQL literal of DuckDB, where backslashes have no meaning. For file names and constants only. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
