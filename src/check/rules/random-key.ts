import { isRerun } from '../context.ts'
import type { FileFacts, ProjectFacts, SqlUse } from '../facts.ts'
import type { Report } from '../finding.ts'
import type { HostCall, HostFacts } from '../languages/host.ts'
import { child, type SyntaxNode } from '../languages/tree.ts'
import type { Rule } from '../rule.ts'
import { checkedBefore, claimed, clearedBy, isLogTable, isTemporary, leavesOutExisting } from '../sequence.ts'
import { isSymbol, isWord, splitByComma, type Tokens, tokenAt } from '../sql/tokens.ts'
import { appendCalls } from './append-calls.ts'
import { findRandom, HOST_RANDOM } from './clock.ts'

const KEY_NAME = /^(?:id|uuid|guid|pk|key|row_?id|record_?id)$|_(?:id|key|uuid|guid|pk|sk)$/i
const TRACE_NAME =
  /trace|request|correlation|span|session|run_?id|batch|job|load_?id|invocation|execution|tmp|temp|token|nonce|secret|salt|state|client_token|process|worker|etl|audit/i

/** The column a random value of the select list or of the values goes to, or undefined where it is none. */
function columnOfRandom(use: SqlUse): { column: string | undefined; at: number } | undefined {
  const { query, columns } = use.statement
  const found = findRandom(query)
  if (found < 0) return undefined
  const from = isWord(query, 0, 'values', 'value') ? insideValues(query) : selectList(query)
  const parts = splitByComma(from)
  const index = parts.findIndex((part) => findRandom(part) >= 0)
  if (index < 0) return undefined
  const part = parts[index] ?? []
  // `coalesce(t.id, uuid())` keeps the id a row already has.
  if (
    part.some((token) => token.kind === 'word' && ['coalesce', 'ifnull', 'nvl', 'case'].includes(token.value))
  )
    return undefined
  const alias = tokenAt(part, part.length - 1)
  const named =
    part.length > 3 && (alias.kind === 'word' || alias.kind === 'quoted')
      ? alias.value.toLowerCase()
      : undefined
  const random = part[findRandom(part)]
  return {
    column: columns?.[index] ?? named ?? (index === 0 ? 'id' : undefined),
    at: random?.start ?? tokenAt(query, found).start,
  }
}

function selectList(query: Tokens): Tokens {
  const select = query.findIndex((token) => token.kind === 'word' && token.value === 'select')
  if (select < 0) return []
  const depth = tokenAt(query, select).depth
  const end = query.findIndex(
    (token, index) => index > select && token.depth === depth && isWord(query, index, 'from'),
  )
  return query.slice(select + 1, end < 0 ? query.length : end)
}

function insideValues(query: Tokens): Tokens {
  if (!isSymbol(query, 1, '(')) return []
  const depth = tokenAt(query, 1).depth
  const end = query.findIndex((token, index) => index > 1 && token.value === ')' && token.depth === depth)
  return query.slice(2, end < 0 ? query.length : end)
}

export const randomKey: Rule = {
  id: 'random-key',
  title: 'Derive the key of a row from the row',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'Each run gives the same source row a new id, so nothing can recognise it: the row comes again, and what points to the old id points to a row of the run before.',
  advice:
    'Use a hash or a version 5 UUID of the natural key. Existing rows keep their old ids: change them once.',
  safeForms: [
    {
      for: 'PostgreSQL',
      code: "insert into event (event_id, kind, at)\nselect md5(concat_ws('|', kind, at)), kind, at from stage_event\non conflict (event_id) do nothing;",
    },
    { for: 'Python', code: 'row_id = uuid.uuid5(NAMESPACE, f"{order_no}|{line_no}")' },
    { for: 'TypeScript', code: 'const id = uuidv5(`${order.no}|${order.line}`, NAMESPACE)' },
  ],
  prove:
    '`stet prove` runs the job twice into empty tables: the column differs (NONDETERMINISTIC); twice into one table: the rows are there twice (DOUBLED).',
  limits: 'A random value that reaches its row through other functions is not followed.',
  bad: [
    {
      why: 'a random id for each row of a load',
      path: 'etl/load.sql',
      lines: [2],
      code: 'insert into event (event_id, kind)\nselect gen_random_uuid(), kind from stage_event;\n',
    },
    {
      why: 'a random id in a merge',
      path: 'etl/load.sql',
      lines: [1],
      code: 'merge into event t using s on false when not matched then insert (event_id, kind) values (generate_uuid(), s.kind);\n',
    },
    {
      why: 'made in Python for the rows of a frame',
      path: 'jobs/load.py',
      lines: [4],
      code: 'import uuid\nimport pandas as pd\ndef load(df, engine):\n    df["event_id"] = [uuid.uuid4() for _ in range(len(df))]\n    df.to_sql("event", engine, if_exists="append")\n',
    },
  ],
  fine: [
    {
      why: 'version 5 is derived',
      path: 'jobs/load.py',
      lines: [],
      code: 'import uuid\nimport pandas as pd\ndef load(df, engine):\n    df["event_id"] = [uuid.uuid5(uuid.NAMESPACE_URL, k) for k in df.key]\n    df.to_sql("event", engine, if_exists="append")\n',
    },
    {
      why: 'the id a row has is kept',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into event (event_id, kind)\nselect coalesce(e.event_id, gen_random_uuid()), s.kind from s left join event e on e.kind = s.kind on conflict (event_id) do nothing;\n',
    },
    {
      why: 'only for rows the target lacks',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into event (event_id, kind)\nselect gen_random_uuid(), s.kind from s where not exists (select 1 from event e where e.kind = s.kind);\n',
    },
    {
      why: 'met by another key',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into event (event_id, kind)\nselect gen_random_uuid(), kind from s on conflict (kind) do nothing;\n',
    },
    {
      why: 'a trace id',
      path: 'etl/load.sql',
      lines: [],
      code: 'insert into event (kind, trace_id)\nselect kind, gen_random_uuid() from s on conflict (kind) do nothing;\n',
    },
    {
      why: 'the whole table is made anew',
      path: 'etl/load.sql',
      lines: [],
      code: 'truncate event;\ninsert into event (event_id, kind) select gen_random_uuid(), kind from s;\n',
    },
    {
      why: 'rows and mark commit together',
      path: 'jobs/chop.py',
      lines: [],
      code: 'import uuid\nimport psycopg2\ndef chop(conn):\n    cur = conn.cursor()\n    cur.execute("SELECT id FROM session WHERE processed_at IS NULL")\n    for s in cur.fetchall():\n        segment = {"id": uuid.uuid4(), "session": s[0]}\n        cur.execute("INSERT INTO segment (id, session) VALUES (%s, %s)", (segment["id"], s[0]))\n        cur.execute("UPDATE session SET processed_at = now() WHERE id = %s", (s[0],))\n    conn.commit()\n',
    },
  ],
  *check(file, project): Iterable<Report> {
    if (file.language === 'dbt') return
    for (const use of file.sql) {
      const found = inSql(use, file, project)
      if (found !== undefined) yield found
    }
    if (file.host?.language === 'python') yield* inPython(file, file.host)
  },
}

function inSql(use: SqlUse, file: FileFacts, project: ProjectFacts): Report | undefined {
  const { statement } = use
  if (['request', 'migration', 'test', 'seed'].includes(use.context)) return undefined
  let at: number
  let column: string | undefined
  if (statement.kind === 'insert' && !statement.overwrite) {
    const found = columnOfRandom(use)
    if (found === undefined) return undefined
    at = found.at
    column = found.column
    if (
      statement.conflict !== undefined &&
      column !== undefined &&
      !(statement.conflict.columns ?? []).includes(column)
    )
      return undefined
    if (leavesOutExisting(statement.query, statement.target) || clearedBy(file, use) !== undefined)
      return undefined
    if (claimed(file, use) || checkedBefore(file, use) || isTemporary(file, use)) return undefined
  } else if (statement.merge !== undefined) {
    const insert = findRandom(statement.tokens)
    if (insert < 0 || !isWord(statement.merge.on, 0, 'false')) return undefined
    at = statement.start
    column = 'id'
  } else return undefined
  if (column === undefined || !KEY_NAME.test(column) || TRACE_NAME.test(column)) return undefined
  if (
    project.catalogue
      .find(statement.target, file.path)
      ?.keys.some((key) => !key.generated && !key.columns.includes(column))
  )
    return undefined
  const start = use.mapped.at(at)
  const loud = isRerun(use.context) && !isLogTable(statement.target, project)
  return {
    start,
    end: start + 1,
    message: `The key "${column}" is random: a second run gives the same row another one, and it comes twice`,
    class: loud ? 'unsafe' : 'info',
    severity: loud ? 'error' : 'info',
    confidence: use.origin === 'routine' ? 'low' : 'medium',
  }
}

/** `df['id'] = uuid4()` or `{'id': uuid4()}` in a function that loads. */
function* inPython(file: FileFacts, host: HostFacts): Iterable<Report> {
  for (const call of host.calls) {
    if (!HOST_RANDOM.test(call.callee) || /^(?:random|Math|os|secrets)\./.test(call.callee)) continue
    if (!isRerun(file.contextOf(call.fn)) || call.fn === undefined) continue
    const key = keyGivenTo(call, host)
    if (key === undefined || !KEY_NAME.test(key) || TRACE_NAME.test(key)) continue
    const inserts = file.sql.filter(
      (use) => use.fn === call.fn && use.statement.kind === 'insert' && use.statement.conflict === undefined,
    )
    const loads =
      appendCalls(host).some((one) => one.call.fn === call.fn) ||
      host.calls.some(
        (one) =>
          one.fn === call.fn &&
          /^(?:insert_rows_json|insert_many|bulk_create|add_all|write_pandas|executemany|execute_values)$/.test(
            one.name,
          ),
      )
    if (!loads && !inserts.some((use) => !claimed(file, use) && !checkedBefore(file, use))) continue
    yield {
      start: call.start,
      end: call.end,
      message: `The key "${key}" is random: a second run gives the same row another one, and it comes twice`,
      class: 'unsafe',
      severity: 'error',
      confidence: 'medium',
    }
  }
}

/** The dict key, column or keyword that gets the value. */
function keyGivenTo(call: HostCall, host: HostFacts): string | undefined {
  for (let at: SyntaxNode | undefined = call.node; at !== undefined && at !== call.fn?.node; at = at.parent) {
    const { parent } = at
    if (parent === undefined) return undefined
    const name =
      parent.type === 'pair'
        ? child(parent, 'key')
        : parent.type === 'keyword_argument'
          ? child(parent, 'name')
          : parent.type === 'assignment' && at.field === 'right'
            ? child(parent, 'left')
            : undefined
    if (name !== undefined) {
      const text = host.source(name)
      const subscript = /\[\s*['"]([^'"]+)['"]\s*\]$/.exec(text)
      if (subscript !== null) return subscript[1]
      if (parent.type === 'assignment') return undefined
      return text.replace(/^['"]|['"]$/g, '')
    }
    if (
      parent.type === 'call' &&
      parent !== call.node &&
      !/^(?:str|hex|apply|map|range|lambda)/.test(host.source(parent))
    ) {
      const outer = host.callOf(parent)
      if (
        outer !== undefined &&
        !['str', 'apply', 'map', 'list', 'assign', 'withColumn', 'lit'].includes(outer.name)
      )
        return undefined
    }
  }
  return undefined
}
