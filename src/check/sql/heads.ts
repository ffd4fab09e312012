/** Words that open a statement which changes something. */
export const HEADS: ReadonlySet<string> = new Set([
  'insert',
  'delete',
  'update',
  'merge',
  'truncate',
  'drop',
  'alter',
  'create',
])
