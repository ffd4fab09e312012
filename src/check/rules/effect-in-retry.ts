import { isRerun } from '../context.ts'
import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts, HostFunction } from '../languages/host.ts'
import { child, type SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { effectCalls } from './effect-calls.ts'

const SAFE_STEP =
  /(?:^|\.)(?:runTask|step\.run|run_step|activity|sideEffect|memo|once|idempotent|withLock|waitUntil|executeActivity|io\.\w+)$/
const CALLBACK_NAME =
  /on_?(?:failure|success|retry|error)|alert|callback|fail(?:ed|ure)|notify_(?:failure|error)|handle_?error|report_?error|sla_miss/i

export const effectInRetry: Rule = {
  id: 'effect-in-retry',
  title: 'Send a message in a step of its own',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'The message leaves in the same task as other work. When that work fails, or the task is run again, the message is sent a second time; nobody can take it back.',
  advice:
    'Send it in a task of its own, note it as sent in the same transaction that decides about it, and skip it when it is noted.',
  safeForms: [{ for: 'Airflow', code: 'load() >> announce()   # a retry of load does not announce again' }],
  prove: '`stet prove` counts the calls of a job that is cut and run again (DOUBLED).',
  limits: 'Whether the receiver drops doubles is not seen; messages of failure callbacks are left out.',
  bad: [
    {
      why: 'a task that retries, loads and announces',
      path: 'dags/a.py',
      lines: [6],
      code: 'from airflow.decorators import task\nimport requests\n@task(retries=3)\ndef load(hook, SLACK_WEBHOOK):\n    hook.run("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n    requests.post(SLACK_WEBHOOK, json={"text": "loaded"})\n    hook.run("ANALYZE t")\n',
    },
    {
      why: 'a script that reads and posts',
      path: 'scripts/n.js',
      lines: [6],
      code: 'const { Pool } = require("pg");\nconst rp = require("request-promise-native");\nconst pool = new Pool();\n(async () => {\n  const r = await pool.query("select count(*) as n from trees");\n  var options = { method: "POST", uri: Config.slackWebhook, body: { text: r.rows[0].n } };\n  await rp(options);\n})();\n',
    },
  ],
  fine: [
    {
      why: 'a task that does nothing else',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow.decorators import task\nimport requests\n@task(retries=3)\ndef announce(SLACK_WEBHOOK):\n    requests.post(SLACK_WEBHOOK, json={"text": "loaded"})\n',
    },
    {
      why: 'a failure callback',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow.decorators import task\nimport requests\ndef on_failure(context):\n    hook.run("INSERT INTO failures VALUES (1)")\n    requests.post(SLACK_WEBHOOK, json={"text": "failed"})\n',
    },
    {
      why: 'a task without retries',
      path: 'dags/a.py',
      lines: [],
      code: 'from airflow.decorators import task\nimport requests\n@task(retries=0)\ndef load(hook, SLACK_WEBHOOK):\n    hook.run("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n    requests.post(SLACK_WEBHOOK, json={"text": "loaded"})\n',
    },
    {
      why: 'a step that is noted',
      path: 'jobs/a.ts',
      lines: [],
      code: 'export const f = async (io: any, pool: any) => {\n  await pool.query("select 1 from t");\n  await io.runTask("send", async () => fetch(process.env.SLACK_WEBHOOK_URL, { method: "POST" }));\n};\n',
    },
    {
      why: 'claimed by a conditional update',
      path: 'jobs/a.ts',
      lines: [],
      code: 'export const f = async (pool: any) => {\n  const r = await pool.query("UPDATE mail SET sent = true WHERE id = 1 AND sent = false");\n  if (r.rowCount === 1) await fetch(process.env.SLACK_WEBHOOK_URL, { method: "POST" });\n};\n',
    },
    {
      why: 'in a branch that handles an error',
      path: 'jobs/a.py',
      lines: [],
      code: 'import requests\nimport pandas as pd\ndef f(cur, SLACK_WEBHOOK):\n    try:\n        cur.execute("SELECT 1 FROM t")\n    except Exception as e:\n        requests.post(SLACK_WEBHOOK, json={"text": str(e)})\n        raise\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test' || file.context === 'request') return
    for (const { call, what, start, end } of effectCalls(host)) {
      const context = file.contextOf(call.fn)
      if (!isRerun(context) || !judged(call, host, file)) continue
      const retries = taskRetries(call.fn, host)
      if (retries === 0) continue
      const sure = retries !== undefined && retries > 0
      yield {
        start,
        end,
        message: `The ${what} is sent beside other work: when that fails or the job is run again, it is sent a second time`,
        class: 'unsafe',
        severity: sure ? 'error' : 'warning',
        confidence: sure ? 'medium' : 'low',
      }
    }
  },
}

function judged(call: HostCall, host: HostFacts, file: FileFacts): boolean {
  for (let at: HostFunction | undefined = call.fn; at !== undefined; at = at.parent)
    if (CALLBACK_NAME.test(at.name)) return false
  for (let at: SyntaxNode | undefined = call.node.parent; at !== undefined; at = at.parent) {
    if (/^(?:except_clause|catch_clause|finally_clause)$/.test(at.type)) return false
    const outer = host.callOf(at)
    if (outer !== undefined && SAFE_STEP.test(outer.callee)) return false
  }
  const around = file.sql.filter((use) => sameJob(use.fn, call.fn))
  // `update ... set sent = true where sent = false` claims the message.
  if (
    around.some(
      (use) =>
        use.statement.kind === 'update' &&
        use.statement.where !== undefined &&
        use.statement.set.some(({ column }) => use.statement.where?.some((token) => token.value === column)),
    )
  )
    return false
  return around.length > 0
}

function sameJob(left: HostFunction | undefined, right: HostFunction | undefined): boolean {
  if (left === right) return true
  for (let at = left; at !== undefined; at = at.parent) if (at === right) return true
  for (let at = right; at !== undefined; at = at.parent) if (at === left) return left !== undefined
  return false
}

/** `retries=` of the task's decorator or of the operator that calls the function; undefined if none is written. */
function taskRetries(fn: HostFunction | undefined, host: HostFacts): number | undefined {
  for (let at = fn; at !== undefined; at = at.parent) {
    const inDecorator = /\bretries\s*=\s*(\d+)/.exec(at.decorators)
    if (inDecorator !== null) return Number(inDecorator[1])
    const name = at.name
    const operator = host.calls.find((call) => {
      const callable = call.named.get('python_callable')
      return callable !== undefined && name !== '' && host.source(callable) === name
    })
    const retries = operator?.named.get('retries')
    if (retries !== undefined) return Number(host.source(retries)) || 0
    if (at.parent === undefined && fn !== undefined && child(at.node, 'name') !== undefined) {
      const fromArguments = /['"]retries['"]\s*:\s*(\d+)/.exec(host.text)
      if (fromArguments !== null && operator !== undefined) return Number(fromArguments[1])
    }
  }
  return undefined
}
