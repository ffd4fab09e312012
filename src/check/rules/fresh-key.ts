import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostFacts } from '../languages/host.ts'
import { ancestor, child, descendants, type SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { HOST_CLOCK, HOST_RANDOM } from './clock.ts'

const KEY_NAMES =
  /^(?:idempotency[-_ ]?key|idempotencyKey|x-idempotency-key|Idempotency-Key|idempotency_token|idempotencyToken|MessageDeduplicationId|message_deduplication_id|messageDeduplicationId|deduplicationId|deduplication_id|dedup(?:e)?_?(?:id|key)|dedupe?(?:Id|Key)|insertId|insert_id|ClientRequestToken|clientRequestToken|client_request_token|uniqueRequestId|request_token)$/i

export const freshKey: Rule = {
  id: 'fresh-key',
  title: 'Derive an idempotency key from what it protects',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'The key is there so that the other side can tell a retry from a new request. Made anew for each attempt it is never the same, so the retry is carried out a second time.',
  advice:
    'Make the key of the source data (sha256 of order and line), or make it once, store it, and use the stored one.',
  safeForms: [
    { for: 'TypeScript', code: "headers: { 'Idempotency-Key': sha256(`charge|${order.no}|${order.line}`) }" },
    {
      for: 'Python',
      code: 'headers = {"Idempotency-Key": hashlib.sha256(f"charge|{order_no}".encode()).hexdigest()}',
    },
  ],
  prove:
    '`stet prove` drops the answer of the call and lets the job retry: the other side has two (DOUBLED).',
  limits: 'A key that comes through a parameter is not followed.',
  bad: [
    {
      why: 'a random key for each attempt',
      path: 'jobs/pay.ts',
      lines: [4],
      code: 'import { randomUUID } from "node:crypto";\nexport const charge = (o: { no: string }) => fetch("https://pay.example/c", {\n  method: "POST",\n  headers: { "Idempotency-Key": randomUUID() },\n});\n',
    },
    {
      why: 'through a variable',
      path: 'jobs/pay.py',
      lines: [4],
      code: 'import uuid\nimport requests\ndef charge(o):\n    key = str(uuid.uuid4())\n    requests.post("https://pay.example/c", headers={"Idempotency-Key": key})\n',
    },
    {
      why: 'the clock as dedupe id',
      path: 'jobs/send.ts',
      lines: [2],
      code: 'export const send = (sqs: any, body: string) =>\n  sqs.sendMessage({ MessageBody: body, MessageDeduplicationId: Date.now().toString() });\n',
    },
  ],
  fine: [
    {
      why: 'a trace id is random on purpose',
      path: 'jobs/pay.ts',
      lines: [],
      code: 'import { randomUUID } from "node:crypto";\nexport const f = (o: { no: string }) => fetch("https://pay.example/c", { method: "POST", headers: { "x-request-id": randomUUID(), "Idempotency-Key": keyOf(o.no) } });\n',
    },
    {
      why: 'version 5 is derived',
      path: 'jobs/pay.ts',
      lines: [],
      code: 'import { v5 as uuidv5 } from "uuid";\nexport const f = (no: string) => post({ idempotencyKey: uuidv5(no, NS) });\n',
    },
    {
      why: 'made once, stored, then used',
      path: 'jobs/pay.py',
      lines: [],
      code: 'import uuid\nimport requests\ndef charge(o, db):\n    if o.idempotency_key is None:\n        o.idempotency_key = str(uuid.uuid4())\n        o.save()\n    requests.post("https://pay.example/c", headers={"Idempotency-Key": o.idempotency_key})\n',
    },
    {
      why: 'a stored key has precedence',
      path: 'jobs/pay.ts',
      lines: [],
      code: 'import { randomUUID } from "node:crypto";\nexport const f = (o: { key?: string }) => post({ idempotencyKey: o.key ?? randomUUID() });\n',
    },
    {
      why: 'a hash of the data',
      path: 'jobs/pay.py',
      lines: [],
      code: 'import hashlib\nimport requests\ndef charge(o):\n    requests.post("https://x", headers={"Idempotency-Key": hashlib.sha256(o.no.encode()).hexdigest()})\n',
    },
    {
      why: 'a test',
      path: 'src/pay.test.ts',
      lines: [],
      code: 'import { randomUUID } from "node:crypto";\nit("x", () => post({ idempotencyKey: randomUUID() }));\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test') return
    for (const { key, value } of keyedValues(host)) {
      if (!KEY_NAMES.test(key)) continue
      const source = madeFresh(value, host)
      if (source === undefined || hasAlternative(source, host, value)) continue
      yield report(file, source)
    }
  },
}

function report(file: FileFacts, source: SyntaxNode): Report {
  const request = file.contextOf(file.host?.functionOf(source)) === 'request'
  return {
    start: source.start,
    end: source.end,
    message: 'The key is new for each attempt, so the other side cannot tell a retry from a second request',
    class: 'unsafe',
    severity: request ? 'warning' : 'error',
    confidence: request ? 'medium' : 'high',
  }
}

/** Entries of object literals and dicts, and keyword arguments. */
function* keyedValues(host: HostFacts): Iterable<{ key: string; value: SyntaxNode }> {
  for (const node of descendants(host.root)) {
    if (node.type !== 'pair' && node.type !== 'keyword_argument') continue
    const key = child(node, 'key') ?? child(node, 'name')
    const value = child(node, 'value')
    if (key !== undefined && value !== undefined)
      yield { key: host.source(key).replace(/^['"`]|['"`]$/g, ''), value }
  }
}

/** The random or clock call that the value is, directly or through one variable of the same function. */
function madeFresh(value: SyntaxNode, host: HostFacts): SyntaxNode | undefined {
  const direct = freshCallIn(value, host)
  if (direct !== undefined) return direct
  if (value.type !== 'identifier') return undefined
  const name = host.source(value)
  const fn = host.functionOf(value)
  const given = host.assignments.filter(
    (one) => one.name === name && one.fn === fn && one.start < value.start,
  )
  const only = given.length === 1 ? given[0] : undefined
  if (only === undefined) return undefined
  const fresh = freshCallIn(only.value, host)
  if (fresh === undefined) return undefined
  // Stored between making and use: a retry of the job can find it again.
  const between = host.text.slice(only.value.end, value.start)
  return /\b(?:insert|save|update|store|persist|setItem|put|upsert|create|commit|set)\w*\s*\(/i.test(between)
    ? undefined
    : fresh
}

function freshCallIn(value: SyntaxNode, host: HostFacts): SyntaxNode | undefined {
  for (const node of descendants(value)) {
    if (/function|lambda/.test(node.type)) return undefined
    const call = host.callOf(node)
    if (call === undefined) continue
    if (/uuid(?:v)?[35]|v5|sha|hash|md5|digest/i.test(call.callee)) return undefined
    // `uuid()` alone may be an alias of any version; with arguments it is a derived one.
    if (
      HOST_RANDOM.test(call.callee) &&
      (call.args.length === 0 || /randomBytes|token_|nanoid/.test(call.name))
    )
      return node
    if (HOST_CLOCK.test(call.callee) && !(call.callee === 'Date' && call.args.length > 0)) return node
  }
  return undefined
}

/** `stored ?? randomUUID()`, `key or uuid4()`, `useState(() => ...)`: one that exists is used. */
function hasAlternative(source: SyntaxNode, host: HostFacts, value: SyntaxNode): boolean {
  for (let at: SyntaxNode | undefined = source; at !== undefined; at = at.parent) {
    if (
      /^(?:binary_expression|boolean_operator|conditional_expression|ternary_expression|augmented_assignment_expression)$/.test(
        at.type,
      ) &&
      /\?\?|\|\||\bor\b|\bif\b|\?/.test(host.source(at))
    )
      return true
    if (at.type === 'call_expression' && /^use(?:State|Ref|Memo)/.test(host.source(at))) return true
    if (at === value || at.type === 'statement_block' || at.type === 'block') break
  }
  const branch = ancestor(source, 'if_statement')
  return (
    branch !== undefined &&
    /None|null|undefined|not |!/.test(host.source(branch).slice(0, 120)) &&
    branch.start > (host.functionOf(source)?.node.start ?? 0)
  )
}
