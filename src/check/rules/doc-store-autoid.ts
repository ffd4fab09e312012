import { isRerun } from '../context.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import type { Rule } from '../rule.ts'
import { duplicateIsCaught, textBefore } from '../sequence.ts'

export const docStoreAutoid: Rule = {
  id: 'doc-store-autoid',
  title: 'Give a document the id of what it is about',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The store makes up an id for a document that brings none. A retry stores the same document once more under another id.',
  advice: 'Set _id from the natural key, or replace by it with upsert.',
  safeForms: [
    {
      for: 'MongoDB',
      code: 'collection.bulk_write([ReplaceOne({"_id": row["order_no"]}, row, upsert=True) for row in rows])',
    },
    { for: 'Elasticsearch', code: 'es.index(index="orders", id=row["order_no"], document=row)' },
  ],
  prove: '`stet prove` delivers the batch twice and counts the documents (DOUBLED).',
  limits: 'Whether rows of a variable carry an _id is not seen: the confidence is low there.',
  bad: [
    {
      why: 'a document without an id in a task',
      path: 'dags/load.py',
      lines: [4],
      code: 'from airflow.decorators import task\n@task\ndef load(row):\n    collection.insert_one({"order": row["no"], "amount": row["amount"]})\n',
    },
    {
      why: 'rows as they come',
      path: 'jobs/load.ts',
      lines: [3],
      code: 'import { Worker } from "bullmq";\nnew Worker("q", async (job) => {\n  await db.collection("orders").insertMany(job.data.rows);\n});\n',
    },
    {
      why: 'an index call without an id',
      path: 'dags/search.py',
      lines: [4],
      code: 'from airflow.decorators import task\n@task\ndef load(row):\n    es.index(index="orders", document=row)\n',
    },
  ],
  fine: [
    {
      why: 'the id is the natural key',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.decorators import task\n@task\ndef load(row):\n    collection.insert_one({"_id": row["no"], "amount": row["amount"]})\n    es.index(index="orders", id=row["no"], document=row)\n',
    },
    {
      why: 'emptied before',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.decorators import task\n@task\ndef load(rows):\n    collection.delete_many({"day": day})\n    collection.insert_many(rows)\n',
    },
    {
      why: 'a request handler',
      path: 'src/api/add.ts',
      lines: [],
      code: 'import express from "express";\nexport const add = async (req, res) => {\n  await db.collection("notes").insertOne({ body: req.body.note });\n};\n',
    },
    {
      why: 'what is stored is a list of Python',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.decorators import task\n@task\ndef load(rows):\n    position = rows.index(3)\n    rows.insert(0, 3)\n',
    },
    {
      why: 'a duplicate is caught',
      path: 'dags/load.py',
      lines: [],
      code: 'from airflow.decorators import task\n@task\ndef load(rows):\n    try:\n        collection.insert_many(rows)\n    except DuplicateKeyError:\n        pass\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined) return
    for (const call of host.calls) {
      const documents = storedBy(call, host)
      if (documents === undefined || !isRerun(file.contextOf(call.fn)) || duplicateIsCaught(host, call.node))
        continue
      if (/\b_id\b|unique|create_index|createIndex/.test(host.source(call.node))) continue
      const before = textBefore(host, call.fn, call.start)
      if (/\.(?:delete_many|deleteMany|drop|drop_collection|remove|delete_by_query)\(/.test(before)) continue
      if (
        /\[\s*['"]_id['"]\s*\]\s*=|\b_id\s*[:=]|find_one\(|findOne\(|count_documents\(|countDocuments\(|create_index\(/.test(
          before,
        )
      )
        continue
      const written = documents === 'literal'
      yield {
        start: call.start,
        end: call.end,
        message:
          'The document brings no id, so the store makes one up: a retry stores it once more under another',
        class: 'unsafe',
        severity: 'warning',
        confidence: written ? 'medium' : 'low',
      }
    }
  },
}

/** Whether the documents are written out or come from a variable; undefined if nothing is stored. */
function storedBy(call: HostCall, host: HostFacts): 'literal' | 'variable' | undefined {
  const [first] = call.args
  if (/^(?:insert_one|insert_many|insertOne|insertMany)$/.test(call.name)) {
    if (first === undefined) return undefined
    return /^\{/.test(host.source(first)) ? 'literal' : 'variable'
  }
  if (
    call.name === 'index' &&
    /(?:^|\.)(?:es|elastic\w*|opensearch|client|os_client)$/i.test(call.receiver)
  ) {
    return call.named.has('index') &&
      !call.named.has('id') &&
      (call.named.has('document') || call.named.has('body'))
      ? 'literal'
      : undefined
  }
  return undefined
}
