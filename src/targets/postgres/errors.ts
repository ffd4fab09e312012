import { StetError, type StetErrorCode, type StetErrorOptions } from '../../errors.ts'

/**
 * What each answer of the database means for a run, by SQLSTATE or its class (the first two characters). The longest
 * match counts. Retryable (exit 75) is only what a second attempt can cure; nothing is ever repeated inside a run.
 */
const CODE_BY_SQLSTATE: Readonly<Record<string, StetErrorCode>> = {
  // The connection is gone, refused, or the server is going down or full: nothing of ours was committed.
  '08': 'STET_CONNECTION',
  '53': 'STET_CONNECTION',
  '57P': 'STET_CONNECTION',
  '25P03': 'STET_CONNECTION', // idle_in_transaction_session_timeout
  '25P04': 'STET_CONNECTION', // transaction_timeout
  '57014': 'STET_CONNECTION', // cancelled by somebody else, such as an administrator
  // Another transaction was preferred.
  '40': 'STET_SERIALIZATION',
  '55P03': 'STET_LOCK_TIMEOUT',
  // The user may not do it; 25006 is a standby or a read-only default.
  '28': 'STET_PRIVILEGE',
  '42501': 'STET_PRIVILEGE',
  '25006': 'STET_PRIVILEGE',
  // Named in the pipeline, not there.
  '3D000': 'STET_CONFIG',
  '3F000': 'STET_CONFIG',
  // The table refuses a row: constraints, domains, values out of range, a view's check option.
  '22': 'STET_CONSTRAINT',
  '23': 'STET_CONSTRAINT',
  '44': 'STET_CONSTRAINT',
  // A limit of PostgreSQL's: a row larger than a page, a key too long for an index, more columns than a table has.
  '54': 'STET_CONSTRAINT',
  // The table is in no state to be written: it is published, and no index of it names a row for subscribers.
  '55000': 'STET_CONFIG',
  // A trigger or function of the user raised it.
  P0: 'STET_TRIGGER',
  '09': 'STET_TRIGGER',
  '27': 'STET_TRIGGER', // a BEFORE trigger has changed the row that the statement changes
}

/** What the driver's error carries; read field by field, because its class comes with the optional package. */
interface ServerError {
  readonly message: string
  readonly code?: unknown
  readonly detail?: unknown
  readonly hint?: unknown
  readonly constraint?: unknown
  readonly table?: unknown
  readonly column?: unknown
  readonly where?: unknown
}

/** The SQLSTATE of an error that the server sent, or null when the error is the connection's or our own. */
export function sqlstateOf(error: unknown): string | null {
  const code = (error as Partial<ServerError> | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in (error as object)
    ? code
    : null
}

/** Whether the server may or may not have acted on what it was sent last. */
export function isConnectionLoss(error: unknown): boolean {
  const sqlstate = sqlstateOf(error)
  if (sqlstate !== null) return codeOf(sqlstate) === 'STET_CONNECTION' && sqlstate !== '57014'
  return !(error instanceof StetError) || error.code === 'STET_CONNECTION'
}

/**
 * A driver's error as one of Stet's.
 *
 * @param action What was being done, as in `Cannot ${action}`.
 */
export function describeError(error: unknown, action: string): StetError {
  if (error instanceof StetError) return error
  const sqlstate = sqlstateOf(error)
  const server = error as ServerError
  if (sqlstate === null) {
    // The local engine fails in the middle of a copy as well; that is no reason to try again.
    const code = isSocketError(error) ? 'STET_CONNECTION' : 'STET_INTERNAL'
    return new StetError(code, `Cannot ${action}: ${messageOf(error)}`, {
      ...(isRefusal(error) ? { hint: 'Is PostgreSQL running there? Look at host and port of the url' } : {}),
      cause: error,
    })
  }
  const code = codeOf(sqlstate)
  const facts = [server.message, server.detail].filter((part) => typeof part === 'string' && part !== '')
  return new StetError(code, `Cannot ${action}: ${facts.join('. ')}`, {
    ...hintOf(code, server),
    details: { sqlstate, ...namedParts(server) },
    cause: error,
  })
}

/** Nobody listens at the address, or there is no such address. */
function isRefusal(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isRefusal)
  const { code } = error as { readonly code?: unknown }
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND'
}

/** Node's own errors of sockets and names have a `code`; those of the driver only a sentence. */
function isSocketError(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isSocketError)
  if (!(error instanceof Error)) return false
  const { code } = error as { readonly code?: unknown }
  return (
    (typeof code === 'string' && /^E[A-Z_]+$/.test(code) && 'syscall' in error) ||
    /^(Connection terminated|timeout expired|Client (was closed|has encountered a connection error)|This socket has been ended|write after end)/i.test(
      error.message,
    )
  )
}

function codeOf(sqlstate: string): StetErrorCode {
  for (let length = 5; length >= 2; length--) {
    const code = CODE_BY_SQLSTATE[sqlstate.slice(0, length)]
    if (code !== undefined) return code
  }
  return 'STET_INTERNAL'
}

const LIMIT =
  'Nothing was written. All values of a row together have to fit into a page of 8 kB (long texts are kept beside it), and those of a key into a third of one: split the table, or take a shorter key'

const HINT_BY_SQLSTATE: Readonly<Record<string, string>> = {
  '25006': 'The database only reads: it is a standby, or default_transaction_read_only is on',
  '28000': 'Look at the user in the url (or PGUSER), and at what pg_hba.conf lets it do',
  '28P01': 'Look at user and password: in the url, PGUSER and PGPASSWORD, or ~/.pgpass',
  '3D000': 'Look at the name at the end of the url (or PGDATABASE), or make it once: create database',
  '42501': 'Ask its owner for the right; docs and the README of the target list what a run needs',
  '54000': LIMIT,
  '54011': LIMIT,
}

function hintOf(code: StetErrorCode, server: ServerError): Pick<StetErrorOptions, 'hint'> {
  const hint = HINT_BY_SQLSTATE[sqlstateOf(server) ?? '']
  if (hint !== undefined) return { hint }
  if (code === 'STET_CONSTRAINT' && typeof server.constraint === 'string') {
    return {
      hint: `Nothing was written. Correct the row at its source, or look at constraint "${server.constraint}"`,
    }
  }
  if (code === 'STET_TRIGGER' && typeof server.where === 'string') {
    return { hint: `Raised in ${server.where.split('\n')[0]}` }
  }
  if (code === 'STET_LOCK_TIMEOUT') return { hint: 'Another transaction holds the table; run again later' }
  return typeof server.hint === 'string' ? { hint: server.hint } : {}
}

function namedParts(server: ServerError): Record<string, string> {
  const parts: Record<string, string> = {}
  for (const name of ['constraint', 'table', 'column'] as const) {
    const value = server[name]
    if (typeof value === 'string') parts[name] = value
  }
  return parts
}

/** A refused connection comes as an AggregateError without a message, one error for each address. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(messageOf).join('; ')
  }
  return error instanceof Error ? error.message : String(error)
}
