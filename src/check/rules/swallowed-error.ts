import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCatch, HostFacts } from '../languages/host.ts'
import { descendants, type SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'

const WRITES = new Set(['insert', 'update', 'delete', 'merge', 'truncate', 'copy', 'load'])
const BROAD =
  /^except\s*(?::|\(?\s*(?:\w+\.)*(?:Exception|BaseException|DatabaseError|Error|OperationalError|SQLAlchemyError|ProgrammingError|PgError)\b)/

export const swallowedError: Rule = {
  id: 'swallowed-error',
  title: 'Let a failed load fail',
  anomaly: 'lost',
  tier: 1,
  fix: 'advice',
  problem:
    'The error of the load is printed and forgotten. The run turns green, the scheduler does not repeat it, and the rows are missing until somebody looks.',
  advice:
    'Raise the error again after noting it; keep rows that cannot be loaded, with their number, apart from errors of the load.',
  safeForms: [
    { for: 'Python', code: 'except psycopg2.Error:\n    log.exception("load of %s failed", day)\n    raise' },
  ],
  prove: '`stet prove` makes the statement fail: the job ends with 0 and the rows are missing (LOST).',
  limits: 'Whether a caller checks a returned value is not seen.',
  bad: [
    {
      why: 'the error of an insert is printed',
      path: 'jobs/l.py',
      lines: [6],
      code: 'import psycopg2\ndef load(conn, rows):\n    try:\n        conn.cursor().execute("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n        conn.commit()\n    except (Exception, psycopg2.DatabaseError) as error:\n        print(error)\n',
    },
  ],
  fine: [
    {
      why: 'raised again',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef load(cur):\n    try:\n        cur.execute("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n    except Exception as e:\n        print(e)\n        raise\n',
    },
    {
      why: 'another error is raised',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef load(cur):\n    try:\n        cur.execute("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n    except Exception as e:\n        raise ValueError("failed")\n',
    },
    {
      why: 'the program ends with a status',
      path: 'jobs/l.py',
      lines: [],
      code: 'import sys, psycopg2\ndef load(cur):\n    try:\n        cur.execute("INSERT INTO t SELECT * FROM s ON CONFLICT DO NOTHING")\n    except Exception:\n        sys.exit(1)\n',
    },
    {
      why: 'a row that cannot be loaded is counted',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef load(cur, rows):\n    rejected = []\n    for row in rows:\n        try:\n            cur.execute("INSERT INTO t VALUES (%s) ON CONFLICT DO NOTHING", row)\n        except Exception as e:\n            rejected.append((row, e))\n',
    },
    {
      why: 'an expected error by its name',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef load(cur):\n    try:\n        cur.execute("INSERT INTO t VALUES (1)")\n    except psycopg2.errors.UniqueViolation:\n        pass\n',
    },
    {
      why: 'only reads',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef load(cur):\n    try:\n        cur.execute("SELECT 1 FROM t")\n    except Exception as e:\n        print(e)\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host?.language !== 'python') return
    for (const one of host.catches) {
      const context = file.contextOf(one.fn)
      if (context !== 'task' && context !== 'script') continue
      const found = judge(one, host, file)
      if (found !== undefined) yield found
    }
  },
}

function judge(one: HostCatch, host: HostFacts, file: FileFacts): Report | undefined {
  const handler = host.source(one.handler)
  if (!BROAD.test(handler)) return undefined
  if (
    /\braise\b|sys\.exit|os\._exit|exit\(|\.fail\(|append\(|rejected|dead_?letter|\+=|retry|continue\b|return\s+(?!None\b|\s*$)\w|set_exception|rollback_and|mark_failed|status|errors?\[/i.test(
      handler,
    )
  )
    return undefined
  if (!onlyPrints(one.handler, host)) return undefined
  const writes = file.sql.find((use) => {
    const at = use.call ?? use.text
    return (
      at !== undefined &&
      WRITES.has(use.statement.kind) &&
      one.body.start <= at.start &&
      at.end <= one.body.end
    )
  })
  if (writes === undefined) return undefined
  const line = /[^\n]*/.exec(handler)?.[0].length ?? handler.length
  return {
    start: one.handler.start,
    end: one.handler.start + line,
    message:
      'The error of the load is only printed: the run turns green and is not repeated, and the rows are missing',
    class: 'unsafe',
    severity: 'warning',
    confidence: 'medium',
  }
}

function onlyPrints(handler: SyntaxNode, host: HostFacts): boolean {
  return [...descendants(handler)].every((node) => {
    const call = host.callOf(node)
    return (
      call === undefined ||
      /^(?:print|info|debug|warning|warn|error|exception|critical|log|str|repr|format|rollback|close|format_exc|print_exc|traceback|getLogger|type)$/.test(
        call.name,
      )
    )
  })
}
