import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { ancestor } from '../languages/tree.ts'
import { literally } from '../literally.ts'
import type { Rule } from '../rule.ts'
import { clearedBy, duplicateIsCaught, textBefore } from '../sequence.ts'
import { nameFromText } from '../sql/name.ts'
import type { Name } from '../sql/statement.ts'

/** What stands before `.insert(`: `knex('t')`, `supabase.from('t')`, a repository. */
const BUILDER =
  /(?:^|\b)(?:\w*knex|db|trx|tx|database|pg)\s*(?:\.\w+\(\s*['"`]?\w+['"`]?\s*\)\s*)*(?:<[^>]*>)?\(\s*['"`\w]|\.(?:from|into|table)\s*(?:<[^>]*>)?\(\s*['"`]|(?:repo|repository|manager)\w*\s*\.\s*$/i

export const ormCreateInLoad: Rule = {
  id: 'orm-create-in-load',
  title: 'Upsert the rows of a load',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The rows of a batch are created without asking whether they are there. Delivered a second time, they are created a second time.',
  advice: 'Use the upsert of the library: on conflict, skipDuplicates, ignore_conflicts, update_conflicts.',
  safeForms: [
    {
      for: 'pg-promise',
      code: "const query = pgp.helpers.insert(rows, columns) + ' on conflict (pool, day) do update set ' + columns.assignColumns({ from: 'excluded', skip: ['pool', 'day'] })",
    },
    {
      for: 'Django',
      code: 'Order.objects.bulk_create(rows, update_conflicts=True, unique_fields=["order_no"], update_fields=["amount"])',
    },
    { for: 'Prisma', code: 'await prisma.order.createMany({ data: rows, skipDuplicates: true })' },
  ],
  prove: '`stet prove` delivers the batch twice (DOUBLED).',
  limits:
    'Keys are known from Prisma, Django, SQLAlchemy, Knex and SQL in the repository; calls in request handlers are left out.',
  bad: [
    {
      why: 'a generated insert without on conflict',
      path: 'src/queries/lsd.js',
      lines: [4],
      code: 'const { pgp, connect } = require("../utils/db");\nconst insertLsd = async (payload) => {\n  const cs = new pgp.helpers.ColumnSet(["a"], { table: "lsd" });\n  const query = pgp.helpers.insert(payload, cs);\n  return (await connect()).result(query);\n};\n',
    },
    {
      why: 'bulk_create in a task',
      path: 'tasks/load.py',
      lines: [4],
      code: 'from celery import shared_task\n@shared_task\ndef load(rows):\n    Order.objects.bulk_create([Order(**r) for r in rows])\n',
    },
    {
      why: 'the delete is of another model',
      path: 'jobs/w.ts',
      lines: [5],
      code: 'import { Worker } from "bullmq";\nnew Worker("q", async (job) => {\n  await prisma.order.deleteMany({ where: { day: job.data.day } });\n  await prisma.order.createMany({ data: job.data.rows });\n  await prisma.event.createMany({ data: job.data.events });\n});\n',
    },
    {
      why: 'an insert that SQLAlchemy builds',
      path: 'dags/load.py',
      lines: [4],
      code: 'from sqlalchemy import insert\nfrom airflow.decorators import task\ndef load(conn, rows, **kwargs):\n    conn.execute(insert(orders), rows)\n',
    },
    {
      why: 'rows added one by one',
      path: 'tasks/load.py',
      lines: [5],
      code: 'from celery import shared_task\n@shared_task\ndef load(session, rows):\n    for row in rows:\n        session.add(Order(**row))\n    session.commit()\n',
    },
    {
      why: 'builders of TypeScript',
      path: 'src/jobs/load.ts',
      lines: [3, 4, 5],
      code: "import { Worker } from 'bullmq'\nnew Worker('q', async (job) => {\n  await knex('orders').insert(job.data.rows)\n  await supabase.from('events').insert(job.data.events)\n  await db.insert(visits).values(job.data.visits)\n})\n",
    },
    {
      why: 'Prisma in a loop',
      path: 'src/jobs/load.ts',
      lines: [4],
      code: "import { Worker } from 'bullmq'\nnew Worker('q', async (job) => {\n  for (const row of job.data.rows) {\n    await prisma.order.create({ data: row })\n  }\n})\n",
    },
  ],
  fine: [
    {
      why: 'builders of TypeScript that say what happens to rows that are there',
      path: 'src/jobs/load.ts',
      lines: [],
      code: "import { Worker } from 'bullmq'\nnew Worker('q', async (job) => {\n  await knex('orders').insert(job.data.rows).onConflict('no').merge()\n  await supabase.from('events').upsert(job.data.events, { onConflict: 'no' })\n  await db.insert(visits).values(job.data.visits).onConflictDoNothing()\n  seen.insert(job.id)\n})\n",
    },
    {
      why: 'an insert of SQLAlchemy with on conflict, by a variable',
      path: 'dags/load.py',
      lines: [],
      code: 'from sqlalchemy.dialects.postgresql import insert\nfrom airflow.decorators import task\ndef load(conn, rows, **kwargs):\n    statement = insert(orders)\n    statement = statement.on_conflict_do_nothing()\n    conn.execute(statement, rows)\n',
    },
    {
      why: 'rows that a query did not find',
      path: 'tasks/load.py',
      lines: [],
      code: 'from celery import shared_task\n@shared_task\ndef load(session, rows):\n    for row in rows:\n        if session.query(Order).filter_by(no=row["no"]).first() is None:\n            session.add(Order(**row))\n    session.commit()\n',
    },
    {
      why: 'on conflict is added',
      path: 'src/queries/a.js',
      lines: [],
      code: 'const { pgp } = require("../db");\nconst up = (rows, cs) => pgp.helpers.insert(rows, cs) + " ON CONFLICT(adapter) DO UPDATE SET x = 1";\n',
    },
    {
      why: 'conflicts are ignored',
      path: 'tasks/load.py',
      lines: [],
      code: 'from celery import shared_task\n@shared_task\ndef load(rows):\n    Order.objects.bulk_create(rows, ignore_conflicts=True)\n',
    },
    {
      why: 'duplicates are skipped',
      path: 'jobs/load.ts',
      lines: [],
      code: 'export const f = (rows: any[]) => prisma.order.createMany({ data: rows, skipDuplicates: true });\n',
    },
    {
      why: 'a request handler',
      path: 'src/api/add.ts',
      lines: [],
      code: 'import express from "express";\nexport const add = (req, res) => prisma.order.createMany({ data: req.body });\n',
    },
    {
      why: 'on conflict is added later',
      path: 'jobs/a.js',
      lines: [],
      code: 'const { pgp } = require("../db");\nfunction f(rows, cs) {\n  let query = pgp.helpers.insert(rows, cs);\n  query += " ON CONFLICT DO NOTHING";\n  return query;\n}\n',
    },
    {
      why: 'the model has a natural key: a second run fails instead',
      path: 'jobs/w.ts',
      lines: [],
      beside: {
        'prisma/schema.prisma':
          'model Order {\n  id Int @id @default(autoincrement())\n  orderNo String @unique\n}\n',
      },
      code: 'import { Worker } from "bullmq";\nnew Worker("q", async (job) => {\n  await prisma.order.createMany({ data: job.data.rows });\n});\n',
    },
    {
      why: 'the slice is deleted before',
      path: 'tasks/load.py',
      lines: [],
      code: 'from celery import shared_task\n@shared_task\ndef load(rows, day):\n    Order.objects.filter(day=day).delete()\n    Order.objects.bulk_create(rows)\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    const { host } = file
    if (
      host === undefined ||
      file.context === 'test' ||
      file.context === 'migration' ||
      file.context === 'seed'
    )
      return
    for (const call of host.calls) {
      const found = createsRows(call, host)
      if (found === undefined || duplicateIsCaught(host, call.node)) continue
      const context = file.contextOf(call.fn)
      // A natural key in the model: the second run fails instead of doubling.
      const table = project.catalogue.find(modelOf(call, host), file.path)
      if (table?.keys.some((key) => !key.generated && !key.partial)) continue
      if (context === 'request' && found !== 'helper') continue
      const inFunction = textBefore(
        host,
        call.fn,
        Math.min(call.fn?.node.end ?? host.text.length, call.end + 20_000),
      )
      if (
        /on\s+conflict|on\s+duplicate/i.test(found === 'helper' ? inFunction : host.source(call.node)) ||
        emptiedBefore(call, host, file)
      )
        continue
      const remade = /__table__\.drop\(|drop_all\(|\.delete\(\)|deleteMany\(/.test(host.text)
      const loud = found === 'helper' ? context !== 'request' : context === 'task' && !remade
      yield {
        start: call.start,
        end: call.end,
        message:
          'The rows of the batch are created without a look at what is there: delivered twice, they are created twice',
        class: loud ? 'unsafe' : 'info',
        severity: loud ? 'warning' : 'info',
        confidence: loud && table !== undefined && !table.fromQuery ? 'medium' : 'low',
      }
    }
  },
}

/** `prisma.order`, `Order.objects`, `Order.bulkCreate`: the name of the model. */
function modelOf(call: HostCall, host: HostFacts): Name | undefined {
  const parts = call.callee.split('.')
  const model =
    call.name === 'bulk_create'
      ? parts.at(-3)
      : /^(?:createMany|bulkCreate)$/.test(call.name)
        ? parts.at(-2)
        : undefined
  if (model !== undefined && /^\w+$/.test(model)) return nameFromText(model)
  const inChain = /\(\s*['"`]([\w.]+)['"`]\s*\)\s*\.\s*insert\b/.exec(host.source(call.node))?.[1]
  if (inChain !== undefined) return nameFromText(inChain)
  const core = /(?:^|[(\s])(?:\w+_)?insert\(\s*(\w+)\s*\)|\b(\w+)(?:\.__table__)?\.insert\(/.exec(
    host.source(call.node),
  )
  const plain = core?.[1] ?? core?.[2]
  if (call.name === 'execute' && plain !== undefined) return nameFromText(plain)
  const table = /\btable\s*:\s*['"`]([\w.]+)['"`]/.exec(host.source(call.node))?.[1]
  return table === undefined ? undefined : nameFromText(table)
}

function createsRows(call: HostCall, host: HostFacts): 'helper' | 'orm' | undefined {
  const has = (...names: string[]): boolean => names.some((name) => call.named.has(name))
  if (/(?:^|\.)helpers\.insert$/.test(call.callee)) return 'helper'
  if (call.name === 'bulk_create') return has('ignore_conflicts', 'update_conflicts') ? undefined : 'orm'
  if (call.name === 'createMany' && host.language === 'typescript')
    return has('skipDuplicates') ? undefined : 'orm'
  if (call.name === 'bulkCreate') return has('updateOnDuplicate', 'ignoreDuplicates') ? undefined : 'orm'
  if (host.language === 'typescript') return built(call, host)
  if (call.name === 'execute' && runsPlainInsert(call, host)) return 'orm'
  // One by one, in a loop over what was read.
  if (call.name === 'add' && call.loop && /(?:^|\.)session$/i.test(call.receiver)) return 'orm'
  if (call.name === 'bulk_insert_mappings' || call.name === 'bulk_save_objects' || call.name === 'add_all')
    return 'orm'
  return undefined
}

/** Inserts of query builders: Knex, Supabase, Drizzle, TypeORM; and Prisma's `create` in a loop. */
function built(call: HostCall, host: HostFacts): 'orm' | undefined {
  const source = host.source(call.node)
  const creates =
    (call.name === 'insert' &&
      call.args.length > 0 &&
      BUILDER.test(source.slice(0, source.lastIndexOf('insert')))) ||
    (call.name === 'values' && /\.insert\(\)?/.test(call.callee)) ||
    (call.name === 'create' && call.loop && call.named.has('data') && /prisma|tx\b/i.test(call.receiver))
  return creates && !/onConflict|onDuplicate|orIgnore|orUpdate|\.ignore\(|upsert/i.test(chainOf(call, host))
    ? 'orm'
    : undefined
}

/** The whole of `db('t').insert(rows).onConflict('no').merge()`. */
function chainOf(call: HostCall, host: HostFacts): string {
  let at = call.node
  while (
    at.parent !== undefined &&
    /^(?:member_expression|call_expression|await_expression)$/.test(at.parent.type)
  )
    at = at.parent
  return host.source(at)
}

/** `conn.execute(orders.insert(), rows)`, `conn.execute(insert(orders).values(rows))`, also by a variable. */
function runsPlainInsert(call: HostCall, host: HostFacts): boolean {
  const [first] = call.args
  if (first === undefined) return false
  const own = host.source(first)
  const given =
    first.type === 'identifier'
      ? host.assignments.filter((one) => one.name === own && one.fn === call.fn && one.start < call.start)
      : []
  const source = given.length === 0 ? own : given.map((one) => host.source(one.value)).join(' ')
  return (
    !/['"]/.test(source.slice(0, 12)) &&
    /(?:^|[.\s(])(?:\w+_)?insert\(/.test(source) &&
    !/on_conflict|on_duplicate|prefix_with|from_select/.test(source)
  )
}

function emptiedBefore(call: HostCall, host: HostFacts, file: FileFacts): boolean {
  const before = textBefore(host, call.fn, call.start)
  // `Order.objects` and `prisma.order` name the model; a session does not, so any delete counts there.
  const model = /^(?:session|self\.session|db\.session|helpers|pgp\.helpers)$/.test(call.receiver)
    ? ''
    : literally(call.receiver)
  if (
    new RegExp(
      `${model}[^;]{0,120}?\\.(?:delete|deleteMany|destroy|truncate|delete_many|drop_collection)\\s*\\(`,
    ).test(before)
  )
    return true
  if (
    ancestor(call.node, 'if_statement') !== undefined &&
    /exists\(|\.first\(\)|findFirst|findUnique|not in|!existing/i.test(before)
  )
    return true
  return file.sql.some(
    (use) =>
      use.fn === call.fn &&
      use.start < call.start &&
      (use.statement.kind === 'delete' ||
        use.statement.kind === 'truncate' ||
        clearedBy(file, use) !== undefined),
  )
}
