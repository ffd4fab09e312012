import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { ancestor } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { effectCalls } from './effect-calls.ts'

const STORES = /^(?:(?:insert|save|store|upsert|persist|record|mark)\w*|bulk_create|commit)$/
const WRITES = new Set(['insert', 'merge', 'update', 'commit'])

export const effectBeforeCommit: Rule = {
  id: 'effect-before-commit',
  title: 'Commit first, then tell the world',
  anomaly: 'doubled',
  tier: 2,
  fix: 'advice',
  problem:
    'The message leaves before the rows that decide about it are committed. When the write fails, the next run finds the same state and sends the message again.',
  advice: 'Write first; or note the message in the same transaction (an outbox) and send it from there.',
  safeForms: [
    {
      for: 'any',
      code: 'await insertProject(rows)\nif (isNew) await sendMessage(`Project ${name} was added`, webhook)',
    },
  ],
  prove: '`stet prove` fails the write once: the message is sent twice (DOUBLED).',
  limits: 'A write in another function is known only by its name.',
  bad: [
    {
      why: 'announced, then stored',
      path: 'src/handlers/add.js',
      lines: [4],
      code: 'const main = async (rows) => {\n  const known = await getProjects();\n  if (!known.includes(rows[0].project)) {\n    await sendMessage("new project", process.env.WEBHOOK);\n  }\n  await insertRows(rows);\n};\n',
    },
  ],
  fine: [
    {
      why: 'stored, then announced',
      path: 'src/handlers/add.js',
      lines: [],
      code: 'const main = async (rows) => {\n  await insertRows(rows);\n  await sendMessage("new project", process.env.WEBHOOK);\n};\n',
    },
    {
      why: 'in the branch of an error',
      path: 'src/handlers/add.js',
      lines: [],
      code: 'const main = async (rows) => {\n  try {\n    await f(rows);\n  } catch (e) {\n    await sendMessage("failed", process.env.WEBHOOK);\n  }\n  await insertRows(rows);\n};\n',
    },
    {
      why: 'the function ends with the message',
      path: 'src/handlers/add.js',
      lines: [],
      code: 'const main = async (rows) => {\n  if (rows.length === 0) {\n    await sendMessage("nothing came", process.env.WEBHOOK);\n    return;\n  }\n  await insertRows(rows);\n};\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test') return
    for (const { call, what, start, end } of effectCalls(host)) {
      if (!isRerun(file.contextOf(call.fn)) || call.fn === undefined) continue
      if (
        ancestor(call.node, 'catch_clause', 'except_clause', 'finally_clause') !== undefined ||
        leavesAfter(call, host)
      )
        continue
      if (!storesAfter(call, host, file)) continue
      yield {
        start,
        end,
        message: `The ${what} leaves before the rows are stored: if that fails, the next run sends it again`,
        class: 'unsafe',
        severity: 'warning',
        confidence: 'low',
      }
    }
  },
}

function storesAfter(call: HostCall, host: HostFacts, file: FileFacts): boolean {
  const bySql = file.sql.some(
    (use) => use.fn === call.fn && use.order > call.end && WRITES.has(use.statement.kind),
  )
  return (
    bySql ||
    host.calls.some(
      (one) =>
        one.fn === call.fn && one.start > call.end && STORES.test(one.name) && !/^insert$/.test(one.name),
    )
  )
}

/** `return` or `throw` behind it in the same block. */
function leavesAfter(call: HostCall, host: HostFacts): boolean {
  const block = ancestor(call.node, 'statement_block', 'block')
  return (
    block !== undefined &&
    /^[\s\S]*?\b(?:return|throw|raise|process\.exit|sys\.exit)\b/.test(
      host.text.slice(call.end, block.end),
    ) &&
    block !== call.fn?.node.children.at(-1)
  )
}
