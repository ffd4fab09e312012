import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { descendants } from '../languages/tree.ts'
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
    {
      why: 'bulk actions without an id',
      path: 'dags/sync.py',
      lines: [4],
      code: 'from opensearchpy import helpers\n\ndef sync(client, rows):\n    actions = [{"_index": "orders", "_source": row} for row in rows]\n    helpers.bulk(client, actions)\n',
    },
    {
      why: 'an index call of a client by another name',
      path: 'dags/mark.py',
      lines: [4],
      code: 'import airflow\n\ndef mark(opensearch_client, day):\n    opensearch_client.index(index="marks", body={"day": day})\n',
    },
  ],
  fine: [
    {
      why: 'bulk actions with their id, and those of rows that a search did not find',
      path: 'dags/sync.py',
      lines: [],
      code: 'from opensearchpy import helpers\n\ndef sync(client, rows):\n    helpers.bulk(client, [{"_index": "orders", "_id": row["no"], "_source": row} for row in rows])\n\ndef add(client, row):\n    if client.search(index="orders", body={"no": row["no"]})["hits"]["total"] == 0:\n        helpers.bulk(client, [{"_index": "orders", "_source": row}])\n',
    },
    {
      why: 'a function of the repository that only has the name',
      path: 'dags/rows.py',
      lines: [],
      code: 'import airflow\n\ndef load(cur):\n    insert_many(cur.fetchmany(100))\n',
    },
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
    yield* bulkActions(file, host)
  },
}

/** Whether the documents are written out or come from a variable; undefined if nothing is stored. */
function storedBy(call: HostCall, host: HostFacts): 'literal' | 'variable' | undefined {
  const [first] = call.args
  if (/^(?:insert_one|insert_many|insertOne|insertMany)$/.test(call.name)) {
    // A method of a collection; a function of that name is the repository's own.
    if (first === undefined || call.receiver === '') return undefined
    return /^\{/.test(host.source(first)) ? 'literal' : 'variable'
  }
  if (
    call.name === 'index' &&
    /(?:^|[._])(?:es|elastic\w*|opensearch\w*|client)$|^(?:es|os)_\w+$/i.test(call.receiver)
  ) {
    return call.named.has('index') &&
      !call.named.has('id') &&
      (call.named.has('document') || call.named.has('body'))
      ? 'literal'
      : undefined
  }
  return undefined
}

/** `{"_index": "orders", "_source": row}` handed to `helpers.bulk`: an action without `_id` makes a document each time. */
function* bulkActions(file: FileFacts, host: HostFacts): Iterable<Report> {
  if (host.language !== 'python') return
  const bulk = /^(?:bulk|streaming_bulk|parallel_bulk|async_bulk)$/
  if (!host.calls.some((call) => bulk.test(call.name) && /helpers$|^$/.test(call.receiver))) return
  for (const node of descendants(host.root)) {
    if (node.type !== 'dictionary') continue
    const keys = host.entriesOf(node)
    if (!keys.has('_index') || !keys.has('_source') || keys.has('_id')) continue
    const operation = keys.get('_op_type')
    const fn = host.functionOf(node)
    if ((operation !== undefined && host.textOf(operation) !== 'index') || !isRerun(file.contextOf(fn)))
      continue
    const whole = host.source(fn?.node ?? host.root)
    if (/\[\s*['"]_id['"]\s*\]|\.(?:search|exists|count|mget|delete_by_query|indices\.delete)\(/.test(whole))
      continue
    yield {
      start: node.start,
      end: node.start + 1,
      message:
        'The action brings no _id, so the store makes one up: a retry stores the document once more under another',
      class: 'unsafe',
      severity: 'warning',
      confidence: 'medium',
    }
  }
}
