/** A name as an SQL identifier, always quoted: `order` and `Order` stay what they are. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as an SQL literal of DuckDB, where backslashes have no meaning. For file names and constants only. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/**
 * The path of one file for DuckDB's readers, which take `*`, `?` and `[` in it for a pattern and then read other files
 * beside it, or in its stead: `orders[1].csv` is what a browser calls a second download.
 */
export function quotePath(path: string): string {
  return quoteLiteral(path.replace(/[[?*]/g, '[$&]'))
}
