import { StetError, type StetErrorCode } from '../../errors.ts'

/**
 * What an answer of the server means for a run, by SQLSTATE or its beginning; the longest match counts. Everything
 * else is the query's own fault.
 */
const CODE_BY_SQLSTATE: Readonly<Record<string, StetErrorCode>> = {
  // Gone, full, going down or just starting: the same query may work in a minute.
  '08': 'STET_CONNECTION',
  '53': 'STET_CONNECTION',
  '57P': 'STET_CONNECTION',
  // A standby cancels a query that its recovery stands in the way of.
  '40': 'STET_SERIALIZATION',
  '55P03': 'STET_LOCK_TIMEOUT',
  '28': 'STET_PRIVILEGE',
  '42501': 'STET_PRIVILEGE',
  '3D000': 'STET_CONFIG',
}

/** What the driver's error carries; its class comes with the optional package. */
interface ServerError {
  readonly message: string
  readonly code?: string
  readonly severity?: string
  readonly detail?: string
  readonly hint?: string
}

/**
 * A driver's error as one of Stet's. The messages of server and driver name users, hosts and databases, never a
 * password.
 *
 * @param action What was being done, as in `Cannot ${action}`.
 */
export function describeError(error: unknown, action: string): StetError {
  if (error instanceof StetError) return error
  const { message, code, severity, detail, hint } = error as ServerError
  // Only the server's own errors have a severity; system errors such as ECONNRESET have a code, too.
  if (severity === undefined || code === undefined) {
    return new StetError('STET_CONNECTION', `Cannot ${action}: ${messageOf(error)}`, { cause: error })
  }
  const facts = [message, detail].filter((part) => part !== undefined && part !== '')
  return new StetError(codeOf(code), `Cannot ${action}: ${facts.join('. ')}`, {
    ...(code === '42501' && message.includes('row-level security')
      ? { hint: 'Policies would hide rows of a table: let a user with BYPASSRLS read it' }
      : hint === undefined
        ? {}
        : { hint }),
    details: { sqlstate: code },
    cause: error,
  })
}

function codeOf(sqlstate: string): StetErrorCode {
  for (let length = 5; length >= 2; length--) {
    const code = CODE_BY_SQLSTATE[sqlstate.slice(0, length)]
    if (code !== undefined) return code
  }
  return 'STET_SOURCE'
}

/** A refused connection comes as an AggregateError without a message, with one error for each address. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
