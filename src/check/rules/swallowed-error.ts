import type { FileFacts } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostFacts } from '../languages/host.ts'
import { descendants, type SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { writesRows } from './host-writes.ts'

const WRITES = new Set(['insert', 'update', 'delete', 'merge', 'truncate', 'copy', 'load'])
const BROAD =
  /^except\s*(?::|\(?\s*(?:\w+\.)*(?:Exception|BaseException|DatabaseError|Error|OperationalError|SQLAlchemyError|ProgrammingError|PgError)\b)/
const PYTHON_ACTS =
  /\braise\b|sys\.exit|os\._exit|exit\(|\.fail\(|append\(|rejected|dead_?letter|\+=|\bretry\s*[(=]|continue\b|return\s+(?!None\b|\s*$)\w|set_exception|rollback_and|mark_failed|status\w*\s*=|errors?\[|\w*(?:failed|failures|ok|success)\s*=/i
const TYPESCRIPT_ACTS =
  /\bthrow\b|\breject\w*\b|process\.exit|exitCode|\breturn\s+(?!;|undefined\b|null\b|console\b|logger\b)\S|\.push\(|\+=|\+\+|\bcontinue\b|\bretry\w*\s*\(|\b\w*(?:failed|failures|errors?|status|ok|success)\w*\s*=[^=>]/i
const PRINTS =
  /^(?:print|info|debug|warning|warn|error|exception|critical|log|trace|notice|str|String|repr|format|stringify|rollback|close|release|end|destroy|format_exc|print_exc|traceback|getLogger|get_logger|type)$/

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
    { for: 'TypeScript', code: '} catch (error) {\n  log.error(error)\n  throw error\n}' },
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
    {
      why: 'the error of a bulk load is logged, in words that only sound as if something were done',
      path: 'jobs/l.py',
      lines: [6],
      code: 'import logging, pandas as pd\ndef load(frame, engine):\n    try:\n        with engine.begin() as connection:\n            frame.to_sql("orders", connection, if_exists="replace")\n    except Exception as error:\n        logging.error("no retry, status of %s is unknown: %s", frame, error)\n',
    },
    {
      why: 'a catch clause of TypeScript',
      path: 'src/jobs/load.ts',
      lines: [6],
      code: 'import { pool } from "./pool"\nexport async function run(): Promise<void> {\n  try {\n    await pool.query("BEGIN")\n    await pool.query("insert into orders select * from stage on conflict (no) do nothing")\n  } catch (error) {\n    await pool.query("ROLLBACK")\n    console.error(error)\n  }\n}\n',
    },
    {
      why: 'a caught promise',
      path: 'src/jobs/load.js',
      lines: [3],
      code: 'module.exports.run = async (db) => {\n  await db.query("insert into orders select * from stage on conflict (no) do nothing")\n    .catch((error) => console.log(error))\n}\n',
    },
  ],
  fine: [
    {
      why: 'a transaction that only read is ended',
      path: 'jobs/l.py',
      lines: [],
      code: 'import psycopg2\ndef names(connect):\n    conn = connect()\n    try:\n        with conn.cursor() as cur:\n            cur.execute("SELECT name FROM t")\n            found = cur.fetchall()\n        conn.commit()\n        return found\n    except Exception as e:\n        print(e)\n        conn.rollback()\n',
    },
    {
      why: 'TypeScript that throws it again, that counts it, and that is told of it by a promise',
      path: 'src/jobs/load.ts',
      lines: [],
      code: 'export async function run(pool, rows) {\n  let failed = 0\n  try {\n    await pool.query("insert into a select * from s on conflict (no) do nothing")\n  } catch (error) {\n    console.error(error)\n    throw error\n  }\n  for (const row of rows) {\n    try {\n      await pool.query("insert into b values ($1) on conflict (no) do nothing", row)\n    } catch (error) {\n      console.error(error)\n      failed += 1\n    }\n  }\n  await pool.query("update c set v = 1").catch((error) => { console.error(error); process.exit(1) })\n}\n',
    },
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
    if (host === undefined) return
    for (const one of host.catches) {
      const context = file.contextOf(one.fn)
      if (context !== 'task' && context !== 'script') continue
      const handler = host.source(one.handler)
      if (host.language === 'python' && !BROAD.test(handler)) continue
      if (!goesOn(one.handler, host)) continue
      const found = report(one.handler.start, one.handler.start + firstLine(handler).length)
      if (writesIn(one.body, host, file)) yield found
      else if (writesFiles(one.body, host))
        yield { ...found, class: 'info', severity: 'info', confidence: 'low' }
    }
    if (host.language === 'typescript') yield* caughtPromises(file, host)
  },
}

/** `client.query(...).catch((error) => console.log(error))` */
function* caughtPromises(file: FileFacts, host: HostFacts): Iterable<Report> {
  for (const call of host.calls) {
    const [handler] = call.args
    if (call.name !== 'catch' || handler === undefined || !/function|arrow/.test(handler.type)) continue
    const context = file.contextOf(call.fn)
    if (context !== 'task' && context !== 'script') continue
    const callee = call.node.children[0]
    if (callee !== undefined && goesOn(handler, host) && writesIn(callee, host, file))
      yield report(handler.start, handler.start + firstLine(host.source(handler)).length)
  }
}

function report(start: number, end: number): Report {
  return {
    start,
    end,
    message:
      'The error of the load is only printed: the run turns green and is not repeated, and the rows are missing',
    class: 'unsafe',
    severity: 'warning',
    confidence: 'medium',
  }
}

function firstLine(text: string): string {
  return /[^\n]*/.exec(text)?.[0] ?? ''
}

/** The handler prints, at most undoes and closes, and the run goes on as if nothing had been. */
function goesOn(handler: SyntaxNode, host: HostFacts): boolean {
  // What a message says decides nothing.
  const code = host.source(handler).replace(/'[^'\n]*'|"[^"\n]*"|`[^`]*`/g, "''")
  return !(host.language === 'python' ? PYTHON_ACTS : TYPESCRIPT_ACTS).test(code) && onlyPrints(handler, host)
}

function writesIn({ start, end }: SyntaxNode, host: HostFacts, file: FileFacts): boolean {
  const inside = (one: { readonly start: number; readonly end: number }): boolean =>
    start <= one.start && one.end <= end
  const statements = file.sql.filter((use) => {
    const at = use.call ?? use.text
    return at !== undefined && inside(at)
  })
  if (statements.some((use) => WRITES.has(use.statement.kind))) return true
  // `commit()` behind nothing but queries only ends what they read in.
  const onlyReads = statements.length > 0 && statements.every((use) => use.statement.kind === 'select')
  return host.calls.some(
    (call) => inside(call) && writesRows(call, host.language) && !(onlyReads && call.name === 'commit'),
  )
}

/** A file that later steps read; whether one is missed without it, is not seen. */
function writesFiles({ start, end }: SyntaxNode, host: HostFacts): boolean {
  return host.calls.some(
    (call) =>
      start <= call.start &&
      call.end <= end &&
      /^(?:dump|to_csv|to_parquet|to_json|write_text|writeFile|writeFileSync|upload_file|upload_blob|load_string|load_file|put_object|putObject)$/.test(
        call.name,
      ),
  )
}

function onlyPrints(handler: SyntaxNode, host: HostFacts): boolean {
  return [...descendants(handler)].every((node) => {
    const call = host.callOf(node)
    if (call === undefined || PRINTS.test(call.name)) return true
    const [first] = call.args
    return first !== undefined && /^\s*rollback\b/i.test(host.textOf(first) ?? '')
  })
}
