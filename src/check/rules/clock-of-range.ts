/** The clock that decides which rows a job of the host language reads, deletes or loads: a part of `run-clock`. */
import type { FileFacts, SqlUse } from '../facts.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { ancestor, descendants, type SyntaxNode } from '../languages/tree.ts'
import { clockBehind, type Trace } from './clock-trace.ts'

/** Jobs that are told which period they are about, or could be. */
const SCHEDULED =
  /\b(?:airflow|prefect|dagster|luigi|celery|kedro|mage_ai|apscheduler|aws-lambda|node-cron|bullmq|inngest)\b/
const HANDLED =
  /\bdef\s+(?:lambda_)?handler\s*\(|\bexports\.handler\s*=|\bexport\s+(?:const|async\s+function|function)\s+handler\b/
const SCHEDULED_PATH =
  /(?:^|\/)(?:dags?|jobs?|cron(?:jobs?)?|etl|elt|flows?|lambdas?|handlers?|pipelines?)\//i
/** Parameters of a request that say from when to when. */
const RANGE =
  /^(?:start|end|since|until|from|to|begin|date|day|after|before|period)$|(?:^|_)(?:start|end|from|since|until|date|day)(?:_?(?:date|time|at|ts))?$|^(?:start|end|from|to|min|max)_?(?:date|time|day|ts)$/i
/** Rows that are kept for some time: an end that moves is what is meant. */
const RETENTION =
  /retention|cutoff|cut_off|expire|expiry|older|threshold|cleanup|clean_up|purge|ttl|stale|keep/i
const IDENTITY = /^(?:_?id|key|pk|row_key|row_id|record_id|event_id|unique_id|hash_key|uid)$/
const DIGEST = /hash|md5|sha\d*|uuid[35]/i

/** The clock calls, each once. */
export function clocksOfRange(file: FileFacts): readonly SyntaxNode[] {
  const { host } = file
  if (host === undefined || file.context === 'test') return []
  if (!SCHEDULED.test(host.imports) && !HANDLED.test(host.text) && !SCHEDULED_PATH.test(file.path)) return []
  const found = new Map<number, SyntaxNode>()
  const add = (trace: Trace | undefined, call: HostCall | undefined): void => {
    if (trace === undefined || ['request', 'migration', 'seed', 'test'].includes(file.contextOf(call?.fn)))
      return
    if (trace.through.some((name) => RETENTION.test(name))) return
    // `if day is None: day = today`: the caller may say it.
    const branch = ancestor(trace.clock, 'if_statement')
    if (
      branch !== undefined &&
      branch.start > (call?.fn?.node.start ?? 0) &&
      /none|undefined|null|not\s|!/i.test(host.source(branch).slice(0, 80))
    )
      return
    found.set(trace.clock.start, trace.clock)
  }
  for (const use of file.sql) if (use.text !== undefined) add(ofStatement(use, host), use.call)
  for (const call of host.calls) {
    for (const value of requested(call, host)) add(clockBehind(value, host, call.fn, 3), call)
    for (const [name, value] of call.named)
      if (IDENTITY.test(name) && DIGEST.test(host.source(value).slice(0, 40)))
        add(clockBehind(value, host, call.fn, 3), call)
  }
  return [...found.values()]
}

/** A hole or a parameter behind `where`, in a statement that loads, replaces or reads a range. */
function ofStatement(use: SqlUse, host: HostFacts): Trace | undefined {
  const { statement, text, call } = use
  if (!['insert', 'merge', 'delete', 'select', 'update', 'create-table'].includes(statement.kind))
    return undefined
  const own = use.mapped.text.slice(statement.start, statement.end)
  const where = /\bwhere\b/i.exec(own)?.index
  if (where === undefined || (statement.kind === 'delete' && /<=?\s*\S+\s*$/.test(own))) return undefined
  const behind = own.slice(where)
  // Compared with a column; `where {now} = {now}` only makes the text another one.
  const compared = /[\w"`\])]\s*(?:[<>]=?|=|\bbetween(?:\s+\S+\s+and)?)\s*(?:\w+\s*\(?\s*)?['"]?⟦([^⟧]+)⟧/gi
  const holes = [...behind.matchAll(compared)].map(([, expression = '']) => expression.trim())
  for (const hole of holes) {
    const node = text === undefined ? undefined : interpolation(text.node, hole, host)
    const trace = node === undefined ? undefined : clockBehind(node, host, use.fn, 3)
    if (trace !== undefined && !RETENTION.test(hole)) return trace
  }
  const parameters = call?.args[1] ?? call?.named.get('parameters') ?? call?.named.get('params')
  if (parameters === undefined || !/%s|%\(|\?|:\w+|\$\d/.test(behind)) return undefined
  // Values of the row itself come before those of the condition; with only some behind `where` it is not told apart.
  return /\bset\b|\bvalues\b/i.test(own.slice(0, where)) || RETENTION.test(host.source(parameters))
    ? undefined
    : clockBehind(parameters, host, call?.fn, 3)
}

function interpolation(node: SyntaxNode, hole: string, host: HostFacts): SyntaxNode | undefined {
  for (const one of descendants(node))
    if (
      /^(?:interpolation|template_substitution)$/.test(one.type) &&
      host
        .source(one)
        .replace(/^\$?\{|\}$/g, '')
        .trim() === hole
    )
      return one
  return undefined
}

/** What a request is told about its period: `params={"start": start}`, `?from=${start}`. */
function requested(call: HostCall, host: HostFacts): SyntaxNode[] {
  if (
    !/^(?:get|post|request|fetch|got|axios)$/.test(call.name) ||
    /environ|cache|config|headers|map|dict/i.test(call.receiver)
  )
    return []
  const given = call.named.get('params') ?? call.named.get('json') ?? call.named.get('data')
  const object =
    given?.type === 'identifier'
      ? host.assignments.filter((one) => one.name === host.source(given) && one.start < call.start).at(-1)
          ?.value
      : given
  const values =
    object === undefined
      ? []
      : [...host.entriesOf(object)].flatMap(([key, value]) => (RANGE.test(key) ? [value] : []))
  const [url] = call.args
  const written =
    url?.type === 'identifier'
      ? host.assignments
          .filter((one) => one.name === host.source(url) && one.fn === call.fn && one.start < call.start)
          .at(-1)?.value
      : url
  if (written === undefined || !/^[fr]?['"`]/.test(host.source(written))) return values
  for (const one of descendants(written)) {
    if (one.type !== 'interpolation' && one.type !== 'template_substitution') continue
    const before = host.text.slice(Math.max(written.start, one.start - 24), one.start)
    if (/(?:date|day|start|end|from|to|since|until|historical|period)[\w-]*[=/:]$/i.test(before))
      values.push(one)
  }
  return values
}
