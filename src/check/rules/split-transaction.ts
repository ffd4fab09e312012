import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'

export const splitTransaction: Rule = {
  id: 'split-transaction',
  title: 'Open a transaction on one connection, not on the pool',
  anomaly: 'gap',
  tier: 1,
  fix: 'suggestion',
  problem:
    'A pool may hand out another connection for each query. The BEGIN then opens a transaction nobody uses, each statement commits by itself, and a crash leaves half of them done.',
  advice:
    'Take a client with pool.connect() (or use the transaction helper of the driver), send BEGIN, the statements and COMMIT through it, and release it.',
  safeForms: [
    {
      for: 'node-postgres',
      code: "const client = await pool.connect()\ntry {\n  await client.query('begin')\n  await client.query('delete from metric where day = $1', [day])\n  await client.query('insert into metric select * from stage where day = $1', [day])\n  await client.query('commit')\n} catch (error) {\n  await client.query('rollback')\n  throw error\n} finally {\n  client.release()\n}",
    },
  ],
  prove:
    '`stet prove` cuts between the statements: the delete is kept although the transaction never committed (GAP).',
  limits: 'A pool is known by where it is made in the same file, or by its name.',
  bad: [
    {
      why: 'BEGIN through the pool',
      path: 'jobs/metric.ts',
      lines: [4],
      code: 'import { Pool } from "pg";\nconst pool = new Pool();\nexport async function replace(day: string) {\n  await pool.query("BEGIN");\n  await pool.query("DELETE FROM m WHERE day = $1", [day]);\n  await pool.query("COMMIT");\n}\n',
    },
    {
      why: 'whatever the pool is called',
      path: 'jobs/metric.js',
      lines: [4],
      code: 'const { Pool } = require("pg");\nconst db = new Pool();\nasync function replace(day) {\n  await db.query(`BEGIN`);\n  await db.query("DELETE FROM m");\n  await db.query("COMMIT");\n}\n',
    },
  ],
  fine: [
    {
      why: 'one client of the pool',
      path: 'jobs/metric.ts',
      lines: [],
      code: 'import { Pool } from "pg";\nconst pool = new Pool();\nexport async function replace(day: string) {\n  const c = await pool.connect();\n  await c.query("BEGIN");\n  await c.query("DELETE FROM m WHERE day = $1", [day]);\n  await c.query("COMMIT");\n}\n',
    },
    {
      why: 'single statements through the pool',
      path: 'jobs/metric.ts',
      lines: [],
      code: 'import { Pool } from "pg";\nconst pool = new Pool();\nexport const one = () => pool.query("DELETE FROM m WHERE day = 1");\n',
    },
    {
      why: 'a client, not a pool',
      path: 'jobs/metric.ts',
      lines: [],
      code: 'import { Client } from "pg";\nconst db = new Client();\nexport async function f() {\n  await db.query("BEGIN");\n  await db.query("DELETE FROM m");\n  await db.query("COMMIT");\n}\n',
    },
    {
      why: 'all in one text is one connection',
      path: 'jobs/metric.ts',
      lines: [],
      code: 'import { Pool } from "pg";\nconst pool = new Pool();\nexport const f = () => pool.query("BEGIN; DELETE FROM m; COMMIT");\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host?.language !== 'typescript') return
    const pools = new Set(
      host.assignments
        .filter((one) => /\bnew\s+(?:\w+\.)?Pool\b|\bcreatePool\s*\(/.test(host.source(one.value)))
        .map((one) => one.name.replace(/^self\./, 'this.')),
    )
    for (const use of file.sql) {
      if (use.statement.kind !== 'begin' || use.call === undefined || file.context === 'test') continue
      const { receiver } = use.call
      const last = receiver.split('.').at(-1) ?? ''
      if (!pools.has(receiver) && !/^(?:\w*[pP]ool|pgPool)$/.test(last)) continue
      // A text with its own commit is one message on one connection.
      if (file.sql.some((one) => one.call === use.call && one.statement.kind === 'commit')) continue
      yield {
        start: use.start,
        end: use.end,
        message: `BEGIN goes through the pool "${receiver}": the statements behind it may run on other connections, each committing by itself`,
        class: 'unsafe',
        severity: 'error',
        confidence: pools.has(receiver) ? 'high' : 'medium',
      }
    }
  },
}
