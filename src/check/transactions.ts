/** Which statements of a host function commit together. */
import type { HostCall, HostFacts } from './languages/host.ts'
import { child, childOfType, type SyntaxNode } from './languages/tree.ts'
import { oncePer } from './per-file.ts'

export interface Commit {
  /** Statements with the same id commit together; undefined: unknown, often the caller's. */
  readonly transaction: string | undefined
  readonly commitsAlone: boolean
}

const UNKNOWN: Commit = { transaction: undefined, commitsAlone: false }
const ALONE: Commit = { transaction: undefined, commitsAlone: true }

/** Calls whose callback is one transaction: `prisma.$transaction(...)`, `db.tx(t => ...)`, `sql.begin(...)`. */
const TRANSACTION_CALL =
  /(?:^|\.)(?:\$transaction|transaction|tx|withTransaction|inTransaction|runInTransaction|runTransaction|begin|transactional|with_transaction|in_transaction)$/
const AUTOCOMMIT =
  /autocommit\s*=\s*True|autocommit\s*\(\s*True|isolation_level\s*=\s*(?:None|['"]AUTOCOMMIT['"])/

const commitsBySetting = oncePer(({ text }: HostFacts): boolean => AUTOCOMMIT.test(text))

export function commitOf(call: HostCall, facts: HostFacts): Commit {
  return facts.language === 'python' ? pythonCommit(call, facts) : typescriptCommit(call, facts)
}

function pythonCommit(call: HostCall, facts: HostFacts): Commit {
  for (let at: SyntaxNode | undefined = call.node; at !== undefined; at = at.parent) {
    if (at.type === 'with_statement' && opensTransaction(at, facts))
      return { transaction: `with ${at.start}`, commitsAlone: false }
    if (at === call.fn?.node) {
      if (/@(?:\w+\.)*(?:atomic|transactional|commit_on_success)\b/.test(call.fn.decorators)) {
        return { transaction: `function ${at.start}`, commitsAlone: false }
      }
      break
    }
  }
  // An Airflow hook commits at the end of each `run`, and so does one call of a warehouse client.
  if (call.name === 'run' && /hook|redshift|postgres|snowflake|mysql/i.test(call.receiver)) return ALONE
  if (/Operator$|^BigQuery/.test(call.name)) return ALONE
  // SQLAlchemy 1: an engine takes a connection for each statement and commits it.
  if (/(?:^|[._])engine(?:\(\))?$/i.test(call.receiver) && call.name === 'execute') return ALONE
  if (
    /(?:^|_|\b)(?:bq|bigquery|athena|client)\w*$/i.test(call.receiver) &&
    /^(?:query|execute|run|query_and_wait)$/.test(call.name)
  )
    return ALONE
  if (commitsBySetting(facts) || call.named.has('autocommit')) return ALONE
  return byCommitCalls(call, facts, /(?:^|\.)commit$/)
}

/** `with conn:`, `with engine.begin()`, `with transaction.atomic()`, `with connect(...) as conn`. */
function opensTransaction(node: SyntaxNode, facts: HostFacts): boolean {
  const clause = childOfType(node, 'with_clause')
  if (clause === undefined) return false
  return clause.children.some((item) => {
    const value = facts.source(item)
    if (/\.begin(?:_nested)?\(|atomic|transaction\b/.test(value)) return true
    if (/^[\w.]*\b(?:conn|connection|db|cnx|con)\w*$/.test(value)) return true
    return /\b(?:psycopg2?|sqlite3|pg)\.connect\(/.test(value)
  })
}

/** Between two commits of one function lies one transaction, as the DB-API and SQLAlchemy have it. */
function byCommitCalls(call: HostCall, facts: HostFacts, pattern: RegExp): Commit {
  const fn = call.fn
  const commits = facts.calls.filter((one) => one.fn === fn && pattern.test(one.callee))
  if (commits.length === 0) return UNKNOWN
  const before = commits.filter((one) => one.start < call.start).length
  if (before === commits.length) return UNKNOWN
  return { transaction: `function ${fn?.node.start ?? 0} commit ${before}`, commitsAlone: false }
}

/** `BEGIN` and `COMMIT` sent as statements are seen by {@link explicitTransactions}, not here. */
function typescriptCommit(call: HostCall, facts: HostFacts): Commit {
  for (let at: SyntaxNode | undefined = call.node.parent; at !== undefined; at = at.parent) {
    if (at.type !== 'call_expression') continue
    const callee = child(at, 'function')
    const outer = facts.callOf(at)
    if (
      callee !== undefined &&
      outer !== undefined &&
      outer !== call &&
      TRANSACTION_CALL.test(outer.callee)
    ) {
      return { transaction: `callback ${at.start}`, commitsAlone: false }
    }
  }
  return ALONE
}
