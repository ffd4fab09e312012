import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostAssignment, HostCall, HostFacts, HostFunction } from '../languages/host.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'
import { callsIn } from '../sequence.ts'
import { hasWords } from '../sql/tokens.ts'
import { COUNTS_ATTEMPTS } from './self-increment.ts'

/** Calls that read one stored row or document. */
const READS =
  /^(?:findUnique|findUniqueOrThrow|findFirst|findOne|findById|findByPk|findOneBy|oneOrNone|one|maybeSingle|single|getItem|get_item|find_one|fetchone|fetch_one|fetchrow|first|one_or_none|scalar_one_or_none)$/
const READS_BY_GET = /(?:objects|session|table|ddb|dynamo\w*|collection|repo\w*|redis|store)$/i
const WRITES =
  /^(?:update|updateOne|update_one|replace_one|replaceOne|findOneAndUpdate|put|putItem|put_item|PutCommand|save|upsert|set|update_item|execute|query|none|run|commit|bulk_update)$/
/** The same input is taken once, or a change in between is seen. */
const GUARDED = /already|processed|applied|dedup|idempot|seen|version|etag|if_match|ConditionExpression/i

export const readModifyWrite: Rule = {
  id: 'read-modify-write',
  title: 'Compute a stored number from its rows, not from its old value',
  anomaly: 'doubled',
  tier: 3,
  fix: 'advice',
  problem:
    'A stored total, mean or balance is read, moved on in code by what this run brings, and written back. A second run of the same input moves it on again, and two runs at a time lose one of the moves.',
  advice:
    'Recompute the number from the rows it is made of, or note in the same transaction which inputs have been applied.',
  safeForms: [
    {
      for: 'SQL',
      code: 'update shop as s\n   set revenue = t.revenue\n  from (select shop_no, sum(amount) as revenue from orders group by shop_no) as t\n where t.shop_no = s.shop_no;',
    },
    {
      for: 'a ledger',
      code: "await db.tx(async (t) => {\n  const fresh = await t.oneOrNone('insert into applied (batch) values ($1) on conflict do nothing returning batch', [batch])\n  if (fresh !== null) await t.none('update shop set revenue = revenue + $1 where no = $2', [amount, no])\n})",
    },
  ],
  prove: '`stet prove` runs the job twice for the same input: the number differs (DOUBLED).',
  limits:
    'The row has to be read and written in one function. Where a function only moves numbers on that it was handed, and who stores them is not seen, it is a hint.',
  bad: [
    {
      why: 'a total and a mean of a row that was read',
      path: 'src/jobs/terms.ts',
      lines: [5],
      code: "import { Worker } from 'bullmq'\nnew Worker('terms', async (job) => {\n  const existing = await prisma.term.findUnique({ where: { term: job.data.term } })\n  if (existing === null) return\n  const total = existing.total + job.data.count\n  await prisma.term.update({ where: { term: job.data.term }, data: { total, mean: total / existing.runs } })\n})\n",
    },
    {
      why: 'a balance between two statements',
      path: 'jobs/apply.py',
      lines: [5],
      code: 'import psycopg2\ndef apply(cur, no, amount):\n    cur.execute("SELECT balance FROM account WHERE no = %s", (no,))\n    row = cur.fetchone()\n    balance = row[0] + amount\n    cur.execute("UPDATE account SET balance = %s WHERE no = %s", (balance, no))\n',
    },
    {
      why: 'an object of an ORM is moved on',
      path: 'tasks/stock.py',
      lines: [5],
      code: 'from celery import shared_task\n@shared_task\ndef deliver(session, no, pieces):\n    item = session.query(Item).filter_by(no=no).first()\n    item.stock += pieces\n    session.commit()\n',
    },
    {
      why: 'numbers of a record that was handed in, stored by the caller',
      path: 'src/utils/mean.js',
      lines: [6],
      code: 'module.exports.advance = (points, stats) =>\n  points.map((point) => {\n    return step(point, stats[point.id])\n  })\nfunction step(point, stored) {\n  let count = stored.count; count += 1\n  return { id: point.id, count }\n}\n',
    },
  ],
  fine: [
    {
      why: 'a sum of what was handed in',
      path: 'src/utils/sum.js',
      lines: [],
      code: 'module.exports.sum = (points) => {\n  let total = 0\n  for (const point of points) total += point.value\n  return { total }\n}\n',
    },
    {
      why: 'the highest of both',
      path: 'src/jobs/terms.ts',
      lines: [],
      code: "import { Worker } from 'bullmq'\nnew Worker('terms', async (job) => {\n  const existing = await prisma.term.findUnique({ where: { term: job.data.term } })\n  await prisma.term.update({ where: { term: job.data.term }, data: { most: Math.max(existing.most, job.data.count) } })\n})\n",
    },
    {
      why: 'inputs are applied once',
      path: 'jobs/apply.py',
      lines: [],
      code: 'import psycopg2\ndef apply(cur, no, amount, batch):\n    if already_applied(cur, batch):\n        return\n    cur.execute("SELECT balance FROM account WHERE no = %s", (no,))\n    row = cur.fetchone()\n    balance = row[0] + amount\n    cur.execute("UPDATE account SET balance = %s WHERE no = %s", (balance, no))\n',
    },
    {
      why: 'the row is locked until the number is written',
      path: 'jobs/apply.py',
      lines: [],
      code: 'import psycopg2\ndef apply(cur, no, amount):\n    cur.execute("SELECT balance FROM account WHERE no = %s FOR UPDATE", (no,))\n    row = cur.fetchone()\n    balance = row[0] + amount\n    cur.execute("UPDATE account SET balance = %s WHERE no = %s", (balance, no))\n',
    },
    {
      why: 'computed and only reported',
      path: 'jobs/report.py',
      lines: [],
      code: 'import psycopg2\ndef report(cur):\n    cur.execute("SELECT net FROM account")\n    row = cur.fetchone()\n    gross = row[0] * 1.2\n    print(gross)\n    cur.execute("UPDATE job SET done = true")\n',
    },
    {
      why: 'the number of attempts',
      path: 'src/jobs/terms.ts',
      lines: [],
      code: "import { Worker } from 'bullmq'\nnew Worker('terms', async (job) => {\n  const existing = await prisma.task.findUnique({ where: { id: job.id } })\n  await prisma.task.update({ where: { id: job.id }, data: { attempts: existing.attempts + 1 } })\n})\n",
    },
    {
      why: 'a request handler does what the user asked for',
      path: 'src/api.ts',
      lines: [],
      code: "import express from 'express'\nexport const like = async (req, res) => {\n  const post = await prisma.post.findUnique({ where: { id: req.params.id } })\n  await prisma.post.update({ where: { id: post.id }, data: { likes: post.likes + 1 } })\n}\n",
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test' || file.context === 'migration') return
    const told = new Set<number>()
    for (const read of host.assignments) {
      if (read.fn === undefined || !readsRow(read, host)) continue
      const body = host.source(read.fn.node)
      if (GUARDED.test(body.replace(/'[^'\n]*'|"[^"\n]*"/g, '')) || locks(file, read.fn)) continue
      const found = advanced(read, read.fn, host)
      if (found === undefined || told.has(found.start)) continue
      told.add(found.start)
      const loud = isRerun(file.contextOf(read.fn))
      yield report(found, loud)
    }
    for (const fn of host.functions) {
      const found = handedOn(fn, host)
      if (found !== undefined && !told.has(found.start)) yield report(found, false)
    }
  },
}

/** `select ... for update`: a word of the statement, whatever text of the host holds it. */
function locks(file: FileFacts, fn: HostFunction): boolean {
  return file.sql.some(
    ({ fn: own, call, statement: { tokens } }) =>
      (call?.fn ?? own) === fn &&
      (hasWords(tokens, 'for', 'update') || hasWords(tokens, 'for', 'no', 'key', 'update')),
  )
}

interface Move {
  readonly column: string
  readonly start: number
  readonly end: number
}

function report({ column, start, end }: Move, loud: boolean): Report {
  return {
    start,
    end,
    message: `"${column}" is moved on from the value that is stored: a second run of the same input moves it on again`,
    class: loud ? 'unsafe' : 'info',
    severity: loud ? 'warning' : 'info',
    confidence: loud ? 'medium' : 'low',
  }
}

function readsRow({ value, name }: HostAssignment, host: HostFacts): boolean {
  if (!/^\w+$/.test(name)) return false
  const inner = /^await/.test(value.type) ? value.children[0] : value
  const call = inner === undefined ? undefined : host.callOf(inner)
  if (call === undefined) return false
  return READS.test(call.name) || (call.name === 'get' && READS_BY_GET.test(call.receiver))
}

/** `v.total + n` or `v.total += n` behind the read, and a write behind that which takes it. */
function advanced(read: HostAssignment, fn: HostFunction, host: HostFacts): Move | undefined {
  const from = read.value.end
  const text = host.text.slice(from, fn.node.end)
  const name = read.name
  const member = `\\b${name}(?:\\.|\\?\\.|\\[['"]?)(\\w+)(?:['"]?\\])?`
  const own = new RegExp(
    `${member}\\s*[-+*]=(?!=)|${member}\\s*(?:\\?\\?\\s*0\\s*\\)?|\\|\\|\\s*0\\s*\\)?|or\\s+0\\s*\\)?)?\\s*[-+*](?![-+*=>])`,
    'g',
  )
  for (const match of text.matchAll(own)) {
    const member = match[1] ?? match[2] ?? ''
    const start = from + match.index
    const assigned = host.assignments.find(
      (one) => one.fn === fn && one.start <= start && start < one.value.end && one.value.start >= from,
    )
    const column = /^\d+$/.test(member) ? (assigned?.name ?? member) : member
    if (COUNTS_ATTEMPTS.test(column)) continue
    const inPlace = match[1] !== undefined
    if (callsIn(host, fn).some((call) => stores(call, start, column, assigned, inPlace, host)))
      return { column, start, end: start + match[0].length }
  }
  return undefined
}

function stores(
  call: HostCall,
  start: number,
  column: string,
  assigned: HostAssignment | undefined,
  inPlace: boolean,
  host: HostFacts,
): boolean {
  if (!WRITES.test(call.name) || call.end < start) return false
  if (inPlace)
    return call.start > start && /^(?:save|commit|put|put_item|update|bulk_update)$/.test(call.name)
  const source = host.source(call.node)
  if (/^\W*(?:await\s+)?[\w.]*\(?\s*['"`]\s*select\b/i.test(source)) return false
  if (call.start <= start && start < call.end)
    return new RegExp(`['"]?\\b${literally(column)}\\b['"]?\\s*[:=]`).test(source)
  if (assigned === undefined || call.start < start) return false
  return new RegExp(`(?:^|[^\\w.'"])${literally(assigned.name)}\\b(?!\\s*\\()`).test(
    source.slice(source.indexOf('(')),
  )
}

/** `count = d.count; count += 1; out.push({ count })`: numbers of a record that was handed in, moved on and handed on. */
function handedOn(fn: HostFunction, host: HostFacts): Move | undefined {
  if (fn.name === '' && fn.parent !== undefined) return undefined
  // A parameter may be a whole pattern, with defaults and comments; only a name can be followed.
  const given = fn.parameters.filter(
    (name) =>
      /^\w+$/.test(name) && /stat|state|existing|previous|prev|stored|saved|current|totals/i.test(name),
  )
  if (given.length === 0) return undefined
  const own = host.assignments.filter((one) => one.fn === fn)
  const records = new Set([
    ...given,
    ...own
      .filter(({ value }) =>
        given.some((name) => new RegExp(`^${name}(?:\\[|\\.get\\()`).test(host.source(value))),
      )
      .map(({ name }) => name),
  ])
  const moves = own.filter(
    (one) =>
      one.appends &&
      own.some(({ name, value }) => {
        const [, record, member] = /^(\w+)(?:\.|\[['"])(\w+)/.exec(host.source(value)) ?? []
        return name === one.name && record !== undefined && records.has(record) && member === name
      }),
  )
  const [first] = moves
  const body = host.source(fn.node)
  const out = first !== undefined && new RegExp(`[{,]\\s*['"]?${first.name}['"]?\\s*[,:}]`).test(body)
  return first === undefined || !out || COUNTS_ATTEMPTS.test(first.name)
    ? undefined
    : { column: first.name, start: first.start, end: first.value.end }
}
